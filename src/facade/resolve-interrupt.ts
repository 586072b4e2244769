// Answering a human wait (spec/02 §4.4): the value is checked here against the schema frozen in the interrupt's entry,
// the race is decided in the workflow. Used by the API and by the run's page.
import { HostError, invalid } from '../rules/errors.ts';
import { digestOf } from '../rules/ids.ts';
import {
  canonicalJson,
  isJsonObject,
  jsonBytes,
  type JsonObject,
  type JsonValue,
} from '../rules/json.ts';
import { INLINE_VALUE_BYTES } from '../rules/limits.ts';
import type { ResolveInterruptMessage } from '../rules/messages.ts';
import { openInterrupts, type OpenInterrupt } from '../log/fold.ts';
import type { LogRow, LogStore } from '../ports/log.ts';
import type { RunRow } from '../ports/runs.ts';
import { compileUserSchema } from '../wire/user-schema.ts';
import { requireFreshHead } from '../runs/find.ts';
import type { FacadeDeps } from './deps.ts';

/** Rows read from the store at once when the log is searched. */
const PAGE_ROWS = 1_000;

export interface Resolution {
  readonly nodeId: string;
  /** The question that the sender saw; absent: whatever is open at the node when this is read. */
  readonly interruptId?: string;
  readonly value: JsonValue;
  readonly updateId: string;
  /** True when this may repeat an earlier request: then an interrupt that is over is asked for that request's outcome. */
  readonly repeatable: boolean;
  /** Told which interrupt this answers before it is sent, so that a repeat means the same one. */
  readonly meant?: (interruptId: string) => Promise<void>;
  readonly bodyDigest: string;
  readonly resolvedBy: string;
}

/**
 * Returns the status that the workflow gave (`resolved`, or `open` for a vote that does not decide yet). Throws
 * validation_error, payload_too_large, interrupt_not_found, interrupt_already_resolved, interrupt_expired,
 * interrupt_gone, interrupt_cancelled, idempotency_key_mismatch, service_unavailable.
 */
export async function resolveInterrupt(
  deps: FacadeDeps,
  row: RunRow,
  resolution: Resolution,
): Promise<string> {
  const { nodeId, updateId, bodyDigest, resolvedBy, meant } = resolution;
  const { head, stale } = await deps.log.fresh(row.runId);
  const open = openInterrupts(head.snapshot).find((interrupt) => isMeant(interrupt, resolution));
  const answer = normalized(resolution.value);
  const fault = open && faultOf(answer, open.resumeSchema);
  if (stale && !head.closed) {
    // No ground to decide on, but what the sender saw: when the retry comes, the next question may be open.
    if (open && !fault) await meant?.(open.interruptId);
    throw new HostError('service_unavailable');
  }
  if (fault) throw fault;
  const asked = open ?? (await fateOf(deps.stores.log, row.runId, resolution));
  if ('code' in asked && (asked.code === 'interrupt_not_found' || !resolution.repeatable))
    throw overError(asked);
  const { interruptId = '' } = asked;
  await meant?.(interruptId);
  const message: ResolveInterruptMessage = {
    kind: 'resolve-interrupt',
    nodeId,
    interruptId,
    value: deps.redactor.json(answer),
    schemaDigest: digestOf(canonicalJson(asked.resumeSchema ?? {})),
    bodyDigest,
    resolvedBy,
  };
  const outcome = await send(deps, { row, updateId, message });
  if (outcome.bodyDigest !== bodyDigest) throw new HostError('idempotency_key_mismatch');
  return outcome.status;
}

/** The open interrupt that is meant. Throws what became of it, or service_unavailable when that cannot be known. */
export async function requireOpen(
  deps: FacadeDeps,
  row: RunRow,
  meant: Required<Meant>,
): Promise<OpenInterrupt> {
  const head = await requireFreshHead(deps, row.runId);
  const open = openInterrupts(head.snapshot).find((interrupt) => isMeant(interrupt, meant));
  if (!open) throw overError(await fateOf(deps.stores.log, row.runId, meant));
  return open;
}

/** Which interrupt an answer means. */
type Meant = Pick<Resolution, 'nodeId' | 'interruptId'>;

function isMeant(interrupt: Required<Meant>, { nodeId, interruptId }: Meant): boolean {
  return (
    interrupt.nodeId === nodeId &&
    (interruptId === undefined || interrupt.interruptId === interruptId)
  );
}

