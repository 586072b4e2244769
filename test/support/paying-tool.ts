// A tool that has an effect outside and is not idempotent: who calls it twice has paid twice.
import type { JsonObject, JsonValue } from '../../src/rules/json.ts';
import type { Tool } from '../../src/ports/tools.ts';

export const PAY = 'tests:pay';

export interface PayingTool {
  readonly tool: Tool;
  /** Amounts that were paid outside, in their order. */
  readonly paid: JsonValue[];
  /** What comes of a payment that was made. */
  behave: (amount: JsonValue, signal: AbortSignal) => Promise<JsonValue>;
}

/** `timeoutMs`: of a call. Until told otherwise it says what it paid. */
export function payingTool(timeoutMs: number): PayingTool {
  const tool: Tool = {
    toolId: PAY,
    description: 'Pays.',
    inputSchema: { type: 'object', properties: { amount: { type: 'number' } } },
    outputSchema: { type: 'object' },
    idempotent: false,
    timeoutMs,
    transport: 'native',
    safetyTier: 'write',
    call: async (input, { signal }) => {
      const { amount = null } = input as JsonObject;
      paying.paid.push(amount);
      return paying.behave(amount, signal);
    },
  };
  const paying: PayingTool = { tool, paid: [], behave: async (amount) => ({ paid: amount }) };
  return paying;
}
