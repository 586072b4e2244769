// Appends that come while others are being written go together behind them, as one transaction (architecture §3.2):
// what a transaction costs is shared by as many runs as are in a hurry at one time, and an append that comes alone waits
// for nothing. One that cannot be written with others is written by itself.
import { codeOf } from '../../rules/errors.ts';
import type { AppendBatch, AppendOutcome } from '../../ports/log.ts';
import { isLockTimeout, type SealedDb } from './db.ts';
import { appendGroup } from './log-append.ts';

/** Runs of one transaction, and the length of their payloads in UTF-16 units before the last of them. */
const GROUP_RUNS = 32;
const GROUP_LENGTH = 1024 * 1024;
/** So many of a group that cannot be written in time each by itself: it is the database, and the others are not tried. */
const TOO_LATE = 2;

interface Waiting {
  readonly batch: AppendBatch;
  readonly resolve: (outcome: AppendOutcome) => void;
  readonly reject: (error: unknown) => void;
}

function lengthOf({ rows }: AppendBatch): number {
  return rows.reduce((sum, { payload }) => sum + payload.length, 0);
}

/** The first that wait, one of each run, taken out of `queue`; the others keep their order. */
function takeGroup<One extends { readonly batch: AppendBatch }>(queue: One[]): One[] {
  const group = new Map<string, One>();
  const left: One[] = [];
  let length = 0;
  for (const one of queue) {
    const { runId } = one.batch.run;
    const isFull = group.size >= GROUP_RUNS || length >= GROUP_LENGTH;
    if (isFull || group.has(runId)) left.push(one);
    else {
      group.set(runId, one);
      length += lengthOf(one.batch);
    }
  }
  queue.splice(0, queue.length, ...left);
  return [...group.values()];
}

/**
 * One group at a time; the queue holds as many as callers wait for, which each process limits (src/log/hints.ts). Throws
 * HostError run_not_found without a head; SqlError when a fact is appended twice (a bug in its author).
 */
export function createAppend(db: SealedDb): (batch: AppendBatch) => Promise<AppendOutcome> {
  const queue: Waiting[] = [];
  let isWriting = false;

  async function alone({ batch, resolve, reject }: Waiting): Promise<void> {
    try {
      const [outcome] = await appendGroup(db, [batch], true);
      resolve(outcome as AppendOutcome);
    } catch (error) {
      reject(error);
    }
  }

  /**
   * Whose lock is held by somebody else waits for it outside of the group, and keeps nobody. True: the database did not do
   * it in time.
   */
  async function together(group: readonly Waiting[]): Promise<boolean> {
    try {
      const outcomes = await appendGroup(
        db,
        group.map(({ batch }) => batch),
        false,
      );
      for (const [at, one] of group.entries()) {
        const outcome = outcomes[at] ?? 'locked';
        if (outcome === 'locked') void alone(one);
        else one.resolve(outcome);
      }
    } catch (error) {
      const [one] = group;
      if (one && group.length === 1 && isLockTimeout(error)) {
        void alone(one);
        return false;
      }
      // Whatever of them cannot be stored keeps no other from its place, and no lock that is held keeps them all.
      let isOfOne = group.length > 1 && (await isOwn(error));
      let late = 0;
      for (const one of group)
        if (!isOfOne) one.reject(error);
        else if (await together([one])) isOfOne = ++late < TOO_LATE;
      return codeOf(error) === 'service_unavailable';
    }
    return false;
  }

  /** One of them may take too long for the database that answers the others. */
  async function isOwn(error: unknown): Promise<boolean> {
    if (codeOf(error) !== 'service_unavailable') return true;
    return db.query('SELECT 1').then(
      () => true,
      () => false,
    );
  }

  async function write(): Promise<void> {
    isWriting = true;
    while (queue.length > 0) await together(takeGroup(queue));
    isWriting = false;
  }

  return (batch) =>
    new Promise((resolve, reject) => {
      queue.push({ batch, resolve, reject });
      if (!isWriting) void write();
    });
}
