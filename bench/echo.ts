// The function that the bench calls in three ways: directly, as a tool of the host, and as the tool of an agent process.
import type { JsonObject } from '../src/rules/json.ts';
import type { Tool } from '../src/ports/tools.ts';

export const ECHO_NAME = 'echo';
export const ECHO_DESCRIPTION = 'Answers the text that it gets, and how long it is.';
export const ECHO_TIMEOUT_MS = 60_000;
export const ECHO_INPUT = {
  type: 'object',
  properties: { text: { type: 'string', maxLength: 4_096 } },
  required: ['text'],
  additionalProperties: false,
} as const;
export const ECHO_OUTPUT = {
  type: 'object',
  properties: { text: { type: 'string' }, length: { type: 'integer' } },
  required: ['text', 'length'],
  additionalProperties: false,
} as const;

export function echo({ text }: { readonly text: string }): { text: string; length: number } {
  return { text, length: text.length };
}

/** The same function, in the host's own process. */
export const ECHO_TOOL: Tool = {
  toolId: 'bench:echo',
  description: ECHO_DESCRIPTION,
  inputSchema: ECHO_INPUT as unknown as JsonObject,
  outputSchema: ECHO_OUTPUT as unknown as JsonObject,
  idempotent: true,
  timeoutMs: ECHO_TIMEOUT_MS,
  transport: 'native',
  safetyTier: 'read',
  call: async (input) => echo(input as { text: string }),
};
