// Our own infrastructure is no fact of a run (architecture §4.1): seeded rounds in which PostgreSQL, Temporal, one worker, all
// workers or the facade is gone or stands still while agents speak, tools pay, children and forks begin and a subject's data is
// erased. No run fails for it, nothing is paid twice unasked, and every erasure comes to its receipt. `npm test` plays a few fixed
// rounds of a few seconds; `npm run campaign -- away` plays more, of up to two minutes. OPENWOP_FAULT_SEED is the seed of the first
// round, OPENWOP_FAULT_ROUNDS their number, and OPENWOP_AWAY_SECONDS the longest absence.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { afterAll, describe, expect, it } from 'vitest';
import {
  absencesOf,
  awayPlans,
  type Absence,
  type Absences,
  type AwayPlan,
} from '../support/faults/away.ts';
import { patientClient, type PatientClient } from '../support/faults/client.ts';
import {
  doubtsOf,
  eventsOf,
  expectInvariants,
  expectNone,
  playInLanes,
  type Played,
} from '../support/faults/lanes.ts';
import { startProxy, type Proxy } from '../support/faults/proxy.ts';
import {
  answerUntilEnd,
  checkEffects,
  playRound,
  type RunOfRound,
} from '../support/faults/round.ts';
import { FAMILY, MARK, PAY, SCENE, SPEECH } from '../support/faults/scene.ts';
import type { FaultSystem, Half } from '../support/faults/system.ts';
import { withFaultSystem } from '../support/faults/with-system.ts';
import { neverByChance } from '../support/broken.ts';
import { until } from '../support/host.ts';
import { patient } from '../support/machine.ts';
import { takes } from '../support/waiting.ts';

const {
  OPENWOP_FAULT_SEED: SEED,
  OPENWOP_FAULT_ROUNDS: NUMBER = '1',
  OPENWOP_AWAY_SECONDS: SECONDS = '3',
} = process.env;
const MOST_SECONDS = Number(SECONDS);
/** Together they take away each part. */
const GATE_SEEDS = [7, 10, 18, 30, 31];
const PLANS: readonly AwayPlan[] =
  SEED === undefined
    ? GATE_SEEDS.flatMap((seed) => awayPlans(seed, { rounds: 1, mostSeconds: MOST_SECONDS }))
    : awayPlans(Number(SEED), { rounds: Number(NUMBER), mostSeconds: MOST_SECONDS });
/** Rounds under way at once: their runs meet each other's absences, too. */
const LANES = 2;
const START_LIMIT_MS = patient(120_000);
/** For all that is under way to end, behind its own absence and those of the other lanes. */
const RECOVERY_MS = patient(150_000) + 2 * LANES * MOST_SECONDS * 1000;
const CHECK_LIMIT_MS = patient(15_000);
const HOST = '/v1/host/openwop-temporal';
const SOURCE = 'source';
const KEYS = { OPENWOP_ENCRYPTION_KEYS: `away:${randomBytes(32).toString('base64')}` };

let system: FaultSystem;
let client: PatientClient;
let proxy: Proxy;
let halves: readonly Half[];
let absences: Absences;
/** A run that has paid and ended, the number of its events, and the place of the call that paid. */
let source: { readonly runId: string; readonly events: number; readonly paysAt: number };
const played: Played[] = [];
/** That make its payment themselves. */
let forks = 0;
/** By forks: pays in doubt that the human had performed. */
let performedInForks = 0;
let doubtsRaised = 0;

withFaultSystem(async (started) => {
  system = started;
  proxy = await startProxy(system.temporal.address);
  const env = { ...KEYS, TEMPORAL_ADDRESS: proxy.address };
  const [first, second, facade] = await Promise.all([
    system.start('worker', env),
    system.start('worker', env),
    system.start('serve', env),
  ]);
  halves = [first, second, facade];
  absences = absencesOf({ system, facade, workers: [first, second], temporal: proxy });
  client = patientClient(facade.url, RECOVERY_MS);
  const runId = await client.start(SCENE, { label: SOURCE });
  await toEnd(runId, SOURCE, 'insist');
  const events = await eventsOf(client, runId);
  const pays = ({ type, payload }: (typeof events)[number]) =>
    type === 'agent.toolCalled' && (payload as { toolName?: string }).toolName === PAY;
  source = { runId, events: events.length, paysAt: events.findIndex(pays) };
}, START_LIMIT_MS);

afterAll(async () => {
  await proxy?.stop();
});

const toEnd = (runId: string, label: string, doubt: AwayPlan['doubt']) =>
  answerUntilEnd({
    ...{ plan: { doubt }, label, runId, happen: () => undefined },
    parts: { client, effects: system.effects, limitMs: RECOVERY_MS },
  });

