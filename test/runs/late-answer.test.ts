// An answer to a question that is over is told what became of it (interrupt.md), as the log has it.
import { expect, test } from 'vitest';
import type { JsonObject } from '../../src/rules/json.ts';
import { requireOpen } from '../../src/runs/answer.ts';
import { EMPTY_RUN } from '../../src/log/fold-rows.ts';
import { subjectOf } from '../../src/rules/subject.ts';
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
      rows: async function* () {
        yield rows;
      },
    },
  } as unknown as Parameters<typeof requireOpen>[0];
  return requireOpen(deps, runRef('r'), QUESTION).then(() => undefined);
}

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
