// What a run keeps of values is counted where it is stored (RUN_VALUES_BYTES), in workflow code on plain Node.
import '../support/plain-sandbox.ts';
import { CancelledFailure } from '@temporalio/workflow';
import { expect, it } from 'vitest';
import { nodeState } from '../../workflows/context.ts';
import { heldBytesOf } from '../../workflows/values.ts';
import { beginAnew, visitNode } from '../../workflows/visit.ts';
import { chain, node, runInput } from '../support/definitions.ts';
import { plainRun } from '../support/plain-run.ts';

it('outputs of an attempt that a pause cuts while it waits for room count once', async () => {
  const echo = node('echo', 'core.identity', {
    inputs: { x: { type: 'static', value: 'x'.repeat(1_000) } },
  });
  const plain = plainRun(runInput(chain('cut', [echo])));
  const { run, frame } = plain.visit('echo');
  nodeState(run, 'echo');
  run.heldBytes = heldBytesOf(run.state);
  // Where the outputs are there, and nothing is stated of them yet.
  let isCut = true;
  Object.assign(run.steps, {
    waitForSource: () =>
      frame.phase === 'started' && isCut ? Promise.reject(new CancelledFailure('cut')) : undefined,
  });
  await expect(visitNode(run, frame)).rejects.toThrow('cut');
  beginAnew(run, frame);
  isCut = false;
  expect(await visitNode(run, frame)).toMatchObject({ kind: 'completed' });
  expect(run.heldBytes).toBe(heldBytesOf(run.state));
});
