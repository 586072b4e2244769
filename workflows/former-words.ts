// What people said to the source of a fork about effects (architecture §5): a word that has a call performed holds for the
// run that was asked. Where the fork leaves its source that word is dropped: the call is in doubt, or goes by the record.
import { INHERITED_EPOCH } from '../src/rules/run-input.ts';
import type { CallToolInput } from '../activities/contract.ts';
import type { Invocation } from './agent-work.ts';
import type { RunState } from './frames.ts';
import type { ActivityName, StepRequest } from './steps.ts';

/** Frames keep no such word, nor ids and epochs of the source's ledger; an answer that no frame has taken yet is marked. */
export function dropWords({ frames, interrupts }: RunState): void {
  for (const { data } of Object.values(frames)) {
    const { invocation } = data as { invocation?: Pick<Invocation, 'calls'> };
    for (const call of invocation?.calls ?? []) {
      if (call.resolution?.kind === 'perform') call.resolution = undefined;
      const { doubt } = call;
      if (doubt?.epoch !== undefined) doubt.epoch = INHERITED_EPOCH;
      if (doubt?.shown) {
        doubt.askedAbout = doubt.shown.length;
        delete doubt.shown;
      }
    }
  }
  for (const open of Object.values(interrupts))
    if (typeof open.resolution === 'object')
      open.resolution = { ...open.resolution, isRecorded: true };
}

/** A step that was put together before the fork left its source. */
export function withoutWord<Name extends ActivityName>(
  request: StepRequest<Name>,
): StepRequest<Name> {
  const { resolution, ...input } = request.input as Partial<Pick<CallToolInput, 'resolution'>>;
  if (resolution?.kind !== 'perform') return request;
  return { ...request, input: input as typeof request.input };
}
