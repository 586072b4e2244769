// An answer to a question that is over is told what became of it (interrupt.md), as the log has it.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { codeOf } from '../../src/rules/errors.ts';
import type { JsonObject } from '../../src/rules/json.ts';
import type { LogRow, NewRow } from '../../src/ports/log.ts';
import type { Stores } from '../../src/ports/stores.ts';
import { requireOpen } from '../../src/runs/answer.ts';
import { createLog } from '../../src/log/log.ts';
import { EMPTY_RUN } from '../../src/log/fold-rows.ts';
import { subjectOf } from '../../src/rules/subject.ts';
import { batchAfter, entry, headOf, refTo, startedRun } from '../contract/given.ts';
import { openAnyStores, ScriptedHistory, silentLogger } from '../support/log-parts.ts';
import { runRef } from '../support/run-ref.ts';

const ADA = subjectOf('session', 'default', 'ada');
const QUESTION = { nodeId: 'gate', interruptId: 'int-1' };

/** What is told of a question that ended so, and nothing else. */
function refusal(resolved: JsonObject): Promise<void> {
  const rows = [
    ['node.suspended', { ...QUESTION, kind: 'approval', key: 'gate:1:0:ask' }],
    ['interrupt.resolved', { ...QUESTION, kind: 'approval', ...resolved }],
  ].map(([type, payload], sequence) => ({
    type,
    sequence,
    nodeId: 'gate',
    payload: JSON.stringify(payload),
  }));
  const head = { snapshot: EMPTY_RUN, closed: false };
  const deps = {
    log: {
      fresh: async () => ({ head, stale: false }),
      questions: async function* () {
        yield rows;
      },
    },
  } as unknown as Parameters<typeof requireOpen>[0];
  return requireOpen(deps, runRef('r'), QUESTION).then(() => undefined);
}

describe('in a long log', () => {
  let stores: Stores;
  beforeAll(async () => {
    stores = await openAnyStores();
  });
  afterAll(() => stores.close());

  /** With this many rows that have nothing to do with the question, and how many rows are read for the answer. */
  async function askedOf(lines: number, end: readonly NewRow[]) {
    const runId = await startedRun(stores);
    const run = refTo(runId);
    const noise = (from: string) =>
      Array.from({ length: lines / 2 }, (_, at) => entry(runId, `${from}-${at}`, { nodeId: 'n' }));
    const told = (type: string, nodeId: string, more: JsonObject) =>
      entry(runId, `${type}-${nodeId}`, { type, nodeId, payload: JSON.stringify(more) });
    const asked = { kind: 'approval', key: 'gate:1:0:ask' };
    const rows = [
      ...noise('before'),
      told('node.suspended', 'gate', { ...QUESTION, ...asked }),
      told('node.suspended', 'other', { nodeId: 'other', interruptId: 'int-2', ...asked }),
      ...noise('after'),
      ...end.map((row) => ({ ...row, runId })),
    ];
    const head = await headOf(stores, runId);
    await stores.log.append(batchAfter(head, rows, { status: 'cancelled', closed: true }));
    let read = 0;
    const counted = async (found: Promise<readonly LogRow[]>) => {
      read += (await found).length;
      return found;
    };
    const log = createLog({
      stores: {
        ...stores,
        log: {
          ...stores.log,
          read: (...query) => counted(stores.log.read(...query)),
          questions: (...query) => counted(stores.log.questions(...query)),
        },
      },
      ...{ history: new ScriptedHistory(), logger: silentLogger, processId: 'p' },
    });
    const code = await requireOpen({ log }, run, QUESTION).catch((error: unknown) => codeOf(error));
    log.close();
    return { code, read };
  }

  test.each([
    [
      'its run was cancelled',
      [entry('r', 'end', { type: 'run.cancelled' })],
      'interrupt_cancelled',
    ],
    ['nobody answered', [], 'interrupt_gone'],
  ] as const)('no more is read than what was asked: %s', async (_how, end, code) => {
    expect(await askedOf(3_000, end)).toEqual({ code, read: 1 + end.length });
  });
});

test.each<[string, JsonObject, string]>([
  ['answered', { resumeValue: {}, resolvedBy: ADA }, 'interrupt_already_resolved'],
  ['its time was over', { outcome: 'rejected', reason: 'timeout' }, 'interrupt_expired'],
  [
    "its node's time was over",
    { outcome: 'rejected', reason: 'node_timeout' },
    'interrupt_expired',
  ],
  ['its node failed', { outcome: 'rejected', reason: 'internal_error' }, 'interrupt_gone'],
])('nobody is said to have answered who has not: %s', async (_how, resolved, code) => {
  await expect(refusal(resolved)).rejects.toMatchObject({ code });
});
