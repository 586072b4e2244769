// Erasure of one subject's data (architecture §10.1): the subject's key is closed for new runs, open runs end or the request
// is refused, the key is destroyed, every process forgets it, the logs as they are then are digested and kept, and a receipt
// says so. Each step is found done, or done again, by whoever goes on after a crash.
import { HostError, codeOf } from '../rules/errors.ts';
import { canonicalJson } from '../rules/json.ts';
import { sha256Hex } from '../rules/ids.ts';
import { EMPTY_LOG_DIGEST, extendedRoots } from '../rules/log-digest.ts';
import { principalOf } from '../rules/subject.ts';
import type { Caller } from '../ports/caller.ts';
import type { RunRef } from '../ports/runs.ts';
import type { ErasedRun, ErasureRow } from '../ports/subjects.ts';
import type { Stores } from '../ports/stores.ts';
import { keepLog } from '../log/erased.ts';
import { cancelRun } from './cancel.ts';
import type { RunsDeps } from './deps.ts';

export type EraseDeps = Pick<RunsDeps, 'engine' | 'log' | 'redactor' | 'logger'> & {
  readonly stores: RunsDeps['stores'] & Pick<Stores, 'subjects' | 'content' | 'ping'>;
};

/** Open runs that are looked at in one round, and how long in ms a round rests before the next. */
const ROUND_RUNS = 50;
const ROUND_REST_MS = 300;
/** Longest rest in ms while the key is being forgotten. */
const FORGETTING_REST_MS = 500;
/** Runs whose logs are kept between two looks at the database. */
const KEPT_RUNS = 50;
/** Runs that a receipt names; all are in its digest, and all are told by the runs themselves. */
const NAMED_RUNS = 1_000;

export interface EraseRequest {
  readonly subject: string;
  readonly cancelOpen: boolean;
  readonly reason?: string;
}

/** Goes on until this says so. */
export interface Patience {
  /** Asked before each round. */
  isOver(): boolean;
  /** Within a round. */
  isLate(): boolean;
  rest(ms: number): Promise<void>;
}

/**
 * The erasure as it is when `patience` ends: `erased` with its receipt, or under way, which the keeper goes on with. Throws
 * HostError subject_not_found, and run_state_conflict: runs of the subject are open, and the request does not cancel them.
 */
export async function eraseSubject(
  deps: EraseDeps,
  caller: Caller,
  { subject, cancelOpen, reason, patience }: EraseRequest & { readonly patience: Patience },
): Promise<ErasureRow> {
  const begun = await deps.stores.subjects.beginErasure(caller.tenant, subject, {
    asked: {
      by: principalOf(caller.subject),
      ...(reason === undefined ? {} : { reason: deps.redactor.text(reason) }),
    },
    cancelsOpen: cancelOpen,
  });
  switch (begun.kind) {
    case 'unknown':
      throw new HostError('subject_not_found');
    case 'open':
      throw new HostError('run_state_conflict', {
        reason: 'Runs of the subject are open: let them end, or ask for cancelOpen.',
        openRuns: begun.runIds,
      });
    default:
      return advanceErasure(deps, begun.erasure, patience);
  }
}

/** One step after the other, from where the last one stopped. */
export async function advanceErasure(
  deps: EraseDeps,
  erasure: ErasureRow,
  patience: Patience,
): Promise<ErasureRow> {
  const { subjects } = deps.stores;
  const { tenant, erasureId } = erasure;
  if (erasure.state === 'erased') return erasure;
  if (erasure.state === 'closing' && !(await destroyed(deps, erasure, patience))) return erasure;
  const now = (await subjects.erasure(tenant, erasureId)) ?? erasure;
  if (now.state === 'erased') return now;
  if (!(await forgotten(deps, now, patience))) return now;
  if (!(await keepLogs(deps, now, patience))) return now;
  // Last, and each time: whoever was killed before the receipt may have been killed before this.
  if (!(await overwritten(deps, now, patience))) return now;
  return subjects.finish(now, await receiptOf(deps, now));
}

/** False: runs are still open. */
async function destroyed(
  deps: EraseDeps,
  erasure: ErasureRow,
  patience: Patience,
): Promise<boolean> {
  const { subjects } = deps.stores;
  for (;;) {
    if (await subjects.destroy(erasure)) return true;
    if (patience.isOver()) return false;
    await endOpen(deps, erasure, patience);
    await patience.rest(ROUND_REST_MS);
  }
}

/** All of them in each round: some may not end for long. */
async function endOpen(deps: EraseDeps, erasure: ErasureRow, patience: Patience): Promise<void> {
  for (let after = ''; !patience.isLate();) {
    const page = { after, limit: ROUND_RUNS };
    const open = await deps.stores.subjects.openRuns(erasure.keyId, page);
    await Promise.all(open.map((run) => endRun(deps, erasure, run)));
    const last = open.at(-1);
    if (!last || open.length < ROUND_RUNS) return;
    after = last.runId;
  }
}

