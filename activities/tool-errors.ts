// What a tool's throw means for its effect (architecture §5): not sent, finally refused, or not known.
import { codeOf, ERRORS, isOutage, type ErrorCode } from '../src/rules/errors.ts';
import { boundText } from '../src/rules/tokens.ts';
import type { ToolFailure } from '../src/ports/tools.ts';

/** Longest message of a tool error in bytes: it is recorded and fed to the model. */
const MESSAGE_BYTES = 2048;

export interface ToolError {
  readonly code: ErrorCode;
  readonly message: string;
}

export type FailedCall =
  /** It certainly did not leave the host: another try is safe. `isFinal`: and of no use. */
  | { readonly kind: 'before-send'; readonly error: ToolError; readonly isFinal?: true }
  /** The other side said no: asking again gives the same. `happened`: not no, but what came of it cannot be used. */
  | { readonly kind: 'final'; readonly error: ToolError; readonly happened?: true }
  | { readonly kind: 'unknown'; readonly error: ToolError };

export function toolError(code: ErrorCode, message?: string): ToolError {
  return { code, message: boundText(message ?? ERRORS[code].message, MESSAGE_BYTES) };
}

/** `redact` is applied to every message. */
export function readToolFailure(error: unknown, redact: (text: string) => string): FailedCall {
  const said = codeOf(error);
  // A tool that is away is no outage of the host's own.
  const code = said === undefined || isOutage(said) ? 'tool_failed' : said;
  const message = error instanceof Error ? redact(error.message) : undefined;
  const told = toolError(code, message);
  const { sent, details } = (error ?? {}) as ToolFailure;
  const isFinal = details?.final === true;
  if (sent === false) return { kind: 'before-send', error: told, ...(isFinal && { isFinal }) };
  if (!isFinal) return { kind: 'unknown', error: told };
  return details.happened === true ? happened(told) : { kind: 'final', error: told };
}

/** It happened, and its result cannot be used: the model learns both. */
export function happened({ code, message }: ToolError): Extract<FailedCall, { kind: 'final' }> {
  const error = toolError(
    code,
    `The call was performed, but its result cannot be used. ${message}`,
  );
  return { kind: 'final', error, happened: true };
}
