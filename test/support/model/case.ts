// One generated case from its start to its end: the run's executions one after the other, and every prefix of what they
// state held against the rules (legality.ts), as `translate` reads it from their histories.
import type { CallToolInput, RecordedAnswersInput } from '../../../activities/contract.ts';
import { CHILD_ENDED_SIGNAL, type ChildEnded } from '../../../src/rules/children.ts';
import { MESSAGES } from '../../../src/rules/messages.ts';
import type { JsonObject, JsonValue } from '../../../src/rules/json.ts';
import {
  renamed,
  type Recording,
  type RecordedEntry,
  type RecordingPage,
} from '../../../src/rules/recording.ts';
import { leavingOf } from '../../../src/rules/fork-trees.ts';
import type { ForkOf, RunInput } from '../../../src/rules/run-input.ts';
import type { HistoryEvent } from '../../../src/ports/history.ts';
import { translate } from '../../../src/translate/translate.ts';
import { TERMINAL_STATUSES } from '../../../src/rules/status.ts';
import { journalOf } from '../run-workflow.ts';
import { openAgenda, type Agenda } from './agenda.ts';
import {
  READ_ANSWERS,
  READ_RECORDING,
  fateOf,
  interventionsOf,
  stopOf,
  stopOfStep,
  taskOf,
  type Intervention,
} from './behaviours.ts';
import { FORK_CHILDREN, isOfFamily, openFamily, type Family, type ForkedKin } from './family.ts';
import { answersTo, strayAnswer, type Question } from './humans.ts';
import {
  startExecution,
  type ActivityFate,
  type Execution,
  type ExecutionEnd,
  type Update,
  type UpdateAnswer,
  type World,
} from './execution.ts';
import type { Isolate } from './isolate.ts';
import { openLegality, type LegalEntry } from './legality.ts';
import { generatedInput } from './workflows.ts';

const START_MS = 1_700_000_000_000;
/** A run whose story is longer does not end. */
const MOST_STEPS = 20_000;
/** Refusals of a sender's own making, and of races that it lost. */
const REFUSALS = new Set([
  'interrupt_already_resolved',
  'interrupt_cancelled',
  'interrupt_expired',
  'interrupt_not_found',
  'run_state_conflict',
  'service_unavailable',
]);

export interface CaseEnd {
  readonly entries: readonly LegalEntry[];
  readonly executions: number;
  readonly end: 'completed' | 'failed' | 'cancelled';
  readonly types: ReadonlySet<string>;
  /** Of each execution. */
  readonly histories: readonly (readonly HistoryEvent[])[];
  /** As the log has them. */
  readonly rows: readonly RecordedEntry[];
  /** Activities that were begun, in order. */
  readonly performed: readonly string[];
  /** Calls of tools among them. */
  readonly called: readonly Called[];
  /** Its children, as a fork that leaves so has them. */
  readonly forkedKin: Family['forked'];
}

export interface Called {
  readonly activityId: string;
  readonly input: CallToolInput;
}

export interface TimedMessage {
  /** From its start on. */
  readonly afterMs: number;
  /** Or Temporal's own request, which is no message. */
  readonly message: { readonly kind: keyof typeof MESSAGES } | 'cancel-request';
}

/** How a case differs from what its seed says. */
export interface CaseOptions {
  /** What a fork is made from. */
  readonly recording?: RecordingPage;
  /** The children that it has of its source. */
  readonly forkedKin?: readonly ForkedKin[];
  /** When it begins; else at START_MS. */
  readonly startMs?: number;
  /** What runs; else what the seed says. */
  readonly input?: RunInput;
  /** What it is told. */
  readonly messages?: readonly TimedMessage[];
  /** Nobody does anything of his own accord. */
  readonly isUndisturbed?: boolean;
  /** What comes of it when it asks a record what people answered; then nobody answers but by `messages`. */
  readonly record?: ((asked: RecordedAnswersInput) => ActivityFate) | undefined;
  /** Its log tells two stories: what its source did, and what it did in the place of that. */
  readonly isAnyLegal?: boolean | undefined;
}

class GeneratedCase implements World {
  readonly entries: LegalEntry[] = [];
  readonly #seed: string;
  readonly #input: RunInput;
  readonly #isolate: Isolate;
  readonly #agenda: Agenda;
  readonly #legality = openLegality();
  readonly #family: Family;
  readonly #executions: Execution[] = [];
  /** Of operators who have not acted yet. */
  #interventions: Intervention[];
  #asked: { nodeId: string; interruptId: string } | undefined;
  #translation: JsonValue = null;
  #tasks = 0;
  #updates = 0;
  #isClosed = false;
  readonly #outcomes = new Map<string, string>();
  /** Updates that an execution ended without having seen: for the next one. */
  #unseen: Update[] = [];

