// What stands below a run (seed 003 §3.4): the runs that it started, and theirs, and what each of them asks. As it is
// stored: no history is read for a look over a family.
import { MAY_WAIT } from '../rules/status.ts';
import { unreadableFor } from '../rules/unreadable.ts';
import type { FamilyMember } from '../ports/families.ts';
import type { RunRow } from '../ports/runs.ts';
import type { Stores } from '../ports/stores.ts';
import { askedInterrupts, type OpenInterrupt } from '../log/fold.ts';
import type { RunsDeps } from './deps.ts';

/** Runs of a family that are looked at, oldest first. */
const MAX_BELOW = 500;
/** Of those, runs whose questions are read. */
const MAX_ASKING = 50;

export interface RunBelow extends FamilyMember {
  /** Oldest first. Absent: it may ask, and was not looked at, or cannot be read. */
  readonly asks?: readonly OpenInterrupt[];
}

interface BelowDeps {
  readonly stores: Pick<Stores, 'runs' | 'families'>;
  readonly log: Pick<RunsDeps['log'], 'head'>;
}

/** Oldest first. `more`: there are runs that were not looked at. */
export async function runsBelow(
  { stores, log }: BelowDeps,
  run: RunRow,
): Promise<{ readonly runs: readonly RunBelow[]; readonly more: boolean }> {
  const { correlationId } = run.input.header;
  const family = await stores.families.descendants(run.tenant, correlationId, MAX_BELOW + 1);
  const members = descendantsOf(run.runId, family.slice(0, MAX_BELOW));
  const runs: RunBelow[] = [];
  let asking = 0;
  for (const member of members) {
    if (!MAY_WAIT.has(member.status)) runs.push({ ...member, asks: [] });
    else if (asking++ >= MAX_ASKING) runs.push(member);
    else {
      runs.push({ ...member, ...(await asksOf({ stores, log }, member)) });
    }
  }
  return { runs, more: family.length > MAX_BELOW };
}

/** One that cannot be read may ask. */
async function asksOf(
  { stores, log }: BelowDeps,
  { run }: FamilyMember,
): Promise<Pick<RunBelow, 'asks' | 'unreadable'>> {
  try {
    const [row, head] = [await stores.runs.find(run.tenant, run.runId), await log.head(run)];
    return { asks: row && head ? askedInterrupts(head, row) : [] };
  } catch (error) {
    const unreadable = unreadableFor(error);
    if (!unreadable) throw error;
    return { unreadable };
  }
}

/** Whoever accepted a child may have had another clock than who accepted its parent: neither need come first. */
function descendantsOf(runId: string, family: readonly FamilyMember[]): FamilyMember[] {
  const known = new Set([runId]);
  let before: number;
  do {
    before = known.size;
    for (const member of family) if (known.has(member.parentRunId)) known.add(member.runId);
  } while (known.size > before);
  return family.filter(({ parentRunId }) => known.has(parentRunId));
}
