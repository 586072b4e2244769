// Structured errors of the agent (seed 004 §3.3, §7.4): a tool says what may be known by throwing ToolError; of any
// other error only its name leaves the process, so that no stack, path or secret does.
import {
  PROTOCOL_ERRORS,
  type JsonMap,
  type ProtocolError,
  type ProtocolErrorCode,
} from '../opensentience/messages.ts';

const CODE = /^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+$/;
const MAX_CODE_CHARS = 128;
const MAX_MESSAGE_CHARS = 1_000;
const SAFE_NAME = /^[A-Za-z][A-Za-z0-9_]{0,63}$/;

export interface ToolErrorOptions {
  /** Whether the same call might succeed later. */
  readonly retryable?: boolean;
  /** Free of secrets: it leaves the process. Without JSON, or too large for a frame, they are left out, and the call's log says so. */
  readonly details?: JsonMap;
  readonly cause?: unknown;
}

/**
 * The one error whose message reaches Core. `code` is namespaced: `notebook.note_not_found`. It is the tool's word that nothing
 * more comes of the call, and that nobody need look what became of it, unless it is `retryable`. The areas `tool`, `protocol`,
 * `agent` and `core` are the protocol's: a code of theirs says so only where it refuses the call.
 */
export class ToolError extends Error {
  readonly code: string;
  readonly retryable: boolean;
  readonly details: JsonMap | undefined;

  constructor(code: string, message: string, options: ToolErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    if (!CODE.test(code) || code.length > MAX_CODE_CHARS)
      throw new TypeError('The code of a ToolError is namespaced in lower case: area.what.');
    this.name = 'ToolError';
    this.code = code;
    this.retryable = options.retryable ?? false;
    this.details = options.details;
  }
}

/** Why Core, or the way to it, said no: `code` as in seed 004 §3.3. */
export class AgentError extends Error {
  readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.name = 'AgentError';
    this.code = code;
  }
}

export function protocolError(
  code: ProtocolErrorCode,
  more: Pick<ProtocolError, 'details' | 'retryable'> = {},
): ProtocolError {
  return {
    code,
    message: PROTOCOL_ERRORS[code],
    retryable: false,
    ...more,
    where: 'agent.runtime',
  };
}

/** What Core may know of something that a tool threw. */
export function errorOfTool(thrown: unknown): ProtocolError {
  if (thrown instanceof ToolError) {
    const { code, message, retryable, details } = thrown;
    const safe = message.slice(0, MAX_MESSAGE_CHARS);
    return { code, message: safe, retryable, ...(details && { details }), where: 'agent.tool' };
  }
  const name = thrown instanceof Error && SAFE_NAME.test(thrown.name) ? thrown.name : 'Error';
  const error = protocolError('tool.failed', { details: { error: name } });
  return { ...error, where: 'agent.tool' };
}
