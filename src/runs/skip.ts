// Moving the clock of a rehearsal: only where rehearsals are accepted at all, and of the run that a family began with,
// whose clock all below it go by.
import { codeOf, HostError } from '../rules/errors.ts';
import type { SkipMessage } from '../rules/messages.ts';
import type { RunRow } from '../ports/runs.ts';
import type { RunsDeps } from './deps.ts';
import { requireFreshHead } from './find.ts';
import { requireRehearsals } from './input.ts';
import { sendMessage, updateIdFor, type Delivery } from './messages.ts';
import { endedAs } from './start.ts';

type SkipDeps = Pick<RunsDeps, 'stores' | 'engine' | 'log' | 'logger' | 'config'>;

export interface Skip {
  readonly row: RunRow;
  readonly to: SkipMessage['to'];
}

/**
 * `skipping`: the clock moves, once nothing is under way. Throws capability_not_provided, not_a_rehearsal,
 * run_state_conflict (it has ended, is paused or skips already, with `details.runStatus`; the run above it is open, with
 * `details.parentRunId`), idempotency_key_mismatch, service_unavailable.
 */
export async function skipTime(
  deps: SkipDeps,
  { row, to }: Skip,
  delivery: Delivery,
): Promise<'skipping'> {
  requireRehearsals(deps.config);
  if (!row.input.rehearsal) throw new HostError('not_a_rehearsal');
  const { bodyDigest, binding } = delivery;
  const ended = await endedAs(deps, row);
  if (ended !== undefined) throw new HostError('run_state_conflict', { runStatus: ended });
  await requireOwnClock(deps, row);
  const since = binding.boundTo ?? `${(await deps.log.head(row))?.nextSequence ?? 0}`;
  await binding.bind(since);
  const message: SkipMessage = { kind: 'skip', to, bodyDigest };
  try {
    await sendMessage(deps, row.runId, { updateId: updateIdFor(delivery, since), message });
  } catch (error) {
    if (codeOf(error) !== 'run_state_conflict') throw error;
    const { status } = await requireFreshHead(deps, row);
    throw new HostError('run_state_conflict', { runStatus: status, reason: REASON }, error);
  }
  return 'skipping';
}

const REASON =
  'Its clock cannot be moved now: the run has ended, is paused, or its clock is on its way already.';

async function requireOwnClock(
  { stores, log }: SkipDeps,
  { tenant, input }: RunRow,
): Promise<void> {
  const { parentRunId } = input.header;
  if (parentRunId === undefined) return;
  const parent = await log.head(stores.runs.ref(tenant, parentRunId));
  if (!parent || parent.closed) return;
  const reason = 'Its clock is that of the run above it: skip there.';
  throw new HostError('run_state_conflict', { parentRunId, reason });
}