  readonly #rows: RecordedEntry[] = [];
  readonly #performed: string[] = [];
  readonly #called: Called[] = [];
  readonly #recording: RecordingPage | undefined;
  readonly #record: CaseOptions['record'];
  readonly #isAnyLegal: boolean;

  constructor(isolate: Isolate, options: CaseOptions & { seed: string; input: RunInput }) {
    const { seed, input, recording, startMs = START_MS, isUndisturbed, isAnyLegal } = options;
    this.#isAnyLegal = isAnyLegal === true;
    this.#agenda = openAgenda(startMs);
    this.#recording = recording;
    this.#record = options.record;
    this.#isolate = isolate;
    this.#seed = seed;
    this.#input = input;
    this.#interventions = isUndisturbed ? [] : interventionsOf(seed);
    const parent = { seed, runId: input.runId, forked: options.forkedKin };
    this.#family = openFamily(parent, this.#agenda, (childRunId) => this.#childEnded(childRunId));
    for (const [number, { afterMs, message }] of (options.messages ?? []).entries())
      this.#later(afterMs, () =>
        message === 'cancel-request'
          ? this.#intervene(message)
          : this.#send(`message-${number}`, message),
      );
  }

  begin = (activity: Parameters<World['begin']>[0]) => {
    if (activity.type === READ_RECORDING) return this.#pageOf();
    if (activity.type === READ_ANSWERS && this.#record)
      return this.#record(activity.input as RecordedAnswersInput);
    if (activity.type !== FORK_CHILDREN) this.#performed.push(activity.activityId);
    if (activity.type === 'callTool')
      this.#called.push({ ...activity, input: activity.input as CallToolInput });
    return isOfFamily(activity.type) ? this.#family.fate(activity) : fateOf(this.#seed, activity);
  };

  #pageOf(): ReturnType<World['begin']> {
    const result = { output: null, events: [], recording: this.#recording };
    return { afterMs: 1, end: { kind: 'completed', result } };
  }

  stop = (activity: Parameters<World['stop']>[0]) =>
    isOfFamily(activity.type) ? stopOfStep(this.#seed, activity) : stopOf(this.#seed, activity);

  task(): ReturnType<World['task']> {
    const task = taskOf(this.#seed, this.#tasks++);
    const due = this.#interventions.filter(({ afterTasks }) => afterTasks < this.#tasks);
    this.#interventions = this.#interventions.filter((it) => !due.includes(it));
    for (const { afterMs, what } of due) this.#later(afterMs, () => this.#intervene(what));
    return task;
  }

  /** An id that comes again gets what came of it first. */
  answered(update: Update, answer: UpdateAnswer): void {
    if (answer.kind === 'unseen') {
      if (this.#current()?.end()?.kind === 'continued') this.#unseen.push(update);
      return;
    }
    if (answer.kind === 'refused') {
      if (!REFUSALS.has(answer.code))
        throw new Error(`Update ${update.name} is refused with ${answer.code}`);
      return;
    }
    const outcome = JSON.stringify(answer.outcome);
    const first = this.#outcomes.get(update.id) ?? outcome;
    if (first !== outcome)
      throw new Error(`Update ${update.id} had the outcome ${first}, and has ${outcome}`);
    this.#outcomes.set(update.id, outcome);
  }

  recorded(events: readonly HistoryEvent[]): void {
    const page = translate(events, this.#translation, this.#input);
    this.#translation = page.state;
    for (const { key, type, nodeId, causedBy, payload, timestampMs } of page.entries) {
      this.#rows.push({ key, type, nodeId, causedBy, payload, timestampMs });
      const entry = { key, type, nodeId, causedBy, payload: JSON.parse(payload) as JsonObject };
      this.entries.push(entry);
      if (!this.#isAnyLegal) this.#legality.take(entry);
      this.#react(entry);
    }
    this.#isClosed = page.closed;
    const isClosed = this.#isAnyLegal ? page.closed : this.#legality.isClosed();
    if (page.closed !== isClosed || page.closed !== TERMINAL_STATUSES.has(page.status))
      throw new Error(
        `the log is ${page.closed ? '' : 'not '}closed, and its status is ${page.status}`,
      );
  }

  async play(): Promise<CaseEnd> {
    let input: unknown = this.#input;
    for (
      let end: ExecutionEnd | undefined;
      end?.kind !== 'completed' && end?.kind !== 'failed' && end?.kind !== 'cancelled';
    ) {
      const execution = this.#start(input);
      for (let steps = 0; !(end = execution.end()); steps++) {
        if (steps > MOST_STEPS) throw new Error('the run does not end');
        if (!(await this.#agenda.step())) throw new Error('the run stands still');
      }
      await execution.dispose();
      await execution.replay();
      if (end.kind === 'continued') input = end.input;
      else return this.#finish(end.kind);
    }
    throw new Error('unreachable');
  }

  async dispose(): Promise<void> {
    await this.#current()?.dispose();
  }

  #current(): Execution | undefined {
    return this.#executions.at(-1);
  }

  #start(input: unknown): Execution {
    const { runId } = this.#input;
    const execution = startExecution({
      isolate: this.#isolate,
      agenda: this.#agenda,
      world: this,
      workflowId: runId,
      temporalRunId: `${runId}-${this.#executions.length}`,
      input,
      updates: this.#unseen,
    });
    this.#unseen = [];
    this.#executions.push(execution);
    return execution;
  }

  #finish(end: CaseEnd['end']): CaseEnd {
    const terminal = this.entries.at(-1)?.type;
    if (!this.#isClosed || terminal !== `run.${end}`)
      throw new Error(`the execution is ${end}, the log ends in ${terminal}`);
    // The log of a fork begins with what no carrier of its own tells.
    if (!this.#recording) this.#compareWithJournal();
    this.#checkSeals();
    const left = this.#family.left();
    if (left.length > 0) throw new Error(`the children ${left.join(', ')} outlive their parent`);
    return {
      entries: this.entries,
      executions: this.#executions.length,
      end,
      types: new Set(this.entries.map(({ type }) => type)),
      histories: this.#executions.map(({ history }) => history),
      rows: this.#rows,
      performed: this.#performed,
      called: this.#called,
      forkedKin: (leaving) => this.#family.forked(leaving),
    };
  }

  /** The carriers, decoded without `translate`, tell the same. */
  #compareWithJournal(): void {
    const stated = this.#executions.flatMap(({ history }, segment) =>
      journalOf(history, segment).flatMap((item) => (item.kind === 'status' ? [] : [item.key])),
    );
    const logged = this.entries.map(({ key }) => key);
    if (stated.join('\n') !== logged.join('\n'))
      throw new Error('translate tells another story than the carriers');
  }

  /** A model call that gave no result may have shown something: its block is sealed. */
  #checkSeals(): void {
    const sealedIds = new Set<string>();
    const unfinished = new Set<string>();
    for (const { history } of this.#executions) {
      const ids = new Map<string, string>();
      for (const event of history) {
        const scheduled = event.activityTaskScheduledEventAttributes;
        const completed = event.activityTaskCompletedEventAttributes;
        const payload = scheduled?.input?.payloads?.[0]?.data;
        const id = scheduled?.activityId ?? '';
        if (scheduled?.activityType?.name === 'inferTurn') {
          ids.set(String(event.eventId), id);
          unfinished.add(id);
        } else if (scheduled?.activityType?.name === 'sealBlock')
          sealedIds.add(
            (JSON.parse(Buffer.from(payload ?? []).toString()) as { sealedActivityId: string })
              .sealedActivityId,
          );
        // Behind the grace of a cancellation its result counts no more, and it was sealed then.
        if (completed) unfinished.delete(ids.get(String(completed.scheduledEventId)) ?? '');
      }
    }
    const open = [...unfinished].filter((id) => !sealedIds.has(id));
    if (open.length > 0) throw new Error(`the streams of ${open.join(', ')} are not closed`);
  }

  /** People and operators who look at the log. */
  #react({ type, nodeId = '', payload }: LegalEntry): void {
    if (type === 'node.suspended')
      this.#asked = { nodeId, interruptId: payload.interruptId as string };
    if (type === 'interrupt.requested' && this.#asked && !this.#record) {
      const { kind, resumeSchema } = payload as unknown as Pick<Question, 'kind' | 'resumeSchema'>;
      for (const { afterMs, updateId, message } of answersTo(this.#seed, {
        ...this.#asked,
        kind,
        resumeSchema,
      }))
        this.#later(afterMs, () => this.#send(updateId, message));
    }
    // Whoever paused it lets it go on, or it would stand for ever.
    if (type === 'run.paused') this.#later(700, () => this.#intervene('resume'));
  }

  /** Who has ended is told nothing. */
  #childEnded(childRunId: string): void {
    this.#current()?.signal(CHILD_ENDED_SIGNAL, { childRunId } satisfies ChildEnded);
  }

  #later(ms: number, happen: () => void): void {
    this.#agenda.at(this.#agenda.nowMs() + ms, happen);
  }

  #send(id: string, message: { readonly kind: keyof typeof MESSAGES }): void {
    this.#current()?.update({ id, name: MESSAGES[message.kind].update, message });
  }

  #intervene(what: Intervention['what']): void {
    const id = `operator-${this.#updates++}`;
    const bodyDigest = 'model';
    switch (what) {
      case 'cancel':
        return this.#send(id, { kind: 'cancel', cancelledBy: 'operator', bodyDigest } as never);
      case 'cancel-request':
        return this.#current()?.requestCancel();
      case 'pause':
        return this.#send(id, {
          kind: 'pause',
          drainPolicy: 'drain-current-node',
          bodyDigest,
        } as never);
      case 'pause-immediate':
        return this.#send(id, { kind: 'pause', drainPolicy: 'immediate', bodyDigest } as never);
      case 'resume':
        return this.#send(id, { kind: 'resume', bodyDigest } as never);
      case 'stray-answer':
        return this.#send(id, strayAnswer('n0'));
    }
  }
}

