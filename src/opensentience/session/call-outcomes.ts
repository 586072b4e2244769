// How calls of agents' tools end for the host (seed 004 §3.3, §4.3.3): one table from the protocol's error codes to the
// host's, and the check of an output. What an agent wrote is redacted and bounded before it is anyone's.
import type { ErrorCode } from '../../rules/errors.ts';
import type { JsonObject } from '../../rules/json.ts';
import { faultText, unkeptIn } from '../../rules/json-text.ts';
import type { CallOutcome, SessionRules } from './effects.ts';
import type { AgentPayloads, ProtocolError } from '../messages.ts';
import type { SessionCall } from '../parts.ts';
import type { AcceptedTool } from './registration.ts';

/** Longest text of an agent's error that is kept, in UTF-16 units. */
const MAX_REASON_LENGTH = 2_000;
const ERROR_CODE = /^[a-z][a-z0-9_]*(\.[a-z0-9_]+)+$/;
const MAX_CODE_LENGTH = 64;

/**
 * What an error says of a call that an agent had. `unknown`: it may have had its effect. `not-now`: asking again may succeed,
 * unless the error says otherwise.
 */
type Meaning = 'refused' | 'happened' | 'not-now' | 'unknown';

const MEANINGS: Readonly<Record<string, readonly [ErrorCode, Meaning]>> = {
  'tool.invalid_input': ['tool_invalid_input', 'refused'],
  'tool.input_too_large': ['payload_too_large', 'refused'],
  'tool.not_found': ['tool_not_found', 'refused'],
  'tool.invalid_output': ['tool_invalid_output', 'happened'],
  'tool.output_too_large': ['payload_too_large', 'happened'],
  'tool.overloaded': ['rate_limited', 'not-now'],
  'protocol.draining': ['agent_unavailable', 'not-now'],
  'tool.timeout': ['tool_timeout', 'unknown'],
};
/** Areas of the protocol's own codes. Whoever gives one that is not above had no word of its tool (a crash, a drain). */
const OF_PROTOCOL = /^(tool|protocol|agent|core)\./;

/** A call that ended without the agent's word, or before it was sent. */
export function unanswered(code: ErrorCode, sent: boolean, details: JsonObject = {}): CallOutcome {
  return { ok: false, code, sent, details };
}

/** Asking again gives the same: final. */
export function refusedCall(code: ErrorCode, sent: boolean, details: JsonObject): CallOutcome {
  return { ok: false, code, sent, details: { ...details, final: true } };
}

/** The tool has had its effect, and its result is of no use. */
function uselessResult(code: ErrorCode, details: JsonObject): CallOutcome {
  return refusedCall(code, true, { ...details, happened: true });
}

/** `succeeded`, with something else than an object as the output. */
export function uselessOutput(): CallOutcome {
  const reason = 'The result of the tool is no object.';
  return uselessResult('tool_invalid_output', { pointer: '', reason });
}

/** A result that cannot be read says nothing of the effect; of a tool without one it is the end. */
export function unreadableResult({ sideEffects }: Pick<SessionCall, 'sideEffects'>): CallOutcome {
  const details = { pointer: '' };
  return sideEffects
    ? unanswered('tool_invalid_output', true, details)
    : refusedCall('tool_invalid_output', true, details);
}

export interface FailureRules {
  readonly sideEffects: boolean;
  readonly redactor: SessionRules['redactor'];
  /** An error in the place of a result: it is the agent's, and not the tool's. */
  readonly isReply?: boolean;
}

/**
 * A result's `failed`, a `canceled` that nobody asked for, or an error in the place of a result (§3.3, §4.3.3). Final where
 * the error says what became of the call: a code of the tool's own does, and of the protocol's those that refuse it, or its
 * result. Anything else is final only of a tool without effects. An error with `retryable: true` is not final.
 */
export function failedOutcome(error: ProtocolError | undefined, rules: FailureRules): CallOutcome {
  const { sideEffects, redactor } = rules;
  const agentCode = error && ownCode(error.code, redactor);
  const [code, meaning] = meaningOf(agentCode, rules);
  const reason = redactor.text(error?.message ?? '').slice(0, MAX_REASON_LENGTH);
  const isRetryable = error?.retryable ?? meaning === 'not-now';
  const details = { ...(agentCode && { agentCode }), ...(reason && { reason }) };
  if (meaning === 'happened') return uselessResult(code, details);
  if (isRetryable) return unanswered(code, true, { ...details, retryable: true });
  return meaning === 'unknown' && sideEffects
    ? unanswered(code, true, details)
    : refusedCall(code, true, details);
}

function meaningOf(
  agentCode: string | undefined,
  { isReply }: FailureRules,
): readonly [ErrorCode, Meaning] {
  const known = agentCode === undefined ? undefined : MEANINGS[agentCode];
  if (known) return known;
  const isOwn = agentCode !== undefined && !isReply && !OF_PROTOCOL.test(agentCode);
  return ['tool_failed', isOwn ? 'refused' : 'unknown'];
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
    return uselessResult('payload_too_large', { bytes, maxBytes: maxOutputBytes });
  const unkept = unkeptIn(output);
  if (unkept)
    return uselessResult('tool_invalid_output', {
      pointer: redactor.text(unkept.pointer),
      reason: redactor.text(`${faultText('The result of the tool', unkept)}.`),
    });
  const checked = tool.output?.validate(output);
  if (checked && !checked.ok)
    return uselessResult('tool_invalid_output', {
      pointer: redactor.text(checked.errors[0].pointer).slice(0, MAX_REASON_LENGTH),
    });
  return { ok: true, output: redactor.json(output) };
}
