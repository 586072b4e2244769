// Cancelling a run (rest-endpoints.md): an Update, else Temporal's durable request; of an ended run, its status.
import type { CancelRunMessage } from '../rules/messages.ts';
import { TERMINAL_STATUSES, type RunStatus } from '../rules/status.ts';
import type { RunRef, RunRow } from '../ports/runs.ts';
import type { RunsDeps } from './deps.ts';
import { requireFreshHead } from './find.ts';
import { sendMessage, type Delivery } from './messages.ts';
import { endedAs } from './start.ts';

export interface Cancellation {
  readonly row: RunRow;
  readonly reason?: string;
  readonly cancelledBy: string;
  /** Whose end ends this run. */
  readonly parentRunId?: string;
}

type CancelDeps = Pick<RunsDeps, 'stores' | 'engine' | 'log' | 'redactor' | 'logger'>;

/**
 * The status of the run as it is then: `cancelling`, or the one that it ended with. Throws idempotency_key_mismatch and
 * service_unavailable.
 */
export async function cancelRun(
  deps: CancelDeps,
  { row, ...of }: Cancellation,
  delivery: Pick<Delivery, 'updateId' | 'bodyDigest'>,
): Promise<RunStatus> {
  return (await endedAs(deps, row)) ?? askToEnd(deps, { run: row, ...of }, delivery);
}

/** The same without its row, which is damaged: it is not started first, if it has not been. */
export async function askToEnd(
  deps: CancelDeps,
  { run, reason, cancelledBy, parentRunId }: Omit<Cancellation, 'row'> & { readonly run: RunRef },
  { updateId, bodyDigest }: Pick<Delivery, 'updateId' | 'bodyDigest'>,
): Promise<RunStatus> {
  const message: CancelRunMessage = {
    kind: 'cancel',
    ...(reason === undefined ? {} : { reason: deps.redactor.text(reason) }),
    cancelledBy,
    ...(parentRunId === undefined ? {} : { parentRunId }),
    bodyDigest,
  };
  const told = await sendMessage(deps, run.runId, { updateId, message });
  if (told !== 'unchanged') return told === 'cancelled' ? 'cancelled' : 'cancelling';
  const { status } = await requireFreshHead(deps, run);
  return TERMINAL_STATUSES.has(status) ? status : 'cancelling';
}
