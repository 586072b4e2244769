// Pausing and resuming a run (rest-endpoints.md): an operator's hold, taken or refused by the run's workflow.
import { codeOf, HostError } from '../rules/errors.ts';
import type { PauseRunMessage, ResumeRunMessage } from '../rules/messages.ts';
import { eventRow } from '../rules/events.ts';
import { isTime } from '../rules/forms.ts';
import { TERMINAL_STATUSES } from '../rules/status.ts';
import type { RunRow } from '../ports/runs.ts';
import type { RunsDeps } from './deps.ts';
import { requireFreshHead } from './find.ts';
import { sendMessage, updateIdFor, type Delivery } from './messages.ts';
import { endedAs } from './start.ts';

/** Rows read from the store at once when the log is searched. */
const PAGE_ROWS = 1_000;

type PauseDeps = Pick<RunsDeps, 'stores' | 'engine' | 'log' | 'redactor' | 'logger'>;
type Hold = Omit<PauseRunMessage, 'bodyDigest'> | Omit<ResumeRunMessage, 'bodyDigest'>;

/**
 * The status that the run takes: `paused`, once nothing is under way any more, or `running`. Throws run_state_conflict
 * with `details.runStatus` (a pause of a run that is paused or has ended, a resume of one that is not paused) and
 * `details.pausedAt` where it is paused, idempotency_key_mismatch and service_unavailable.
 */
export async function holdRun(
  deps: PauseDeps,
  { row, hold }: { readonly row: RunRow; readonly hold: Hold },
  delivery: Delivery,
): Promise<'paused' | 'running'> {
  const { runId } = row;
  const { bodyDigest, binding } = delivery;
  const ended = await endedAs(deps, row);
  if (ended !== undefined) throw new HostError('run_state_conflict', { runStatus: ended });
  const reason = hold.reason === undefined ? {} : { reason: deps.redactor.text(hold.reason) };
  const message = { ...hold, ...reason, bodyDigest };
  const since = binding.boundTo ?? `${(await deps.log.head(row))?.nextSequence ?? 0}`;
  await binding.bind(since);
  try {
    await sendMessage(deps, runId, { updateId: updateIdFor(delivery, since), message });
  } catch (error) {
    if (codeOf(error) !== 'run_state_conflict') throw error;
    const { status } = await requireFreshHead(deps, row);
    // A pause is refused by a run that goes on for one reason alone: one is on its way already.
    const goesOn = !TERMINAL_STATUSES.has(status) && status !== 'cancelling';
    const isPausing = hold.kind === 'pause' && goesOn;
    const runStatus = isPausing ? 'paused' : status;
    const since = status === 'paused' ? await pausedAt(deps, row) : {};
    throw new HostError('run_state_conflict', { runStatus, ...since }, error);
  }
  return hold.kind === 'pause' ? 'paused' : 'running';
}

/** When the pause that holds took effect, as the log tells it; nothing where that time is damaged. */
async function pausedAt(
  { log }: Pick<PauseDeps, 'log'>,
  run: RunRow,
): Promise<{ pausedAt?: string }> {
  let atMs: number | undefined;
  for await (const rows of log.rows(run, { pageRows: PAGE_ROWS }))
    for (const { type, timestampMs } of rows)
      if (eventRow(type).run === 'paused') atMs = timestampMs;
  return isTime(atMs) ? { pausedAt: new Date(atMs).toISOString() } : {};
}
