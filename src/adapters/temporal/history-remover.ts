// Deletes histories of runs that have expired (architecture §3.7). The server does so behind its answer, and knows nothing
// of an execution then; one that it does not know, or does not know any more, is what was asked for.
import type { Connection } from '@temporalio/client';
import type { HistoryRemover } from '../../ports/history.ts';
import { GRPC, grpcStatus, isNamespaceUnknown, rpc, toHostError } from './rpc.ts';

const DEADLINE_MS = 5_000;
const TRIES = 5;

export interface HistoryRemoverOptions {
  readonly connection: Connection;
  readonly namespace: string;
}

export function createHistoryRemover({
  connection,
  namespace,
}: HistoryRemoverOptions): HistoryRemover {
  return {
    async remove(runId, temporalRunId) {
      try {
        await rpc(connection, { deadlineMs: DEADLINE_MS, tries: TRIES }, () =>
          connection.workflowService.deleteWorkflowExecution({
            namespace,
            workflowExecution: { workflowId: runId, runId: temporalRunId },
          }),
        );
      } catch (error) {
        if (!isForgotten(error)) throw toHostError(error);
      }
    },
  };
}

/** The in-memory server deletes none: they end with it. */
function isForgotten(error: unknown): boolean {
  const code = grpcStatus(error)?.code;
  return code === GRPC.UNIMPLEMENTED || (code === GRPC.NOT_FOUND && !isNamespaceUnknown(error));
}
