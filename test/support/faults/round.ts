// One round: a plan drawn from a seed, runs started and answered by a patient client, crashes at the planned points,
// and what must hold of every run afterwards (architecture §5, §8).
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RunSnapshot } from '../../../schemas/types.generated.ts';
import { patient } from '../machine.ts';
import type { PatientClient } from './client.ts';
import type { EffectService, EffectStage, EffectTool } from './effects-receiver.ts';
import { seededRandom, type Random } from './random.ts';
import { MARK, PAY, SCENE } from './scene.ts';
import type { Victim } from './system.ts';

/** Longest time in ms for a run of a round to end, unless its parts say another. */
const ROUND_LIMIT_MS = patient(150_000);
/** Each look costs the facade, and Temporal, which it asks. */
const POLL_MS = 250;
/** A run without faults takes about two seconds: crashes by the clock fall within it, and a little behind. */
const CLOCK_MS = 2_500;
const MAX_DOWN_MS = 600;
const VICTIMS = ['worker', 'facade', 'temporal', 'postgres'] as const;
/** In the middle of an effect the worker's death matters most. */
const EFFECT_VICTIMS = ['worker', 'worker', ...VICTIMS] as const;

/** When a crash happens. */
export type Moment =
  | { readonly kind: 'clock'; readonly ms: number }
  | { readonly kind: 'effect'; readonly tool: EffectTool; readonly stage: EffectStage }
  /** While the request is on its way. */
  | { readonly kind: 'creating' | 'answering' };

/** What the human says to a pay in doubt. */
export type DoubtAnswer = 'look-it-up' | 'reject' | 'insist';

/** Which parts are killed, and for how long. */
export interface Crash {
  readonly victims: readonly Victim[];
  readonly downMs: number;
}

/** `Fault`: what happens at each planned moment. */
export interface Plan<Fault = Crash> {
  readonly seed: number;
  /** One name per run; effects are counted by it. */
  readonly labels: readonly string[];
  readonly crashes: readonly (Fault & { readonly moment: Moment })[];
  readonly doubt: DoubtAnswer;
}

export function momentOf(random: Random): Moment {
  const kind = random.pick(['clock', 'clock', 'effect', 'effect', 'creating', 'answering']);
  if (kind === 'clock') return { kind, ms: random.below(CLOCK_MS) };
  if (kind === 'creating' || kind === 'answering') return { kind };
  return {
    kind: 'effect',
    tool: random.pick([MARK, PAY, PAY]),
    stage: random.pick(['received', 'performed']),
  };
}

function planOf(seed: number): Plan {
  const random = seededRandom(seed);
  const crashes = Array.from({ length: random.chance(0.25) ? 2 : 1 }, () => {
    const moment = momentOf(random);
    const first = random.pick(moment.kind === 'effect' ? EFFECT_VICTIMS : VICTIMS);
    const victims = new Set<Victim>([first, random.chance(0.25) ? random.pick(VICTIMS) : first]);
    return { moment, victims: [...victims], downMs: random.below(MAX_DOWN_MS) };
  });
  return { seed, crashes, ...peopleOf(seed, random) };
}

/** How many runs there are, and what their human says. */
export function peopleOf(seed: number, random: Random): Pick<Plan, 'labels' | 'doubt'> {
  const runs = random.chance(0.5) ? 2 : 1;
  return {
    labels: Array.from({ length: runs }, (_, index) => `s${seed}r${index}`),
    doubt: random.pick(['look-it-up', 'look-it-up', 'reject', 'insist']),
  };
}

/** Its only crash takes the worker while a pay is under way: nobody can know whether it was paid. */
export function leavesDoubt({ crashes: [crash, ...more] }: Plan): boolean {
  const { moment, victims } = crash ?? {};
  const paying = moment?.kind === 'effect' && moment.tool === PAY;
  return more.length === 0 && paying && victims?.includes('worker') === true;
}

/** Rounds of following seeds; of several, one at least leaves a doubt: the last is drawn until it does. */
export function plansFrom(firstSeed: number, rounds: number): readonly Plan[] {
  const plans = Array.from({ length: rounds }, (_, index) => planOf(firstSeed + index));
  for (let seed = firstSeed + rounds; rounds > 1 && !plans.some(leavesDoubt); seed++)
    plans[rounds - 1] = planOf(seed);
  return plans;
}

/** What a run that is answered needs of its round. */
export interface AnsweringParts {
  readonly client: PatientClient;
  readonly effects: EffectService;
  /** Longest time in ms for a run to end. */
  readonly limitMs?: number;
}

export interface RoundParts<Fault = Crash> extends AnsweringParts {
  /** Faults follow each other. An effect at whose moment one happens waits until this resolves. */
  readonly crash: (fault: Fault) => Promise<void>;
}

/** What a human did in a run. */
interface Answers {
  /** Pays in doubt that the human had performed (again). */
  performed: number;
  doubts: number;
}

export interface RunOfRound extends Answers {
  readonly label: string;
  readonly runId: string;
  readonly ended: RunSnapshot;
}

