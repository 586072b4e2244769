// The CohortEngine port over Temporal's client: a cohort's workflow is started and cancelled beside those of runs, under an
// id that no run has.
import {
  Client,
  WorkflowExecutionAlreadyStartedError,
  WorkflowNotFoundError,
} from '@temporalio/client';
import { COHORT_WORKFLOW } from '../../rules/cohort.ts';
import { RUN_TASK_QUEUE } from '../../rules/run-input.ts';
import type { CohortEngine } from '../../ports/cohorts.ts';
import type { RunEngineOptions } from './engine.ts';
import { GRPC, grpcStatus, rpc, toHostError } from './rpc.ts';

const START_DEADLINE_MS = 5_000;
const CANCEL_DEADLINE_MS = 2_000;
/** Tries of one call; the deadline ends them earlier. */
const TRIES = 20;

export function createCohortEngine(options: RunEngineOptions): CohortEngine {
  const { connection, namespace, dataConverter, taskQueue = RUN_TASK_QUEUE } = options;
  const { workflow } = new Client({ connection, namespace, dataConverter });
  return {
    async start(input) {
      try {
        await rpc(connection, { deadlineMs: START_DEADLINE_MS, tries: TRIES }, () =>
          workflow.start(COHORT_WORKFLOW, {
            workflowId: input.cohortId,
            taskQueue,
            args: [input],
            workflowIdReusePolicy: 'REJECT_DUPLICATE',
            workflowIdConflictPolicy: 'FAIL',
          }),
        );
      } catch (error) {
        if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw toHostError(error);
      }
    },
    async cancel(cohortId) {
      try {
        const handle = workflow.getHandle(cohortId);
        const limits = { deadlineMs: CANCEL_DEADLINE_MS, tries: TRIES };
        await rpc(connection, limits, () => handle.cancel());
        // A server takes the request for a workflow that has ended as well.
        const { status } = await rpc(connection, limits, () => handle.describe());
        return status.name === 'RUNNING';
      } catch (error) {
        if (error instanceof WorkflowNotFoundError || grpcStatus(error)?.code === GRPC.NOT_FOUND)
          return false;
        throw toHostError(error);
      }
    },
  };
}
