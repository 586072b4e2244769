// What tests of the log room share: stores on PGlite, a scripted history and run rows.
import { subjectOf } from '../../src/rules/subject.ts';
import { randomUUID } from 'node:crypto';
import proto from '@temporalio/proto';
import { HostError } from '../../src/rules/errors.ts';
import type { RunInput } from '../../src/rules/run-input.ts';
import { openStores } from '../../src/adapters/postgres/index.ts';
import { createLog } from '../../src/log/log.ts';
import type { ClosedRuns, HistoryPage, HistoryReader } from '../../src/ports/history.ts';
import type { Logger } from '../../src/ports/logger.ts';
import type { RunRow } from '../../src/ports/runs.ts';
import type { Stores } from '../../src/ports/stores.ts';
import type { HistoryEvent } from '../../src/translate/translate.ts';
import type { HistoryBuilder } from './histories.ts';
import { pgliteDatabase } from './databases.ts';
import { runRef } from './run-ref.ts';
import { sharedDatabase } from './shared-postgres.ts';

export const silentLogger: Logger = { debug() {}, info() {}, warn() {}, error() {} };

function runInput(runId: string): RunInput {
  return {
    runId,
    tenant: 'default',
    subject: subjectOf('api-key', 'default', 'tester'),
    idSeed: runId,
    translateVersion: 1,
    header: { sessionId: runId, correlationId: runId },
    definition: {
      id: 'w',
      name: 'W',
      version: '1',
      nodes: [
        {
          id: 'n',
          typeId: 'core.noop',
          name: 'n',
          position: { x: 0, y: 0 },
          config: {},
          inputs: {},
        },
      ],
      edges: [],
      triggers: [],
      variables: [
        { name: 'amount', type: 'number' },
        { name: 'secret', type: 'string', sensitive: true },
      ],
      metadata: {},
      settings: {},
    },
    source: 'workflow-node',
    variables: { amount: 5, secret: 'hunter2' },
    configurable: {},
    agents: {},
    limits: { maxNodeExecutions: 100, maxRunDurationMs: 1_000_000, interruptTimeoutMs: 1_000_000 },
    policy: { escalation: true, verbosity: 'summary' },
    era: 2,
    revision: 1,
  };
}

export function runRow(runId: string): RunRow {
  return { ...runRef(runId), workflowId: 'w', input: runInput(runId), createdAtMs: 500 };
}

/** On a PGlite of their own. */
export async function openTestStores(): Promise<Stores> {
  return openStores({ database: await pgliteDatabase(), logger: silentLogger });
}

/** On the test run's PostgreSQL where there is one, which costs a tenth; else on a PGlite of their own. */
export async function openAnyStores(): Promise<Stores> {
  const url = await sharedDatabase();
  if (url === undefined) return openTestStores();
  return openStores({ database: { kind: 'postgres', url }, logger: silentLogger });
}

/** Registers a run whose start is confirmed with `temporalRunId`. */
export async function registerRun(
  stores: Stores,
  runId: string,
  temporalRunId = `${runId}-t1`,
): Promise<void> {
  await stores.runs.accept(runRow(runId));
  await stores.runs.markStarted(runRef(runId), temporalRunId);
}

/** A run whose start is confirmed, with a log that reads a history of its own; nothing is in that yet. */
export async function newLogRun(stores: Stores) {
  const runId = randomUUID();
  const history = new ScriptedHistory();
  const log = createLog({ stores, history, logger: silentLogger, processId: 'p1' });
  await registerRun(stores, runId);
  return { runId, run: runRef(runId), segment: `${runId}-t1`, history, log };
}

/** A HistoryReader over built histories, of which the test lets batches become visible one by one. */
export class ScriptedHistory implements HistoryReader {
  /** temporalRunId -> what there is; `visible` batches of it can be read. */
  readonly segments = new Map<string, { batches: HistoryEvent[][]; visible: number }>();
  /** Batches per page. */
  pageBatches = Infinity;
  reads = 0;
  failure: HostError | undefined;
  /** Once: the read begins at the start of the segment. */
  refusesNextToken = false;
  ended: ClosedRuns = { runIds: [], newestMs: 0 };
  /** Runs before each read. */
  onRead: (temporalRunId: string) => Promise<void> = async () => {};
  readonly #parked = new Set<() => void>();

  add(temporalRunId: string, history: HistoryBuilder, visible = Infinity): void {
    this.segments.set(temporalRunId, { batches: history.batches, visible });
  }

  show(temporalRunId: string, visible = Infinity): void {
    const segment = this.segments.get(temporalRunId);
    if (segment) segment.visible = visible;
    for (const wake of this.#parked) wake();
  }

  /** As when retention is over. */
  forget(temporalRunId: string): void {
    this.segments.delete(temporalRunId);
  }

  #read(temporalRunId: string, token: string): HistoryPage {
    const segment = this.segments.get(temporalRunId);
    if (!segment) throw new HostError('history_missing');
    const from = parseInt(token || '0', 10);
    const to = Math.min(segment.visible, segment.batches.length, from + this.pageBatches);
    const atTail = from === to;
    // As the server does: the first answer at the tail has another token, the next the same.
    const next = atTail ? `${to} at the tail` : String(to);
    return { events: segment.batches.slice(from, to).flat(), token: next, atTail };
  }

  async page(
    _runId: string,
    temporalRunId: string,
    token: string,
    waitMs: number,
  ): Promise<HistoryPage> {
    this.reads += 1;
    await this.onRead(temporalRunId);
    if (this.failure) throw this.failure;
    const page = this.#read(temporalRunId, this.refusesNextToken ? '' : token);
    this.refusesNextToken = false;
    if (page.events.length > 0 || waitMs === 0) return page;
    await new Promise<void>((resolve) => {
      const done = () => {
        clearTimeout(timer);
        this.#parked.delete(done);
        resolve();
      };
      const timer = setTimeout(done, waitMs);
      this.#parked.add(done);
    });
    return this.#read(temporalRunId, token);
  }

  async raw(_runId: string, temporalRunId: string): Promise<Uint8Array> {
    const events = this.#read(temporalRunId, '').events as HistoryEvent[];
    const { History } = proto.temporal.api.history.v1;
    return History.encode(History.fromObject({ events })).finish();
  }

  async decode(raw: Uint8Array): Promise<readonly HistoryEvent[]> {
    return proto.temporal.api.history.v1.History.decode(raw).events;
  }

  async closedSince(_sinceMs: number): Promise<ClosedRuns> {
    return this.ended;
  }
}
