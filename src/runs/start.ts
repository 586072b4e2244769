// From an accepted row to a run that Temporal has, or to one that failed unstarted (architecture §4): for the
// acceptance, its retries, a cancel and the reaper. Row by row, a start and a failure exclude each other: the first
// that is noted stands.
import { codeOf, HostError } from '../rules/errors.ts';
import type { RunStatus } from '../rules/status.ts';
import { nothingOf } from '../rules/unreadable.ts';
import type { RunRow, StartFailure } from '../ports/runs.ts';
import type { RunsDeps } from './deps.ts';
import { requireFreshHead } from './find.ts';

type StartDeps = Pick<RunsDeps, 'stores' | 'engine' | 'logger'> & {
  readonly log: Pick<RunsDeps['log'], 'head' | 'endUnstarted'>;
};

export interface Started {
  /** False: the run has ended; what was decided about it stands, also where its log did not say so yet. */
  readonly inTemporal: boolean;
  /** Of the run's head, where it was read on the way. */
  readonly status?: RunStatus;
}

/**
 * Idempotent. Throws service_unavailable with `details.runId`, history_undecodable and key_unavailable (the run cannot be read here), and what
 * Temporal refuses the run with: internal_error where that is a fault of this host.
 */
export async function startRun(deps: StartDeps, row: RunRow): Promise<Started> {
  if (row.temporalRunId !== undefined) return { inTemporal: true };
  if (row.startFailure) {
    await failRun(deps, row, row.startFailure);
    return { inTemporal: false };
  }
  const head = await deps.log.head(row);
  return head?.closed ? { inTemporal: false, status: head.status } : started(deps, row);
}

/**
 * For a message: a run that was accepted while Temporal was away is started first, since only then can it be told
 * anything. Undefined: Temporal has it. Else the status that the run has ended with. Throws as startRun.
 */
export async function endedAs(
  deps: StartDeps & Pick<RunsDeps, 'log'>,
  row: RunRow,
): Promise<RunStatus | undefined> {
  const head = await deps.log.head(row);
  if (head?.closed) return head.status;
  const { inTemporal } = await startRun(deps, row);
  return inTemporal ? undefined : (await requireFreshHead(deps, row)).status;
}

/**
 * As startRun, of a row that was just inserted: nobody can have decided anything about it. If the reaper has meanwhile,
 * because this process was held up, that stands as well.
 */
export async function startNew(deps: StartDeps, row: RunRow): Promise<Started> {
  try {
    return await started(deps, row);
  } catch (error) {
    const code = codeOf(error) ?? 'internal_error';
    deps.logger.warn('run accepted but not started', { runId: row.runId, code });
    throw error;
  }
}

async function started(deps: StartDeps, row: RunRow): Promise<Started> {
  const { stores, engine } = deps;
  const { runId } = row;
  let status: RunStatus | undefined;
  try {
    const { temporalRunId } = await engine.start(row.input).catch((error: unknown) => {
      throw error instanceof HostError ? error : new HostError('internal_error', { runId }, error);
    });
    const marked = await stores.runs.markStarted(row, temporalRunId);
    status = marked?.status;
    // An erasure may have ended its log meanwhile. What somebody else started, and has ended since, ended by itself.
    if (marked && !marked.wasEnded) return { inTemporal: true, status: marked.status };
  } catch (error) {
    if (codeOf(error) !== 'service_unavailable') throw error;
    throw new HostError('service_unavailable', { ...(error as HostError).details, runId }, error);
  }
  await takeBack(deps, row);
  return { inTemporal: false, ...(status === undefined ? {} : { status }) };
}

/**
 * The run was given up while it was being started: its log says that nothing ran, so the workflow is ended, whether a worker
 * can read it or not. What it does until then is in no log, and the ledger of effects refuses it once the log is closed.
 */
async function takeBack(deps: StartDeps, { tenant, runId }: RunRow): Promise<void> {
  const { stores, engine, logger } = deps;
  // Whether its row can be read or not.
  const marked = await stores.runs.find(tenant, runId).catch(nothingOf);
  if (marked?.startFailure) await failRun(deps, marked, marked.startFailure);
  try {
    await engine.terminate(runId, 'The run was given up while it was being started.');
  } catch (error) {
    const code = codeOf(error) ?? 'internal_error';
    logger.error('a run that was given up is running: terminate it in Temporal', { runId, code });
  }
}

/** Ends a run that no workflow ever ran for. What was decided is kept first: a crash before the entry changes nothing. */
export async function failRun(
  { stores, log, logger }: Pick<StartDeps, 'stores' | 'log' | 'logger'>,
  run: RunRow,
  found: StartFailure,
): Promise<void> {
  const { runId } = run;
  const failure = await stores.runs.markStartFailed(run, found);
  if (!failure || !(await log.endUnstarted(run, failure))) return;
  logger.error('run failed: it could not be started', { runId, cause: failure.cause });
}
