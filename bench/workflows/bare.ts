// What a run is compared with: a Temporal workflow that schedules the same activities with arguments of the same size
// and does nothing else. Runs in the sandbox.
import {
  condition,
  defineQuery,
  defineUpdate,
  scheduleActivity,
  setHandler,
  type ActivityOptions,
} from '@temporalio/workflow';

export interface BareActivity {
  readonly type: string;
  readonly activityId: string;
  readonly nodeId: string;
  /** Size of its argument as JSON. */
  readonly inputBytes: number;
}

export interface BarePlan {
  readonly caseName: string;
  /** One after the other; the activities of one wave at once. */
  readonly waves: readonly (readonly BareActivity[])[];
  /** Fills the plan up to the size of a run's start input. */
  readonly padding: string;
}

/** As workflows/activity-options.ts has them. */
const OPTIONS: ActivityOptions = {
  startToCloseTimeout: 30_000,
  heartbeatTimeout: 5_000,
  retry: {
    initialInterval: 1_000,
    backoffCoefficient: 2,
    maximumInterval: 30_000,
    maximumAttempts: 5,
  },
};

export async function bareWorkflow({ caseName, waves }: BarePlan): Promise<void> {
  for (const wave of waves) {
    await Promise.all(wave.map((activity) => perform(caseName, activity)));
  }
}

function perform(caseName: string, activity: BareActivity): Promise<unknown> {
  const { type, activityId, nodeId, inputBytes } = activity;
  const context = { workflowId: caseName, nodeId, activityId };
  const padding = 'x'.repeat(
    Math.max(0, inputBytes - JSON.stringify({ context, padding: '' }).length),
  );
  return scheduleActivity(type, [{ context, padding }], { ...OPTIONS, activityId });
}

const answer = defineUpdate('answer');
const waits = defineQuery<boolean>('waits');

/** What a run that asks a human is compared with. */
export async function bareWaitingWorkflow(): Promise<void> {
  let answered = false;
  setHandler(answer, () => {
    answered = true;
  });
  setHandler(waits, () => !answered);
  await condition(() => answered);
}
