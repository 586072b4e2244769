// What the store suites start from: runs, rows and deltas with ids of their own, so that suites share a database.
import { subjectOf } from '../../src/rules/subject.ts';
import { randomUUID } from 'node:crypto';
import { deltaKey, eventIdOf } from '../../src/rules/ids.ts';
import type { RunInput } from '../../src/rules/run-input.ts';
import type { EffectIdentity } from '../../src/ports/effects.ts';
import type { IdempotencyClaim } from '../../src/ports/idempotency.ts';
import type { AppendBatch, Head, NewDelta, NewRow } from '../../src/ports/log.ts';
import type { NewRun, RunRef, RunSummary } from '../../src/ports/runs.ts';
import type { Stores } from '../../src/ports/stores.ts';
import { runRef } from '../support/run-ref.ts';
import { patient } from '../support/machine.ts';

/** Opens once, before the suite's tests; tests only call the function. */
export type GivenStores = () => Stores;

export function newId(prefix: string): string {
  return `${prefix}-${randomUUID()}`;
}

export function runInput(runId: string, tenant: string): RunInput {
  return {
    runId,
    tenant,
    subject: subjectOf('api-key', 'default', 'tester'),
    idSeed: runId,
    translateVersion: 1,
    header: { sessionId: runId, correlationId: runId },
    definition: {
      id: 'w',
      name: 'w',
      version: '1',
      nodes: [],
      edges: [],
      settings: {},
    } as unknown as RunInput['definition'],
    source: 'workflow-node',
    variables: { z: 1, a: 'ü"\\\u0000' },
    configurable: {},
    tags: ['t1'],
    agents: {},
    limits: { maxNodeExecutions: 10, maxRunDurationMs: 1000, interruptTimeoutMs: 1000 },
    policy: { escalation: true, verbosity: 'summary' },
    era: 2,
    revision: 1,
  };
}

export function newRun(over: Partial<NewRun> = {}): NewRun {
  const runId = over.runId ?? newId('run');
  const tenant = over.tenant ?? 'default';
  return {
    runId,
    tenant,
    workflowId: 'w',
    input: runInput(runId, tenant),
    createdAtMs: Date.now(),
    ...over,
  };
}

const tenants = new Map<string, string>();

/** The ref of a run that `startedRun` gave; of any other, one of tenant `default`. */
export function refTo(runId: string): RunRef {
  return runRef(runId, tenants.get(runId));
}

/** Accepted and started: its head stands behind event 0 of segment `T1`. */
export async function startedRun(stores: Stores, over: Partial<NewRun> = {}): Promise<string> {
  const run = newRun(over);
  tenants.set(run.runId, run.tenant);
  await stores.runs.accept(run);
  await stores.runs.markStarted(refTo(run.runId), 'T1');
  return run.runId;
}

export function newClaim(over: Partial<IdempotencyClaim> = {}): IdempotencyClaim {
  const asked = { endpoint: 'POST /v1/runs', target: [], requestDigest: 'sha256:one' };
  return { ...asked, key: newId('key'), ...over };
}

export function entry(runId: string, key: string, over: Partial<NewRow> = {}): NewRow {
  return {
    runId,
    key,
    eventId: eventIdOf(runId, key),
    type: 'variable.changed',
    payload: JSON.stringify({ key }),
    timestampMs: 1000,
    ...over,
  };
}

export function delta(
  runId: string,
  activityId: string,
  k: number,
  over: Partial<NewRow> = {},
): NewDelta {
  return {
    k,
    row: entry(runId, deltaKey(activityId, k), { type: 'agent.reasoning.delta', ...over }),
  };
}

/** Summary of a run that waits for nobody. */
export const NO_WAITS: RunSummary = { waits: [] };

/** One history event further, with these rows. */
export function batchAfter(
  head: Head,
  rows: readonly NewRow[],
  over: Partial<AppendBatch> = {},
): AppendBatch {
  const { temporalRunId, historyEventId, token } = head;
  return {
    run: refTo(head.runId),
    behind: { temporalRunId, historyEventId, token },
    cursor: {
      temporalRunId,
      historyEventId: historyEventId + 1,
      token: `after-${historyEventId + 1}`,
    },
    rows,
    closedBlocks: [],
    status: 'running',
    closed: false,
    translateState: { seen: historyEventId + 1 },
    fold: (snapshot) => snapshot,
    summary: () => NO_WAITS,
    ...over,
  };
}

/** An age that of all runs in the past only those have that were accepted before the epoch. */
export function sinceTheEpoch(): number {
  return Date.now() + 5_000;
}

export async function headOf(stores: Stores, runId: string): Promise<Head> {
  const head = await stores.log.head(refTo(runId));
  if (!head) throw new Error(`no head of ${runId}`);
  return head;
}

/** Of an effect of a run that is no child. */
export function identityOf(runId: string, over: Partial<EffectIdentity> = {}): EffectIdentity {
  return {
    ...{ tenant: 'default', runId, rootRunId: runId, series: runId },
    ...{ nodeId: 'n', visit: 1, toolId: 't', argsHash: 'h1', occurrence: 0 },
    ...over,
  };
}

/** Appends until it stands: another appender may be faster. */
export async function appendRows(
  stores: Stores,
  runId: string,
  keys: readonly string[],
): Promise<void> {
  for (;;) {
    const head = await headOf(stores, runId);
    const outcome = await stores.log.append(
      batchAfter(
        head,
        keys.map((key) => entry(runId, key)),
      ),
    );
    if (outcome.kind === 'appended') return;
    if (outcome.kind === 'closed') throw new Error(`run ${runId} is closed`);
  }
}

/** Resolves when `seen` answers true; fails after 10 s. */
export async function eventually(
  seen: () => boolean | Promise<boolean>,
  what: string,
): Promise<void> {
  const deadline = Date.now() + patient(30_000);
  while (!(await seen())) {
    if (Date.now() > deadline) throw new Error(`not seen: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