/** Ends as `completed`; returns what its human did. */
async function completes(plan: AwayPlan, runId: string, label: string): Promise<RunOfRound> {
  const run = { label, runId, ...(await toEnd(runId, label, plan.doubt)) };
  await neverByChance(() =>
    assert.equal(run.ended.status, 'completed', `${runId}: ${JSON.stringify(run.ended)}`),
  );
  return run;
}

async function fork(plan: AwayPlan): Promise<string> {
  const fromSeq = Math.floor(plan.forkedAt * source.events);
  const { body, status, text } = await client.ask<{ runId: string }>(
    `/v1/runs/${source.runId}:fork`,
    {
      body: { mode: 'branch', fromSeq },
      headers: { 'idempotency-key': `fork ${plan.seed}` },
    },
  );
  assert.equal(status, 201, text);
  if (fromSeq <= source.paysAt) forks++;
  const run = await completes(plan, body.runId, SOURCE);
  performedInForks += run.performed;
  doubtsRaised += run.doubts;
  return body.runId;
}

interface Erasure {
  readonly erasureId: string;
  readonly state: string;
}

/** A run of a subject that pays; the subject is erased while it is under way, or has ended. */
async function erase(plan: AwayPlan): Promise<void> {
  const label = `subject ${plan.seed}`;
  const dataSubject = `anna ${plan.seed}`;
  await client.start(SCENE, { label }, { dataSubject });
  await takes(plan.erasedAfterMs);
  const { body, status, text } = await client.ask<Erasure>(`${HOST}/subjects:erase`, {
    body: { dataSubject, cancelOpen: true },
    headers: { 'idempotency-key': `erase ${plan.seed}` },
  });
  assert.equal(status, 200, text);
  await until(
    async () => {
      const told = await client.ask<Erasure>(`${HOST}/erasures/${body.erasureId}`);
      return told.body.state === 'erased';
    },
    `${dataSubject} is erased`,
    { limitMs: RECOVERY_MS },
  );
  await neverByChance(() => {
    assert.ok(system.effects.requests(PAY, label).length <= 1, `${label} pays once at most`);
    const marks = system.effects.requests(MARK, label).filter(({ performed }) => performed);
    assert.ok(marks.length <= 1, `${label} is marked once at most`);
  });
}

/** What is under way beside the runs that pay; the ids of the runs whose logs can be read. */
async function beside(plan: AwayPlan): Promise<readonly string[]> {
  const made = await Promise.all(
    plan.work.map(async (work) => {
      if (work === 'erasure') return void (await erase(plan));
      if (work === 'fork') return fork(plan);
      const runId = await client.start(work === 'speech' ? SPEECH : FAMILY);
      await completes(plan, runId, runId);
      return runId;
    }),
  );
  return made.filter((runId) => runId !== undefined);
}

async function round(plan: AwayPlan): Promise<void> {
  const { effects } = system;
  const startedMs = Date.now();
  const parts = {
    ...{ client, effects, limitMs: RECOVERY_MS },
    crash: (absence: Absence) => absences.take(absence),
  };
  const [runs, others] = await Promise.all([playRound(plan, parts), beside(plan)]);
  await absences.allBack();
  played.push({ seed: plan.seed, runIds: [...runs.map(({ runId }) => runId), ...others] });
  for (const run of runs) {
    const doubts = await doubtsOf(client, run.runId);
    await neverByChance(() => checkEffects(run, effects, doubts));
    doubtsRaised += run.doubts;
  }
  const tookMs = Date.now() - startedMs;
  const doubts = runs.reduce((sum, run) => sum + run.doubts, 0);
  console.log(JSON.stringify({ ...plan, tookMs, doubts }));
}

describe('architecture §4.1: a part of the host is away', () => {
  it.runIf(SEED === undefined)('the fixed rounds take away each part', () => {
    expect(PLANS.flatMap(({ crashes }) => crashes.map(({ part, way }) => [part, way]))).toEqual([
      ['postgres', 'gone'],
      ['worker', 'silent'],
      ['temporal', 'silent'],
      ['facade', 'silent'],
      ['workers', 'silent'],
    ]);
  });

  it(
    `${PLANS.length} seeded rounds: [I98] no run fails for it, [I99] and nothing is paid twice unasked`,
    { timeout: PLANS.length * (RECOVERY_MS + MOST_SECONDS * 1000) },
    async () => {
      const failures = await playInLanes(PLANS, LANES, round);
      await expectNone([...halves.flatMap(({ deaths }) => deaths), ...failures]);
      console.log(`${doubtsRaised} doubts were asked`);
      await neverByChance(() => {
        const paid = system.effects.requests(PAY, SOURCE);
        expect(paid.length).toBeLessThanOrEqual(1 + forks + performedInForks);
      });
    },
  );

  it(
    'the invariants hold of every run without a subject, when all is quiet',
    { timeout: START_LIMIT_MS + PLANS.length * CHECK_LIMIT_MS },
    async () => {
      await expectInvariants({ ...system, env: KEYS }, played);
    },
  );
});
