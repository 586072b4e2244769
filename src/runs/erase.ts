// Erasure of one subject's data (architecture §10.1): the subject's key is closed for new runs, open runs end or the request
// is refused, the key is destroyed, no process opens anything with it, the logs as they are then are digested and kept, the
// table of keys is rewritten, and a receipt is signed. What Temporal still has open of those runs is ended, since nobody can
// read it any more. Each step is found done, or done again, by whoever goes on after a crash.
import { codeOf, HostError, type ErrorCode } from '../rules/errors.ts';
import { canonicalJson } from '../rules/json.ts';
import { sha256Hex } from '../rules/ids.ts';
import { EMPTY_LOG_DIGEST, extendedRoots } from '../rules/log-digest.ts';
import { principalOf } from '../rules/subject.ts';
import type { Caller } from '../ports/caller.ts';
import type { RunRef } from '../ports/runs.ts';
import type { ErasedRun, ErasureRow, ErasureWait } from '../ports/subjects.ts';
import type { Stores } from '../ports/stores.ts';
import { keepLog, unreadEnd } from '../log/erased.ts';
import type { Fresh, Log } from '../log/log.ts';
import { cancelRun } from './cancel.ts';
import type { RunsDeps } from './deps.ts';
import { UnreadRuns, type UnreadRound } from '../log/unread-runs.ts';

export type EraseDeps = Pick<RunsDeps, 'engine' | 'redactor' | 'logger'> & {
  readonly log: RunsDeps['log'] & Pick<Log, 'rebuild'>;
  readonly stores: RunsDeps['stores'] & Pick<Stores, 'subjects' | 'content' | 'ping'>;
  /** For tests; UNREAD_MS when absent. */
  readonly unreadMs?: number;
  /** For who goes on in rounds of its own; absent: those of one call count. */
  readonly unread?: UnreadRuns;
};

/** Open runs that are looked at in one round, and how long in ms a round rests before the next. */
const ROUND_RUNS = 50;
const ROUND_REST_MS = 300;
/** Longest rest in ms while the key is being forgotten. */
const FORGETTING_REST_MS = 500;
/** Runs whose logs are kept between two looks at the database. */
const KEPT_RUNS = 50;
/** Runs that a receipt names, and of those beyond them as many whose logs are not kept; all are in its digest. */
const NAMED_RUNS = 1_000;
/** How many open runs, and how many reasons, a wait names. */
const WAITED_RUNS = 5;
const ENDED_BY_ERASURE = 'The data of its subject is erased.';
/** What is read of a run is damaged, its own key for one, or of another release. */
const UNREAD = 'history_undecodable';
/** Its row is not there, or its head is not and cannot be made again. */
const LOST = 'run_not_found';
/** Temporal, which answers, has nothing of it. */
const FORGOTTEN = 'history_missing';
/** Whoever can read such a run has so long, in ms, from the first round on in which it is not read here, to end it in order. */
const UNREAD_MS = 60_000;

export interface EraseRequest {
  readonly subject: string;
  readonly cancelOpen: boolean;
  readonly reason?: string;
}

/** Goes on until this says so. */
export interface Patience {
  /** Asked after each try that was not enough. */
  isOver(): boolean;
  /** Within a round. */
  isLate(): boolean;
  rest(ms: number): Promise<void>;
}

/**
 * The erasure as it is when `patience` ends: `erased` with its receipt, or under way with what it waits for (`waitsFor`),
 * which the keeper goes on with. Throws HostError service_unavailable (the database does not answer), subject_not_found, and
 * run_state_conflict: runs of the subject are open, and the request does not cancel them.
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

/**
 * One step after the other, from where the last one stopped. What a step throws is what the erasure waits for. Throws HostError
 * service_unavailable: the database does not answer.
 */
export async function advanceErasure(
  deps: EraseDeps,
  erasure: ErasureRow,
  patience: Patience,
): Promise<ErasureRow> {
  try {
    return await advanced(deps, erasure, patience);
  } catch (error) {
    await deps.stores.ping();
    const now = (await deps.stores.subjects.erasure(erasure.tenant, erasure.erasureId)) ?? erasure;
    if (now.state === 'erased') return now;
    const reason = `It cannot go on now ${whyOf(error)}`;
    return waiting(deps, now, { wait: { kind: 'failed', reason }, error });
  }
}

