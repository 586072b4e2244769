// The activities of a cohort (architecture §6): rules and rows are those of src/runs; here is the pace at which a member is
// looked at, and what keeps that alive. A worker that ends hands its members to others: only rows say that one was cancelled.
import { Context } from '@temporalio/activity';
import type { MemberName } from '../src/ports/cohorts.ts';
import { codeOf, isOutage } from '../src/rules/errors.ts';
import type { JsonValue } from '../src/rules/json.ts';
import type { CohortMembers, Look } from '../src/runs/cohort-members.ts';
import { BackOff, rest } from '../src/system/time.ts';
import type { CohortActivities } from './contract.ts';
import { guarded } from './failures.ts';
import { beating } from './heartbeat.ts';
import type { ActivityPorts } from './ports.ts';
import { lastDetails, lostTries, ownFailures } from './tries.ts';

/** Tries that one member may fail with, which find what earlier ones did. */
const MEMBER_TRIES = 50;
/** Tries of the end that members may fail with: after these the cohort ends without them. */
const END_TRIES = 20;
/** ms between two looks at a fork. */
const FIRST_LOOK_MS = 25;
const LONGEST_LOOK_MS = 500;
/** Looks in vain behind which history itself is asked. */
const LOOKS = 20;
/** Most ms that pass between two looks as far as a fork's time goes: where more do, nobody was there to help it on. */
const LONGEST_GAP_MS = 5_000;
/** A fork that was told to end, and does not within so many ms, is left to itself: no worker of its build may be there. */
const STOP_LIMIT_MS = 60_000;

type CohortPorts = Pick<ActivityPorts, 'logger' | 'redactor' | 'watch'> & {
  readonly cohorts: CohortMembers;
  /** Tests only. Default STOP_LIMIT_MS. */
  readonly stopLimitMs?: number;
};

export function cohortActivities(ports: CohortPorts): CohortActivities {
  const { cohorts } = ports;
  return {
    replayMember: (name) =>
      guarded(ports, () => beating((tell) => seeMembers(ports, [name], tell)), {
        tries: MEMBER_TRIES,
      }),
    endCohort: ({ tenant, cohortId, isCancelled }) =>
      guarded(
        ports,
        () =>
          beating(async () => {
            const left = await cohorts.left(tenant, cohortId, isCancelled);
            const failures = ownFailures() + lostTries();
            await seeMembers(failures < END_TRIES ? ports : givingUp(ports), left);
            await cohorts.end(tenant, cohortId);
          }),
        { tries: Infinity },
      ),
  };
}

/**
 * In turns until each has come to its end: one that is long, or that cannot be settled, keeps no other waiting. Throws what
 * the first failed with where all that are left do.
 */
async function seeMembers(
  ports: CohortPorts,
  names: readonly MemberName[],
  tell?: (spent: JsonValue) => void,
): Promise<void> {
  const { cancellationSignal } = Context.current();
  const pauses = new BackOff(FIRST_LOOK_MS, LONGEST_LOOK_MS);
  const spent = new Spent();
  const stopping = new Map<MemberName, number>();
  let left = names;
  for (let looks = 1; ; looks++) {
    const open: MemberName[] = [];
    const failed: unknown[] = [];
    for (const name of left) {
      cancellationSignal.throwIfAborted();
      const isLong = looks % LOOKS === 0;
      const look = { isLong, spentMs: spent.ms, signal: cancellationSignal };
      try {
        if (await hasEnded(ports, name, { look, stopping })) continue;
      } catch (error) {
        failed.push(error);
      }
      open.push(name);
    }
    if (open.length === 0) return;
    if (failed.length === open.length) throw failed[0];
    left = open;
    await rest(pauses.next(), cancellationSignal);
    const spentMs = spent.count();
    tell?.(spentMs);
  }
}

/** A member that cannot be settled, for no outage, keeps no cohort open. */
function givingUp(ports: CohortPorts): CohortPorts {
  const { cohorts, logger } = ports;
  const step: CohortMembers['step'] = async (name, look) => {
    try {
      return await cohorts.step(name, look);
    } catch (error) {
      const code = codeOf(error) ?? 'internal_error';
      if (look.signal?.aborted || isOutage(code)) throw error;
      logger.error('a member of a cohort cannot be settled', { ...name, code });
      await cohorts.giveUp(name, NOT_SETTLED);
      return 'ended';
    }
  };
  return { ...ports, cohorts: { ...cohorts, step } };
}

const NOT_SETTLED = {
  code: 'internal_error',
  message: 'It cannot be compared with its source: the log of the host tells why.',
};

async function hasEnded(
  { cohorts, stopLimitMs = STOP_LIMIT_MS }: CohortPorts,
  name: MemberName,
  { look, stopping }: { readonly look: Look; readonly stopping: Map<MemberName, number> },
): Promise<boolean> {
  const stands = await cohorts.step(name, look);
  if (stands !== 'stopping') return stands === 'ended';
  const sinceMs = stopping.get(name) ?? performance.now();
  stopping.set(name, sinceMs);
  if (performance.now() - sinceMs < stopLimitMs) return false;
  await cohorts.giveUp(name, NEVER_ENDS);
  return true;
}

const NEVER_ENDS = {
  code: 'cancelled',
  message: 'It was told to end and does not: perhaps no worker of its build is there.',
};

/** How long forks were looked at, over deaths of who looked. */
class Spent {
  ms: number;
  #lookedAtMs = performance.now();

  constructor() {
    const told = lastDetails();
    this.ms = typeof told === 'number' ? told : 0;
  }

  count(): number {
    const nowMs = performance.now();
    this.ms += Math.min(LONGEST_GAP_MS, nowMs - this.#lookedAtMs);
    this.#lookedAtMs = nowMs;
    return this.ms;
  }
}
