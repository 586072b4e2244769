// For golden histories: outermost workflow interceptor that tells which carriers the workflow code of today puts on its
// commands. Temporal's own replay check compares commands by kind, not by content: a changed emission passes it.
import { defaultPayloadConverter, type Payload } from '@temporalio/common';
import { proxySinks, type Sinks, type WorkflowInterceptorsFactory } from '@temporalio/workflow';
import {
  CARRIER_MEMO_FIELD,
  CARRIER_METADATA_KEY,
  type Carrier,
} from '../../../src/rules/journal.ts';

export interface GoldenSinks extends Sinks {
  golden: { carriers(carriers: readonly Carrier[]): void };
}

const { golden } = proxySinks<GoldenSinks>();

export const interceptors: WorkflowInterceptorsFactory = () => ({
  internals: [
    {
      concludeActivation(input, next) {
        const out = next(input);
        const payloads = out.commands.flatMap((command): (Payload | null | undefined)[] => [
          ...(command.scheduleActivity?.arguments ?? []),
          command.modifyWorkflowProperties?.upsertedMemo?.fields?.[CARRIER_MEMO_FIELD],
          command.completeWorkflowExecution?.result,
          ...(command.continueAsNewWorkflowExecution?.arguments ?? []),
        ]);
        const carriers = payloads.filter(
          (payload): payload is Payload => payload?.metadata?.[CARRIER_METADATA_KEY] !== undefined,
        );
        if (carriers.length > 0) {
          golden.carriers(
            carriers.map((payload) => defaultPayloadConverter.fromPayload<Carrier>(payload)),
          );
        }
        return out;
      },
    },
  ],
});