async function advanced(
  deps: EraseDeps,
  erasure: ErasureRow,
  patience: Patience,
): Promise<ErasureRow> {
  const { subjects } = deps.stores;
  const { tenant, erasureId } = erasure;
  if (erasure.state === 'erased') return erasure;
  if (erasure.state === 'closing') {
    const wait = await destroyed(deps, erasure, patience);
    if (wait) return waiting(deps, erasure, { wait });
  }
  const now = (await subjects.erasure(tenant, erasureId)) ?? erasure;
  if (now.state === 'erased') return now;
  for (const step of AFTER_THE_KEY) {
    const wait = await step(deps, now, patience);
    if (wait) return waiting(deps, now, { wait });
  }
  return subjects.finish(now, await receiptOf(deps, now));
}

/** Undefined: it is done. */
type Step = (
  deps: EraseDeps,
  erasure: ErasureRow,
  patience: Patience,
) => Promise<ErasureWait | undefined>;

/** Stored where it is read, and logged when it is another thing than before. */
async function waiting(
  { stores, logger }: EraseDeps,
  erasure: ErasureRow,
  { wait, error }: { readonly wait: ErasureWait; readonly error?: unknown },
): Promise<ErasureRow> {
  const { erasureId, waitsFor } = erasure;
  if (waitsFor?.kind === wait.kind && waitsFor.reason === wait.reason) return erasure;
  const level = wait.kind === 'processes' ? 'info' : 'warn';
  // Ids of sessions and counts may change in each round.
  const [before, now] = [waitsFor?.reason, wait.reason].map((text) => text?.replaceAll(/\d+/g, ''));
  if (before !== now)
    logger[level]('an erasure waits', {
      ...{ erasureId, for: wait.kind, reason: wait.reason },
      ...(error === undefined ? {} : { error: causesOf(error) }),
    });
  return stores.subjects.noteWait(erasure, wait);
}

async function destroyed(...[deps, erasure, patience]: Parameters<Step>): ReturnType<Step> {
  const { subjects } = deps.stores;
  const { unread = new UnreadRuns() } = deps;
  for (let failed: readonly string[] = []; ;) {
    if (await subjects.destroy(erasure)) {
      unread.forget(erasure.erasureId);
      return undefined;
    }
    if (patience.isOver()) return openRunsOf(deps, erasure, failed);
    failed = await endOpen({ ...deps, unread }, erasure, patience);
    await patience.rest(ROUND_REST_MS);
  }
}

async function openRunsOf(
  { stores }: EraseDeps,
  { keyId }: ErasureRow,
  failed: readonly string[],
): Promise<ErasureWait> {
  const open = await stores.subjects.openRuns(keyId, { after: '', limit: WAITED_RUNS + 1 });
  const ids = open.slice(0, WAITED_RUNS).map(({ runId }) => runId);
  const more = open.length > WAITED_RUNS ? ' and more' : '';
  const said =
    ids.length > 0 ? `Runs are open: ${ids.join(', ')}${more}.` : 'Runs have just ended.';
  const reasons = [said, ...failed.slice(0, WAITED_RUNS)];
  return { kind: 'open-runs', reason: reasons.join(' ') };
}

/** All of them in each round: some may not end for long. Of those that could not be asked, why. */
async function endOpen(
  deps: EraseDeps & { readonly unread: UnreadRuns },
  erasure: ErasureRow,
  patience: Patience,
): Promise<readonly string[]> {
  const failed: string[] = [];
  const round = deps.unread.round(erasure.erasureId);
  for (let after = ''; !patience.isLate();) {
    const page = { after, limit: ROUND_RUNS };
    const open = await deps.stores.subjects.openRuns(erasure.keyId, page);
    const why = await Promise.all(open.map((run) => endRun({ ...deps, round }, erasure, run)));
    failed.push(...why.filter((reason) => reason !== undefined));
    const last = open.at(-1);
    if (!last || open.length < ROUND_RUNS) {
      round.end();
      break;
    }
    after = last.runId;
  }
  return failed;
}

