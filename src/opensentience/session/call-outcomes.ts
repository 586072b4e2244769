// How calls of agents' tools end for the host (seed 004 §3.3, §4.3.3): one table from the protocol's error codes to the
// host's, and the check of an output. What an agent wrote is redacted and bounded before it is anyone's.
import type { ErrorCode } from '../../rules/errors.ts';
import type { JsonObject } from '../../rules/json.ts';
import { faultText, unkeptIn } from '../../rules/json-text.ts';
import type { CallOutcome, SessionRules } from './effects.ts';
import type { AgentPayloads, ProtocolError } from '../messages.ts';
import type { AcceptedTool } from './registration.ts';

/** Longest text of an agent's error that is kept, in UTF-16 units. */
const MAX_REASON_LENGTH = 2_000;
const ERROR_CODE = /^[a-z][a-z0-9_]*(\.[a-z0-9_]+)+$/;
const MAX_CODE_LENGTH = 64;

/** Codes that are not here are the tool's own: `tool_failed`. */
const HOST_CODES: Readonly<Record<string, ErrorCode>> = {
  'tool.invalid_input': 'tool_invalid_input',
  'tool.invalid_output': 'tool_invalid_output',
  'tool.input_too_large': 'payload_too_large',
  'tool.output_too_large': 'payload_too_large',
  'tool.not_found': 'tool_not_found',
  'tool.timeout': 'tool_timeout',
  'tool.overloaded': 'rate_limited',
  'protocol.draining': 'agent_unavailable',
};
/** By these the agent says "not now": asking again may succeed, unless the error says otherwise. */
const NOT_NOW: ReadonlySet<string> = new Set(['tool.overloaded', 'protocol.draining']);

/** A call that ended without the agent's word, or before it was sent. */
export function unanswered(code: ErrorCode, sent: boolean, details: JsonObject = {}): CallOutcome {
  return { ok: false, code, sent, details };
}

/** Asking again gives the same: final. */
export function refusedCall(code: ErrorCode, sent: boolean, details: JsonObject): CallOutcome {
  return { ok: false, code, sent, details: { ...details, final: true } };
}

/** A result's `failed`, or a `canceled` that nobody asked for. Final unless the error says `retryable: true`. */
export function failedOutcome(
  error: ProtocolError | undefined,
  redactor: SessionRules['redactor'],
): CallOutcome {
  const agentCode = error && ownCode(error.code, redactor);
  const reason = redactor.text(error?.message ?? '').slice(0, MAX_REASON_LENGTH);
  const retryable = error?.retryable ?? (agentCode !== undefined && NOT_NOW.has(agentCode));
  return {
    ok: false,
    code: (agentCode && HOST_CODES[agentCode]) || 'tool_failed',
    sent: true,
    details: {
      ...(agentCode && { agentCode }),
      ...(reason && { reason }),
      ...(retryable ? { retryable } : { final: true }),
    },
  };
}

function ownCode(code: string, redactor: SessionRules['redactor']): string {
  const fits = code.length <= MAX_CODE_LENGTH && ERROR_CODE.test(code);
  return fits && redactor.text(code) === code ? code : 'tool.failed';
}

export interface OutputRules {
  readonly tool: AcceptedTool;
  readonly maxOutputBytes: number;
  readonly redactor: SessionRules['redactor'];
}

/** The output as runs get it. One that cannot be taken as it is written is final: the tool has had its effect. */
export function succeededOutcome(
  result: AgentPayloads['agent.tool.result'],
  { tool, maxOutputBytes, redactor }: OutputRules,
): CallOutcome {
  const output = result.output ?? {};
  const bytes = Buffer.byteLength(JSON.stringify(output));
  if (bytes > maxOutputBytes)
    return refusedCall('payload_too_large', true, { bytes, maxBytes: maxOutputBytes });
  const unkept = unkeptIn(output);
  if (unkept)
    return refusedCall('tool_invalid_output', true, {
      pointer: redactor.text(unkept.pointer),
      reason: redactor.text(`${faultText('The result of the tool', unkept)}.`),
    });
  const checked = tool.output?.validate(output);
  if (checked && !checked.ok)
    return refusedCall('tool_invalid_output', true, {
      pointer: redactor.text(checked.errors[0].pointer).slice(0, MAX_REASON_LENGTH),
    });
  return { ok: true, output: redactor.json(output) };
}
