// Workflow code in the SDK's own sandbox, without worker and server: the real bundle, the real interceptors, and
// activations as Temporal's core gives them (coresdk.workflow_activation), from whoever stands for it: a replay of a
// bundle (offline.ts), and the model of Temporal that tests have.
import './workflow-thread.js';
import { readFile } from 'node:fs/promises';
import { TypedSearchAttributes } from '@temporalio/common';
import proto, { type coresdk } from '@temporalio/proto';
import { parseWorkflowCode } from '@temporalio/worker/lib/worker.js';
import { ReusableVMWorkflowCreator } from '@temporalio/worker/lib/workflow/reusable-vm.js';
import { RUN_TASK_QUEUE, RUN_WORKFLOW } from '../../rules/run-input.ts';
import { ringOf } from '../../rules/key-ring.ts';
import { workflowBundle } from './bundle.ts';
import { dataConverter } from './codec.ts';

export type Job = coresdk.workflow_activation.IWorkflowActivationJob;
export type Command = coresdk.workflow_commands.IWorkflowCommand;

export interface Activation {
  readonly jobs: readonly Job[];
  readonly nowMs: number;
  readonly isReplaying: boolean;
  readonly historyLength: number;
  /** What the SDK noted of itself up to this task. */
  readonly flags: readonly number[];
}

/** One execution in memory, as a worker keeps it. */
export interface Instance {
  /** Throws what failed the workflow task. */
  activate(activation: Activation): Promise<{ commands: Command[]; flags: number[] }>;
  dispose(): Promise<void>;
}

export interface Isolate {
  start(workflowId: string, temporalRunId: string, startedAtMs: number): Promise<Instance>;
  close(): Promise<void>;
}

const timestampOf = (ms: number) => ({
  seconds: Math.floor(ms / 1000),
  nanos: (ms % 1000) * 1_000_000,
});

/** Everything that a workflow is told of itself. */
function infoOf(workflowId: string, runId: string, startedAtMs: number) {
  const start = new Date(startedAtMs);
  return {
    workflowId,
    runId,
    workflowType: RUN_WORKFLOW,
    searchAttributes: {},
    typedSearchAttributes: new TypedSearchAttributes(),
    taskQueue: RUN_TASK_QUEUE,
    namespace: 'default',
    firstExecutionRunId: runId,
    startTime: start,
    runStartTime: start,
    taskTimeoutMs: 10_000,
    attempt: 1,
    historyLength: 0,
    historySize: 0,
    continueAsNewSuggested: false,
    targetWorkerDeploymentVersionChanged: false,
    unsafe: {
      now: () => 0,
      isReplaying: false,
      isReplayingHistoryEvents: false,
      random: { random: () => 0 },
    },
  };
}

export interface IsolateOptions {
  /** Where the bundle of workflow code is kept. */
  readonly cacheDir: string;
  readonly activityNames: readonly string[];
  /**
   * Longest time in ms that workflow code may take without coming to a wait. Absent: any, since the watchdog that the SDK
   * starts for every call into the sandbox costs more than the call.
   */
  readonly limitMs?: number;
}

export async function openIsolate(options: IsolateOptions): Promise<Isolate> {
  const { cacheDir, activityNames, limitMs } = options;
  const { failureConverterPath } = dataConverter({ ring: ringOf([]) });
  const { codePath } = await workflowBundle({ cacheDir, failureConverterPath });
  const bundle = parseWorkflowCode(await readFile(codePath, 'utf8'), codePath);
  const creator = await ReusableVMWorkflowCreator.create(
    bundle,
    // Its type knows no absent limit; Node's does.
    limitMs as number,
    new Set(activityNames),
  );
  return {
    async start(workflowId, temporalRunId, startedAtMs) {
      const workflow = await creator.createWorkflow({
        info: infoOf(workflowId, temporalRunId, startedAtMs) as never,
        randomnessSeed: [1, 2, 3, 4, 5, 6, 7, 8],
        now: startedAtMs,
        showStackTraceSources: false,
        failureExceptionTypeNames: [],
      });
      return {
        async activate({ jobs, nowMs, isReplaying, historyLength, flags }) {
          const completion = await workflow.activate(
            proto.coresdk.workflow_activation.WorkflowActivation.fromObject({
              runId: temporalRunId,
              timestamp: timestampOf(nowMs),
              isReplaying,
              historyLength,
              historySizeBytes: 0,
              jobs: [...jobs],
              availableInternalFlags: [...flags],
            }),
          );
          await workflow.getAndResetSinkCalls();
          if (completion.failed)
            throw new Error(JSON.stringify(completion.failed.failure, null, 1));
          const { commands = [], usedInternalFlags = [] } = completion.successful ?? {};
          return { commands: commands ?? [], flags: usedInternalFlags ?? [] };
        },
        dispose: () => workflow.dispose(),
      };
    },
    close: () => creator.destroy(),
  };
}