/** What cannot be reached now is asked in the next round; why, in a sentence. */
async function endRun(
  deps: EraseDeps & { readonly round: UnreadRound },
  erasure: ErasureRow,
  run: RunRef,
): Promise<string | undefined> {
  const { erasureId, cancelsOpen } = erasure;
  try {
    await makeHead(deps, run);
    const row = await deps.stores.runs.find(run.tenant, run.runId);
    if (row && cancelsOpen) {
      const updateId = `erase-${erasureId}`;
      await cancelRun(
        deps,
        { row, reason: ENDED_BY_ERASURE, cancelledBy: 'erasure' },
        { updateId, bodyDigest: sha256Hex(updateId) },
      );
    }
    const read = await deps.log.fresh(run);
    const code = unreadBy(read);
    if (code !== undefined) throw new HostError(code);
    // Nobody has asked it to end.
    if (!row && !read.head.closed) throw new HostError(LOST);
    return undefined;
  } catch (error) {
    const { unreadMs = UNREAD_MS, round } = deps;
    const code = codeOf(error);
    // A request that ends no run was taken because each had ended: what is lost since was not open.
    const mayEnd = code === LOST || (cancelsOpen && code === UNREAD);
    const isLate = mayEnd && round.isLate(run.runId, unreadMs);
    const reason = isLate ? await endUnread(deps, run).catch((thrown: unknown) => thrown) : error;
    if (reason === undefined) return undefined;
    deps.logger.info('a run of an erasure is not ended yet', {
      runId: run.runId,
      erasureId,
      code: codeOf(reason) ?? 'internal_error',
    });
    return `Run ${run.runId} cannot be ended now ${whyOf(reason)}`;
  }
}

function isUnread(code: ErrorCode | undefined): code is typeof UNREAD | typeof LOST {
  return code === UNREAD || code === LOST;
}

/** A read that failed without a code failed by what is stored of the run, whatever is wrong with that. */
function unreadBy({ stale, code }: Pick<Fresh, 'stale' | 'code'>) {
  const found = stale ? (code ?? UNREAD) : undefined;
  return isUnread(found) ? found : undefined;
}

/**
 * From history, where the head of a run is not there. Where that cannot be, who reads the run next finds it lost. Throws
 * HostError service_unavailable and key_unavailable (what it is made from may be had later, or by another process), and what
 * reading a head throws.
 */
async function makeHead({ log, logger }: EraseDeps, run: RunRef): Promise<void> {
  if (await log.head(run)) return;
  await log.rebuild(run).catch((error: unknown) => {
    const code = codeOf(error) ?? 'internal_error';
    if (code === 'service_unavailable' || code === 'key_unavailable') throw error;
    logger.debug('the head of a run cannot be made again', { runId: run.runId, code });
  });
}

/** Its log ends as its history says; where that cannot be read here, without it. */
async function endUnread(deps: EraseDeps, run: RunRef): Promise<void> {
  const { engine, log, stores, logger } = deps;
  await engine.terminate(run.runId, ENDED_BY_ERASURE);
  const read = async () => (await makeHead(deps, run), await log.fresh(run));
  const found = await read().catch((error: unknown) => {
    if (!isUnread(codeOf(error))) throw error;
  });
  if (found?.head.closed) return;
  if (found && unreadBy(found) === undefined && found.code !== FORGOTTEN) {
    // Without its row nobody knows a history that its head does not name.
    const hasHistory = found.head.temporalRunId !== '' || (await stores.runs.locate(run.runId));
    if (hasHistory) throw new HostError('service_unavailable');
  }
  await stores.subjects.closeUnread(run, unreadEnd(run, Date.now()));
  logger.warn('a run that cannot be read was ended by an erasure', { runId: run.runId });
}

/** For the log: what was thrown, and what that came of. */
function causesOf(error: unknown, levels = 4): string {
  const { cause } = error as { readonly cause?: unknown };
  const own = String(error);
  return cause === undefined || levels === 0 ? own : `${own}: ${causesOf(cause, levels - 1)}`;
}