/** What cannot be reached now is asked in the next round. */
async function endRun(deps: EraseDeps, erasure: ErasureRow, run: RunRef): Promise<void> {
  const { erasureId, cancelsOpen } = erasure;
  try {
    const row = await deps.stores.runs.find(run.tenant, run.runId);
    if (row && cancelsOpen) {
      const updateId = `erase-${erasureId}`;
      await cancelRun(
        deps,
        { row, reason: 'The data of its subject is erased.', cancelledBy: 'erasure' },
        { updateId, bodyDigest: sha256Hex(updateId) },
      );
    }
    await deps.log.fresh(run);
  } catch (error) {
    deps.logger.info('a run of an erasure is not ended yet', {
      runId: run.runId,
      erasureId,
      code: codeOf(error) ?? 'internal_error',
    });
  }
}

/** False: some process may still hold the key. */
async function forgotten(
  { stores }: EraseDeps,
  erasure: ErasureRow,
  patience: Patience,
): Promise<boolean> {
  for (;;) {
    const leftMs = await stores.subjects.forgottenInMs(erasure);
    if (leftMs <= 0) return true;
    if (patience.isOver()) return false;
    await patience.rest(Math.min(leftMs, FORGETTING_REST_MS));
  }
}

/** False: somebody may still see the key in the database. */
async function overwritten(
  { stores }: EraseDeps,
  erasure: ErasureRow,
  patience: Patience,
): Promise<boolean> {
  for (;;) {
    if (await stores.subjects.overwrite(erasure)) return true;
    if (patience.isOver()) return false;
    await patience.rest(ROUND_REST_MS);
  }
}

/** False: not all of them yet. Throws, when all others are kept, why one of them cannot be. */
async function keepLogs(
  deps: EraseDeps,
  { keyId, erasureId }: ErasureRow,
  patience: Patience,
): Promise<boolean> {
  const { subjects } = deps.stores;
  let failed: { readonly runId: string; readonly error: unknown } | undefined;
  for (let after = ''; ;) {
    const runs = await subjects.runsToDigest(keyId, { after, limit: KEPT_RUNS });
    let kept = 0;
    for (const run of runs)
      try {
        await subjects.noteErased(run, await keepLog(deps, run, erasureId));
        kept++;
      } catch (error) {
        // It may be this one alone that takes too long.
        if (codeOf(error) === 'service_unavailable') await deps.stores.ping();
        failed ??= { runId: run.runId, error };
      }
    const last = runs.at(-1);
    if (!last || runs.length < KEPT_RUNS) break;
    // The next time begins with those that are left: a page of which none could be kept is passed.
    if (kept > 0 && patience.isOver()) return false;
    after = last.runId;
  }
  if (!failed) return true;
  const reason = `The log of run ${failed.runId} cannot be kept: ${String(failed.error)}`;
  throw new HostError(codeOf(failed.error) ?? 'internal_error', { reason }, failed.error);
}

async function receiptOf({ stores }: EraseDeps, erasure: ErasureRow): Promise<string> {
  const { erasureId, tenant, subject, keyId, asked, askedAtMs, destroyedAtMs = 0 } = erasure;
  const named: Pick<ErasedRun, 'runId' | 'events' | 'root'>[] = [];
  let root = EMPTY_LOG_DIGEST;
  let [count, events, after] = [0, 0, ''];
  for (;;) {
    const runs = await stores.subjects.erasedRuns(erasureId, { after, limit: NAMED_RUNS });
    for (const { runId, events: own, root: ownRoot } of runs) {
      const run = { runId, events: own, root: ownRoot };
      root = extendedRoots(root, run);
      [count, events, after] = [count + 1, events + own, runId];
      if (named.length < NAMED_RUNS) named.push(run);
    }
    if (runs.length < NAMED_RUNS) break;
  }
  const receipt = {
    ...{ kind: 'openwop-temporal.erasure-receipt', version: 1, erasureId, tenant, subject },
    keys: [keyId],
    requestedBy: asked.by,
    ...(asked.reason === undefined ? {} : { reason: asked.reason }),
    requestedAt: new Date(askedAtMs).toISOString(),
    destroyedAt: new Date(destroyedAtMs).toISOString(),
    cancelledOpenRuns: erasure.cancelsOpen,
    logs: { runs: count, events, root },
    runs: named,
    ...(count > named.length ? { truncated: true } : {}),
  };
  const { signature, publicKey } = await stores.subjects.sign(canonicalJson(receipt));
  return JSON.stringify({
    receipt,
    signature: {
      algorithm: 'Ed25519',
      over: 'canonical JSON (RFC 8785) of receipt',
      publicKey,
      value: signature,
    },
  });
}
