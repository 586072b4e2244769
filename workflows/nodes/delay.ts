// core.delay: a durable pause. Four spellings of the duration are in use; config wins over the input
// (conformance/fixtures.md).
import { stepKey } from '../steps.ts';
import { inputsOf } from '../values.ts';
import { nodeFailure, type NodeKind } from '../context.ts';

export const delay: NodeKind = async (visit) => {
  const { ms, durationMs, delayMs } = visit.node.config as Record<string, unknown>;
  const value = ms ?? durationMs ?? delayMs ?? inputsOf(visit).delayMs ?? 0;
  if (typeof value !== 'number' || !Number.isFinite(value) || value < 0) {
    throw nodeFailure('validation_error', 'The delay is not a number of milliseconds.');
  }
  const { data } = visit.frame;
  const { steps } = visit.run;
  const key = stepKey(visit, 'delay');
  data.untilMs ??= steps.now(key) + value;
  await steps.wait(key, data.untilMs as number, () => false);
  return { kind: 'completed', outputs: {} };
};