/** Messages of errors without a code of the host's may hold values. */
function whyOf(error: unknown): string {
  const code = codeOf(error);
  return code === undefined ? '(internal_error).' : `(${code}). ${(error as Error).message}`;
}

async function forgotten(...[{ stores }, erasure, patience]: Parameters<Step>): ReturnType<Step> {
  for (;;) {
    const leftMs = await stores.subjects.forgottenInMs(erasure);
    if (leftMs <= 0) return undefined;
    if (patience.isOver())
      return {
        kind: 'processes',
        reason: 'Processes may still open with the key for a few seconds.',
      };
    await patience.rest(Math.min(leftMs, FORGETTING_REST_MS));
  }
}

async function overwritten(...[{ stores }, erasure, patience]: Parameters<Step>): ReturnType<Step> {
  for (;;) {
    const wait = await stores.subjects.overwrite(erasure);
    if (!wait || patience.isOver()) return wait;
    await patience.rest(ROUND_REST_MS);
  }
}

async function keepLogs(
  ...[deps, { keyId, erasureId }, patience]: Parameters<Step>
): ReturnType<Step> {
  const { subjects } = deps.stores;
  let failed: { readonly cannot: string; readonly error: unknown } | undefined;
  for (let after = ''; ;) {
    const runs = await subjects.runsToDigest(keyId, { after, limit: KEPT_RUNS });
    let kept = 0;
    for (const run of runs) {
      let cannot = `Run ${run.runId} cannot be ended in Temporal`;
      try {
        await deps.engine.terminate(run.runId, ENDED_BY_ERASURE);
        cannot = `The log of run ${run.runId} cannot be kept`;
        const erased = await keepLog(deps, run, erasureId);
        await subjects.noteErased(run, erased);
        if (erased.pages.length === 0)
          deps.logger.warn('the log of an erased run is not kept: the run has no row', {
            ...{ runId: run.runId, erasureId },
          });
        kept++;
      } catch (error) {
        // It may be this one alone that takes too long.
        if (codeOf(error) === 'service_unavailable')
          await Promise.all([deps.stores.ping(), deps.engine.ping()]);
        failed ??= { cannot, error };
      }
    }
    const last = runs.at(-1);
    if (!last || runs.length < KEPT_RUNS) break;
    // The next time begins with those that are left: a page of which none could be kept is passed.
    if (kept > 0 && patience.isOver())
      return { kind: 'logs', reason: 'Logs are still being kept.' };
    after = last.runId;
  }
  if (!failed) return undefined;
  const reason = `${failed.cannot} ${whyOf(failed.error)}`;
  throw new HostError(codeOf(failed.error) ?? 'internal_error', { reason }, failed.error);
}

/** The table of keys last, and each time: whoever was killed before the receipt may have been killed before this. */
const AFTER_THE_KEY: readonly Step[] = [forgotten, keepLogs, overwritten];

/** As a receipt names it. Without `isKept` its log is kept. */
type NamedRun = Pick<ErasedRun, 'runId' | 'events' | 'root'> & { readonly isKept?: false };

async function receiptOf({ stores }: EraseDeps, erasure: ErasureRow): Promise<string> {
  const { erasureId, tenant, subject, keyId, asked, askedAtMs, destroyedAtMs = 0 } = erasure;
  const named: NamedRun[] = [];
  let root = EMPTY_LOG_DIGEST;
  let [count, events, notKept, after] = [0, 0, 0, ''];
  for (;;) {
    const runs = await stores.subjects.erasedRuns(erasureId, { after, limit: NAMED_RUNS });
    for (const { runId, events: own, root: ownRoot, pages } of runs) {
      const isKept = pages.length > 0;
      const run = {
        runId,
        events: own,
        root: ownRoot,
        ...(isKept ? {} : { isKept: false as const }),
      };
      root = extendedRoots(root, run);
      [count, events, after] = [count + 1, events + own, runId];
      if (!isKept) notKept++;
      if (named.length < NAMED_RUNS || (!isKept && notKept <= NAMED_RUNS)) named.push(run);
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
    logs: { runs: count, events, root, ...(notKept > 0 ? { notKept } : {}) },
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