/** Starts the runs, lets the crashes happen, answers as a human would; resolves when all runs have ended. */
export async function playRound<Fault>(
  plan: Plan<Fault>,
  parts: RoundParts<Fault>,
): Promise<readonly RunOfRound[]> {
  const crashed: Promise<void>[] = [];
  const happen = (kind: 'creating' | 'answering'): void => {
    for (const fault of plan.crashes) {
      if (fault.moment.kind === kind && !begun.has(fault.moment)) {
        begun.add(fault.moment);
        crashed.push(parts.crash(fault));
      }
    }
  };
  const begun = new Set<Moment>();
  for (const fault of plan.crashes) {
    const { moment } = fault;
    if (moment.kind === 'clock') {
      crashed.push(sleep(moment.ms).then(() => parts.crash(fault)));
    } else if (moment.kind === 'effect') {
      const { tool, stage } = moment;
      const label = plan.labels[0] ?? '';
      parts.effects.at({ tool, label, stage }, () => {
        const done = parts.crash(fault);
        crashed.push(done);
        return done;
      });
    }
  }
  const ended = await Promise.all(
    plan.labels.map(async (label) => {
      const creating = parts.client.start(SCENE, { label });
      happen('creating');
      const runId = await creating;
      return { label, runId, ...(await answerUntilEnd({ plan, parts, label, runId, happen })) };
    }),
  );
  await Promise.all(crashed);
  return ended;
}

export interface RunUnderWay {
  readonly plan: Pick<Plan, 'doubt'>;
  readonly parts: AnsweringParts;
  readonly label: string;
  readonly runId: string;
  readonly happen: (kind: 'answering') => void;
}

export async function answerUntilEnd(run: RunUnderWay): Promise<Answers & { ended: RunSnapshot }> {
  const { client, limitMs = ROUND_LIMIT_MS } = run.parts;
  const limit = Date.now() + limitMs;
  const answers: Answers = { performed: 0, doubts: 0 };
  const answered = new Set<string>();
  for (;;) {
    const snapshot = await client.snapshot(run.runId);
    if (['completed', 'failed', 'cancelled'].includes(snapshot.status))
      return { ...answers, ended: snapshot };
    if (Date.now() > limit)
      throw new Error(`run ${run.runId} has not ended: ${JSON.stringify(snapshot)}`);
    const asked = snapshot.interrupt as
      | { interruptId: string; nodeId: string; artifactType?: string; artifactId?: string }
      | undefined;
    if (asked && !answered.has(asked.interruptId)) {
      answered.add(asked.interruptId);
      const isDoubt = asked.artifactType === 'effect-in-doubt';
      const value = isDoubt ? doubtValue(run, answers, asked.artifactId) : { action: 'accept' };
      const sending = client.ask(`/v1/runs/${run.runId}/interrupts/${asked.nodeId}`, {
        body: { resumeValue: value },
        headers: { 'idempotency-key': `${run.runId} ${asked.interruptId}` },
      });
      run.happen('answering');
      const { status, text } = await sending;
      assert.equal(status, 200, `the answer at ${asked.nodeId} is taken: ${text}`);
    } else await sleep(POLL_MS);
  }
}

/** The pay in doubt is looked up by its key, as a human would: forks of one run pay under one label. */
function doubtValue(
  { plan, parts, label }: RunUnderWay,
  answers: Answers,
  effectId: string | undefined,
): unknown {
  answers.doubts++;
  const done = parts.effects
    .requests(PAY, label)
    .find(({ key, performed }) => performed && key === effectId);
  if (plan.doubt === 'reject') return { action: 'reject' };
  if (plan.doubt === 'look-it-up' && done)
    return { action: 'edit-accept', editedArtifactData: { performed: done.key } };
  answers.performed++;
  return { action: 'accept' };
}

/** Effects of a run that has ended, held against what its human said and what its log tells. */
export function checkEffects(run: RunOfRound, effects: EffectService, doubtsInLog: number): void {
  const { label, runId } = run;
  assert.equal(run.ended.status, 'completed', `${runId} completed: ${JSON.stringify(run.ended)}`);
  const marks = effects.requests(MARK, label);
  assert.equal(new Set(marks.map(({ key }) => key)).size, 1, `${runId}: one key for its mark`);
  assert.equal(marks.filter(({ performed }) => performed).length, 1, `${runId}: marked once`);
  const pays = effects.requests(PAY, label);
  const paid = pays.filter(({ performed }) => performed).length;
  assert.ok(
    paid <= 1 + run.performed && pays.length <= 1 + run.performed,
    `${runId}: paid ${paid} times with ${pays.length} requests, ${run.performed} ordered by the human`,
  );
  const unanswered = pays.filter(({ answered }) => !answered).length;
  assert.ok(
    doubtsInLog >= unanswered,
    `${runId}: ${unanswered} pays without an answer, ${doubtsInLog} raised to the human`,
  );
  assert.ok(doubtsInLog >= run.doubts, `${runId}: what the human was asked is in the log`);
}
