// More than one turn of a model may hold (architecture §5): what the model is told, with the size and the limit. It is told
// once in an invocation; too much again fails the node.
import { jsonBytes } from '../src/rules/json.ts';
import {
  INLINE_VALUE_BYTES,
  MAX_CALLS_PER_TURN,
  TURN_ARGUMENTS_BYTES,
} from '../src/rules/limits.ts';
import { boundText } from '../src/rules/tokens.ts';
import type { RequestedCall } from './contract.ts';

/** Longest name of a tool in bytes that is repeated. */
const NAME_BYTES = 256;

/** Undefined: the value is not too large. `what` is its subject and verb. */
export function excessOf(what: string, value: unknown): string | undefined {
  return sentenceOver(what, jsonBytes(value), INLINE_VALUE_BYTES);
}

/** Names all that is too much; undefined: nothing is. `calls` must be redacted. */
export function excessOfCalls(calls: readonly RequestedCall[]): string | undefined {
  const large = calls.find(isLarge);
  const { length } = calls;
  const sent = jsonBytes(calls.map((call) => call.arguments));
  const faults = [
    large && excessOf(`The call of ${boundText(large.toolId, NAME_BYTES)} has`, large),
    length > MAX_CALLS_PER_TURN
      ? `There were ${length} calls of tools in one turn; at most ${MAX_CALLS_PER_TURN} are permitted.`
      : undefined,
    sentenceOver('The arguments of all calls together have', sent, TURN_ARGUMENTS_BYTES),
  ].filter((fault) => fault !== undefined);
  return faults.length === 0 ? undefined : [...faults, 'No tool was called.'].join(' ');
}

/** Larger, with its arguments, than a value may be. */
export function isLarge(call: RequestedCall): boolean {
  return jsonBytes(call) > INLINE_VALUE_BYTES;
}

function sentenceOver(what: string, bytes: number, limit: number): string | undefined {
  return bytes > limit ? `${what} ${bytes} bytes; at most ${limit} are permitted.` : undefined;
}
