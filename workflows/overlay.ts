// A branch's overlay (replay.md §Modes), where its run lives: other pins, another configuration, an answer in the place of
// the one that its source was given.
import type { Overlay } from '../src/rules/overlay.ts';
import { mergedOverlay, withOverlay } from '../src/rules/overlay.ts';
import { verbosityOf, type RunInput } from '../src/rules/run-input.ts';
import type {
  CallToolInput,
  InferTurnInput,
  RecordedAnswersInput,
} from '../activities/contract.ts';
import type { Run } from './context.ts';
import type { ActivityName, StepRequest } from './steps.ts';

/** From now on. */
export function takeOverlay(run: Run, overlay: Overlay | undefined): void {
  if (!overlay) return;
  run.state.overlay = mergedOverlay(run.state.overlay, overlay);
  run.input = withOverlay(run.input, overlay);
  run.state.models = { ...run.state.models, ...overlay.models };
}

/** Members of requests that an overlay is about. */
type Overlaid = Partial<
  Pick<InferTurnInput, 'agent' | 'model' | 'configurable' | 'said' | 'verbosity'>
> &
  Partial<Pick<CallToolInput, 'resolution'>> &
  Partial<Pick<RecordedAnswersInput, 'recordedBy' | 'isLeft'>>;

interface OverlaidStep {
  readonly name: ActivityName;
  readonly activityId: string;
  readonly overlay: Overlay | undefined;
  readonly policy: RunInput['policy'];
}

/** What a step is asked: it may have been put together before the run left its source. */
export function overlaid<Name extends ActivityName>(
  request: StepRequest<Name>,
  { name, overlay, activityId, policy }: OverlaidStep,
): StepRequest<Name> {
  if (!overlay) return request;
  const input = request.input as Overlaid;
  const { agent, model, configurable, verbosity } = input;
  const { recordedAnswers } = overlay;
  const changed: Overlaid = {
    ...(agent ? { agent: overlay.agents?.[agent.agentId] ?? agent } : {}),
    ...(agent && model ? { model: overlay.models?.[agent.modelClass] ?? model } : {}),
    ...(configurable ? { configurable: overlay.configurable ?? configurable } : {}),
    ...(verbosity && overlay.configurable
      ? { verbosity: verbosityOf({ configurable: overlay.configurable, policy }) }
      : {}),
    ...(name === 'recordedAnswers' && recordedAnswers ? { recordedBy: recordedAnswers } : {}),
    // People are asked: nothing is read, also where the record is gone.
    ...(name === 'recordedAnswers' && recordedAnswers === null ? { isLeft: true } : {}),
  };
  const { answer, recordedTools } = overlay;
  // Nobody is waited for, where nothing is performed.
  const own = { ...request, queue: undefined };
  if (answer === undefined || answer.kind === 'message' || answer.activityId !== activityId) {
    if ((name !== 'callTool' && name !== 'startChildren') || !recordedTools)
      return { ...request, input: { ...request.input, ...changed } };
    return { ...own, input: { ...request.input, ...changed, recordedBy: recordedTools } };
  }
  const answered: Overlaid =
    answer.kind === 'said'
      ? { said: answer.final }
      : { resolution: { kind: 'happened', outcome: answer.outcome, isSupposed: true } };
  return { ...own, input: { ...request.input, ...changed, ...answered } };
}
