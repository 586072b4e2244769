// The activities of a cohort (architecture §6): rules and rows are those of src/runs; here is the pace at which a member is
// looked at, and what keeps that alive. A worker that ends hands its members to others: only rows say that one was cancelled.
import { Context } from '@temporalio/activity';
import type { MemberName } from '../src/ports/cohorts.ts';
import type { CohortMembers } from '../src/runs/cohort-members.ts';
import { BackOff, rest } from '../src/system/time.ts';
import type { CohortActivities } from './contract.ts';
import { guarded } from './failures.ts';
import { beating } from './heartbeat.ts';
import type { ActivityPorts } from './ports.ts';

/** ms between two looks at a fork. */
const FIRST_LOOK_MS = 25;
const LONGEST_LOOK_MS = 500;
/** Looks in vain behind which history itself is asked. */
const LOOKS = 20;

type CohortPorts = Pick<ActivityPorts, 'logger' | 'redactor'> & { readonly cohorts: CohortMembers };

export function cohortActivities(ports: CohortPorts): CohortActivities {
  const { cohorts } = ports;
  return {
    replayMember: (name) => guarded(ports, () => beating(() => seeMembers(ports, [name]))),
    endCohort: ({ tenant, cohortId, isCancelled }) =>
      guarded(ports, () =>
        beating(async () => {
          const left = await cohorts.left(tenant, cohortId, isCancelled);
          await seeMembers(ports, left);
          await cohorts.end(tenant, cohortId);
        }),
      ),
  };
}

/**
 * In turns until each has come to its end: one that is long, or that cannot be settled, keeps no other waiting. Throws what
 * the first failed with where all that are left do.
 */
async function seeMembers({ cohorts }: CohortPorts, names: readonly MemberName[]): Promise<void> {
  const { cancellationSignal } = Context.current();
  const pauses = new BackOff(FIRST_LOOK_MS, LONGEST_LOOK_MS);
  let left = names;
  for (let looks = 1; ; looks++) {
    const open: MemberName[] = [];
    const failed: unknown[] = [];
    for (const name of left) {
      cancellationSignal.throwIfAborted();
      try {
        if (await cohorts.step(name, looks % LOOKS === 0)) continue;
      } catch (error) {
        failed.push(error);
      }
      open.push(name);
    }
    if (open.length === 0) return;
    if (failed.length === open.length) throw failed[0];
    left = open;
    await rest(pauses.next(), cancellationSignal);
  }
}