/** Plays the case to its end. Throws an Error with everything that is needed to see what went wrong. */
export function playCase(
  isolate: Isolate,
  seed: string,
  given: Pick<CaseOptions, 'input' | 'messages' | 'isUndisturbed' | 'record'> = {},
): Promise<CaseEnd> {
  return play(isolate, { seed, input: generatedInput(seed), ...given });
}

/** Plays a fork of what the case `seed` came to. */
export async function playFork(
  isolate: Isolate,
  options: Pick<CaseOptions, 'input' | 'isAnyLegal' | 'messages' | 'record'> & {
    seed: string;
    fork: AskedFork;
    recording: Recording;
    source: Pick<CaseEnd, 'forkedKin'>;
    generation?: number;
  },
): Promise<CaseEnd & { readonly fork: ForkOf }> {
  const { seed, fork: asked, recording, source, generation = 1 } = options;
  const { isAnyLegal, messages, record } = options;
  const { sourceRunId, fromSeq, mode, length } = asked;
  const last = (mode === 'branch' ? Math.max(fromSeq, 1) : length) - 1;
  const recordEndsMs = recording.entries[last]?.timestampMs ?? START_MS;
  const startMs = START_MS + generation * FORKED_AFTER_MS;
  const made = { ...asked, clocks: [{ recordEndsMs, madeAtMs: startMs }], generation };
  const forkedKin = source.forkedKin(leavingOf(made, recording));
  const fork: ForkOf = { ...made, ...(forkedKin.length > 0 ? { hasChildren: true } : {}) };
  const runId = `fork${generation === 1 ? '' : generation}-${seed}`;
  const input = { ...(options.input ?? generatedInput(seed)), runId, fork };
  const { batches, entries } = recording;
  const own = { entries, batches: renamed(batches, sourceRunId, runId) };
  const page = { ...own, sourceRunId, prefix: fromSeq, isLast: true };
  const end = await play(isolate, {
    ...{ seed, input, recording: page, forkedKin, startMs, isAnyLegal },
    ...{ messages, record, isUndisturbed: true },
  });
  return { ...end, fork };
}

/** A fork but for its times. */
type AskedFork = Omit<ForkOf, 'clocks' | 'generation'>;
/** What a source asked is long over by then. */
const FORKED_AFTER_MS = 60 * 24 * 3600 * 1000;

function toldOf({ type, key, payload }: LegalEntry): string {
  const more = type === 'replay.diverged' ? `  ${JSON.stringify(payload)}` : '';
  return `  ${type}  ${key}${more}`;
}

async function play(
  isolate: Isolate,
  options: CaseOptions & { seed: string; input: RunInput },
): Promise<CaseEnd> {
  const { seed, input } = options;
  const generated = new GeneratedCase(isolate, options);
  try {
    return await generated.play();
  } catch (error) {
    const { definition, configurable, policy, forceContinueAsNewAfter } = input;
    const story = generated.entries.map(toldOf).join('\n');
    const told = JSON.stringify({
      definition,
      configurable,
      policy,
      forceContinueAsNewAfter,
      operator: interventionsOf(seed),
    });
    throw new Error(`case ${seed}: ${(error as Error).message}\n${told}\n${story}`, {
      cause: error,
    });
  } finally {
    await generated.dispose();
  }
}