async function send(
  deps: FacadeDeps,
  { row, updateId, message }: { row: RunRow; updateId: string; message: ResolveInterruptMessage },
): Promise<{ bodyDigest: string; status: string }> {
  try {
    return await deps.engine.send(row.runId, updateId, message);
  } catch (error) {
    const { code: refusal } = error as HostError;
    if (refusal !== 'run_state_conflict' && refusal !== 'interrupt_already_resolved') throw error;
    // It was over when the message came: the log tells how.
    await requireFreshHead(deps, row.runId);
    throw overError(await fateOf(deps.stores.log, row.runId, message), error);
  }
}

/** `edit` is an old name of `edit-accept` (spec/02 §4.3). */
function normalized(value: JsonValue): JsonValue {
  return isJsonObject(value) && value.action === 'edit'
    ? { ...value, action: 'edit-accept' }
    : value;
}

/** Why a value is no answer under the interrupt's schema. */
function faultOf(value: JsonValue, schema: JsonObject | undefined): HostError | undefined {
  if (jsonBytes(value) > INLINE_VALUE_BYTES)
    return new HostError('payload_too_large', { field: '/resumeValue', limit: INLINE_VALUE_BYTES });
  if (!schema) return undefined;
  const compiled = compileUserSchema(schema);
  if (!compiled.ok)
    return new HostError('internal_error', { reason: "the interrupt's schema cannot be used" });
  const checked = compiled.value.validate(value);
  if (checked.ok) return undefined;
  const [first] = checked.errors;
  return invalid(`/resumeValue${first.pointer}`, first.message, { errors: checked.errors });
}

type FateCode =
  | 'interrupt_not_found'
  | 'interrupt_already_resolved'
  | 'interrupt_expired'
  | 'interrupt_gone'
  | 'interrupt_cancelled';

interface Fate {
  readonly code: FateCode;
  readonly interruptId?: string;
  readonly key?: string;
  readonly resumeSchema?: JsonObject;
  readonly resolvedBy?: string;
}

/** An answer that comes too late is told why, and who answered instead. */
function overError({ code, resolvedBy }: Fate, cause?: unknown): HostError {
  const isAnswered = code === 'interrupt_already_resolved' && resolvedBy !== undefined;
  return new HostError(code, isAnswered ? { resolvedBy } : undefined, cause);
}

/** What became of the meant interrupt, or of the node's last one, that is not open now, as the log tells it. */
async function fateOf(log: LogStore, runId: string, meant: Meant): Promise<Fate> {
  let fate: Fate = { code: 'interrupt_not_found' };
  let after = -1;
  for (;;) {
    const rows = await log.read(runId, { after, limit: PAGE_ROWS });
    for (const row of rows) fate = nextFate(fate, row, meant);
    const last = rows.at(-1);
    if (!last || rows.length < PAGE_ROWS) return fate;
    after = last.sequence;
  }
}

type FateRow = Pick<LogRow, 'type' | 'nodeId' | 'payload'>;

function nextFate(fate: Fate, row: FateRow, meant: Meant): Fate {
  if (row.type === 'run.cancelled')
    return fate.code === 'interrupt_gone' ? { ...fate, code: 'interrupt_cancelled' } : fate;
  if (row.nodeId !== meant.nodeId) return fate;
  switch (row.type) {
    case 'node.suspended': {
      const { interruptId, key } = payloadOf(row);
      if (typeof interruptId !== 'string' || typeof key !== 'string') return fate;
      const isOther = meant.interruptId !== undefined && meant.interruptId !== interruptId;
      return isOther ? fate : { code: 'interrupt_gone', interruptId, key };
    }
    case 'interrupt.requested': {
      const { key, resumeSchema } = payloadOf(row);
      return key === fate.key && isJsonObject(resumeSchema) ? { ...fate, resumeSchema } : fate;
    }
    case 'interrupt.resolved': {
      const { interruptId, reason, resolvedBy } = payloadOf(row);
      if (interruptId !== fate.interruptId) return fate;
      if (typeof resolvedBy === 'string')
        return { ...fate, code: 'interrupt_already_resolved', resolvedBy };
      // Its own time was over or its node's, whichever timer was first; else its node ended, and nobody answered.
      const isExpired = reason === 'timeout' || reason === 'node_timeout';
      return isExpired ? { ...fate, code: 'interrupt_expired' } : fate;
    }
    default:
      return fate;
  }
}

function payloadOf({ payload }: FateRow): JsonObject {
  return JSON.parse(payload) as JsonObject;
}
