// What a cohort is (architecture §6): a workflow of its own that has its members forked, so many at a time, until each has
// come to an end or somebody cancels it. It states no journal and is no run; what became of its members stands in rows.
//
//   a member       an activity makes its fork, or finds it, and waits for its end
//   a segment      ends behind MEMBERS_PER_SEGMENT, when none is under way
//   the end        an activity settles what is left: what was cancelled, and what failed again and again
//
// It goes on with whatever build is current (docs/upgrades.md): a change of this file counts as soon as a cohort is open.
import {
  ActivityCancellationType,
  CancellationScope,
  CancelledFailure,
  continueAsNew,
  isCancellation,
  proxyActivities,
  setWorkflowOptions,
  workflowInfo,
} from '@temporalio/workflow';
import type { CohortActivities } from '../activities/contract.ts';
import type { CohortInput } from '../src/rules/cohort.ts';
import { HEARTBEAT_TIMEOUT_MS } from '../src/rules/limits.ts';

/** A history holds few events of each. */
const MEMBERS_PER_SEGMENT = 500;
/** What a member takes besides the time of its fork, in ms: it is read, forked, cancelled and compared. */
const BESIDES_MS = 600_000;
const AUTO_UPGRADE = { versioningBehavior: 'AUTO_UPGRADE' } as const;
const RETRY = { initialInterval: 500, backoffCoefficient: 2, maximumInterval: 30_000 };

// No build that drains waits for it, and who cancels it needs no worker of the build that began it. A worker without a build
// may not say so: the server refuses its tasks.
setWorkflowOptions(
  () => (workflowInfo().currentDeploymentVersion?.deploymentName ? AUTO_UPGRADE : {}),
  cohortWorkflow,
);

export async function cohortWorkflow(input: CohortInput): Promise<void> {
  const { tenant, cohortId, members } = input;
  const next = await replayMembers(input);
  const isCancelled = CancellationScope.current().consideredCancelled;
  if (!isCancelled && next < members)
    return continueAsNew<typeof cohortWorkflow>({ ...input, next });
  await CancellationScope.nonCancellable(() =>
    ending().endCohort({ tenant, cohortId, isCancelled }),
  );
  if (isCancelled) throw new CancelledFailure('cancelled');
}

/** Returns the first member that is left for the next segment. */
async function replayMembers(input: CohortInput): Promise<number> {
  const { tenant, cohortId, members, parallel, membersPerSegment = MEMBERS_PER_SEGMENT } = input;
  const { replayMember } = proxyActivities<CohortActivities>({
    startToCloseTimeout: input.memberTimeoutMs + BESIDES_MS,
    heartbeatTimeout: HEARTBEAT_TIMEOUT_MS,
    // No fork is made any more when the end settles what is left.
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    retry: RETRY,
  });
  const { next: first = 0 } = input;
  const last = Math.min(members, first + membersPerSegment);
  let next = first;
  const lane = async (): Promise<void> => {
    while (next < last) {
      const position = next++;
      try {
        await replayMember({ tenant, cohortId, position });
      } catch (error) {
        // One that cannot be settled does not keep the others back.
        if (isCancellation(error)) return;
      }
    }
  };
  await Promise.all(Array.from({ length: parallel }, lane));
  return next;
}

/** Tried until it is done: nothing waits for it but the cohort's own end. */
function ending(): CohortActivities {
  return proxyActivities<CohortActivities>({
    startToCloseTimeout: BESIDES_MS,
    heartbeatTimeout: HEARTBEAT_TIMEOUT_MS,
    retry: RETRY,
  });
}
