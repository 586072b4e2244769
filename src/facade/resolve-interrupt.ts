// Answering a human wait (spec/02 §4.4): the value is checked here against the schema frozen in the interrupt's entry,
// the race is decided in the workflow. Used by the API and by the run's page.
import { HostError } from '../core/errors.ts';
import { digestOf } from '../core/ids.ts';
import {
  canonicalJson,
  isJsonObject,
  jsonBytes,
  type JsonObject,
  type JsonValue,
} from '../core/json.ts';
import { INLINE_VALUE_BYTES } from '../core/limits.ts';
import type { ResolveInterruptCommand } from '../core/run-input.ts';
import { openInterrupts } from '../log/fold.ts';
import type { LogRow, LogStore, RunRow } from '../ports.ts';
import { compileUserSchema } from '../wire/user-schema.ts';
import type { FacadeDeps } from './deps.ts';
import { invalid } from './errors.ts';
import { requireFreshHead } from './run-access.ts';

/** Rows read from the store at once when the log is searched. */
const PAGE_ROWS = 1_000;

export interface Resolution {
  readonly nodeId: string;
  readonly value: JsonValue;
  readonly updateId: string;
  /** True when this may repeat an earlier request: then a resolved interrupt is asked for that request's outcome. */
  readonly repeatable: boolean;
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
  const { nodeId, value, updateId, bodyDigest, resolvedBy } = resolution;
  const head = await requireFreshHead(deps, row.runId);
  const open = openInterrupts(head.snapshot).find((interrupt) => interrupt.nodeId === nodeId);
  const fate = open ? undefined : await fateOf(deps.stores.log, row.runId, nodeId);
  if (fate && !(resolution.repeatable && fate.code === 'interrupt_already_resolved'))
    throw new HostError(fate.code);
  const schema = open ? open.resumeSchema : fate?.resumeSchema;
  const answer = normalized(value);
  if (open) checkAnswer(answer, schema);
  const command: ResolveInterruptCommand = {
    nodeId,
    value: deps.redactor.json(answer),
    schemaDigest: digestOf(canonicalJson(schema ?? {})),
    bodyDigest,
    resolvedBy,
  };
  const outcome = await send(deps, { row, updateId, command });
  if (outcome.bodyDigest !== bodyDigest) throw new HostError('idempotency_key_mismatch');
  return outcome.status;
}

async function send(
  deps: FacadeDeps,
  { row, updateId, command }: { row: RunRow; updateId: string; command: ResolveInterruptCommand },
): Promise<{ bodyDigest: string; status: string }> {
  try {
    return await deps.engine.resolveInterrupt(row.runId, updateId, command);
  } catch (error) {
    if ((error as HostError).code !== 'run_state_conflict') throw error;
    // The run ended between the read and the message: the log tells how.
    await requireFreshHead(deps, row.runId);
    const { code } = await fateOf(deps.stores.log, row.runId, command.nodeId);
    throw new HostError(code, undefined, error);
  }
}

/** `edit` is an old name of `edit-accept` (spec/02 §4.3). */
function normalized(value: JsonValue): JsonValue {
  return isJsonObject(value) && value.action === 'edit'
    ? { ...value, action: 'edit-accept' }
    : value;
}

function checkAnswer(value: JsonValue, schema: JsonObject | undefined): void {
  if (jsonBytes(value) > INLINE_VALUE_BYTES)
    throw new HostError('payload_too_large', { field: '/resumeValue', limit: INLINE_VALUE_BYTES });
  if (!schema) return;
  const compiled = compileUserSchema(schema);
  if (!compiled.ok)
    throw new HostError('internal_error', { reason: "the interrupt's schema cannot be used" });
  const checked = compiled.value.validate(value);
  if (checked.ok) return;
  const [first] = checked.errors;
  throw invalid(`/resumeValue${first.pointer}`, first.message, { errors: checked.errors });
}

type FateCode =
  | 'interrupt_not_found'
  | 'interrupt_already_resolved'
  | 'interrupt_expired'
  | 'interrupt_gone'
  | 'interrupt_cancelled';

interface Fate {
  readonly code: FateCode;
  readonly resumeSchema?: JsonObject;
}

/** What became of the last interrupt of a node that waits for nothing now, as the log tells it. */
async function fateOf(log: LogStore, runId: string, nodeId: string): Promise<Fate> {
  let fate: Fate = { code: 'interrupt_not_found' };
  let after = -1;
  for (;;) {
    const rows = await log.read(runId, { after, limit: PAGE_ROWS });
    for (const row of rows) fate = nextFate(fate, row, nodeId);
    const last = rows.at(-1);
    if (!last || rows.length < PAGE_ROWS) return fate;
    after = last.sequence;
  }
}

export function nextFate(
  fate: Fate,
  row: Pick<LogRow, 'type' | 'nodeId' | 'payload'>,
  nodeId: string,
): Fate {
  switch (row.type) {
    case 'interrupt.requested': {
      if (row.nodeId !== nodeId) return fate;
      const { resumeSchema } = JSON.parse(row.payload) as JsonObject;
      return { code: 'interrupt_gone', ...(isJsonObject(resumeSchema) ? { resumeSchema } : {}) };
    }
    case 'interrupt.resolved': {
      if (row.nodeId !== nodeId) return fate;
      const { reason } = JSON.parse(row.payload) as JsonObject;
      return {
        ...fate,
        code: reason === 'timeout' ? 'interrupt_expired' : 'interrupt_already_resolved',
      };
    }
    case 'run.cancelled':
      return fate.code === 'interrupt_gone' ? { ...fate, code: 'interrupt_cancelled' } : fate;
    default:
      return fate;
  }
}
