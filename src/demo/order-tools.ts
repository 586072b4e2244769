// The demo's two tools: reading an order is idempotent, refunding is not, and the shop cannot be asked whether a
// refund happened (no reconcile hook, on purpose): an interrupted refund is raised to a human (architecture §5).
import type { JsonObject, JsonValue } from '../rules/json.ts';
import type { Tool, ToolCallContext, ToolFailure } from '../ports/tools.ts';

export const GET_ORDER = 'demo:orders.get';
export const REFUND_ORDER = 'demo:orders.refund';

const TIMEOUT_MS = 10_000;
/** Codes of a connection that was never made: the request certainly did not leave. */
const NOT_SENT = new Set(['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND']);

const orderId = { type: 'string', minLength: 1, maxLength: 64, pattern: '^[A-Za-z0-9-]+$' };

/** Tools against the orders service at `baseUrl` (no slash at the end). */
export function orderTools(baseUrl: string): readonly Tool[] {
  return [getOrder(baseUrl), refundOrder(baseUrl)];
}

function getOrder(baseUrl: string): Tool {
  return {
    toolId: GET_ORDER,
    description:
      'Reads one order: item, total in cents, days since delivery, whether it can still be returned, and how often the customer ordered.',
    inputSchema: {
      type: 'object',
      properties: { orderId },
      required: ['orderId'],
      additionalProperties: false,
    },
    outputSchema: {
      type: 'object',
      properties: { orderId, item: { type: 'string' }, totalCents: { type: 'integer' } },
      required: ['orderId', 'item', 'totalCents'],
    },
    idempotent: true,
    timeoutMs: TIMEOUT_MS,
    transport: 'http',
    safetyTier: 'read',
    call: (input, context) =>
      request(
        `${baseUrl}/orders/${encodeURIComponent((input as { orderId: string }).orderId)}`,
        { method: 'GET' },
        context,
      ),
  };
}

function refundOrder(baseUrl: string): Tool {
  return {
    toolId: REFUND_ORDER,
    description: 'Refunds an order: pays amountCents back to the customer. Every call pays again.',
    inputSchema: {
      type: 'object',
      properties: {
        orderId,
        amountCents: { type: 'integer', minimum: 1 },
        reason: { type: 'string', maxLength: 1000 },
      },
      required: ['orderId', 'amountCents', 'reason'],
      additionalProperties: false,
    },
    outputSchema: {
      type: 'object',
      properties: { refundId: { type: 'string' }, orderId, amountCents: { type: 'integer' } },
      required: ['refundId', 'orderId', 'amountCents'],
    },
    idempotent: false,
    timeoutMs: TIMEOUT_MS,
    transport: 'http',
    safetyTier: 'write',
    // The shop is part of the demo.
    isSandbox: true,
    call: (input, context) => {
      const { orderId: id, ...body } = input as JsonObject & { orderId: string };
      const headers = {
        'content-type': 'application/json',
        'idempotency-key': context.idempotencyKey,
      };
      return request(
        `${baseUrl}/orders/${encodeURIComponent(id)}/refunds`,
        // The request has arrived where it was sent to: what a redirect leads to says nothing of it.
        { method: 'POST', headers, body: JSON.stringify(body), redirect: 'manual' },
        context,
      );
    },
  };
}

/**
 * One HTTP call. A connection that was never made throws `sent: false`; a refusal by the service is final
 * (`tool_failed`); what breaks in between leaves open whether it happened.
 */
async function request(
  url: string,
  init: RequestInit,
  context: ToolCallContext,
): Promise<JsonValue> {
  const response = await fetch(url, { ...init, signal: context.signal }).catch((error: unknown) => {
    const code = (error as { cause?: { code?: unknown } }).cause?.code;
    const failure: ToolFailure = { sent: !(typeof code === 'string' && NOT_SENT.has(code)) };
    throw Object.assign(
      new Error('The orders service cannot be reached.', { cause: error }),
      failure,
    );
  });
  if (response.status >= 400 && response.status < 500) {
    const { message } = (await response.json()) as { message?: string };
    const details = { final: true, reason: message ?? `HTTP ${response.status}` };
    // Recognised by its code: this room takes no code from the host's core.
    throw Object.assign(new Error(details.reason), { code: 'tool_failed', details });
  }
  if (!response.ok) throw new Error(`The orders service answered HTTP ${response.status}.`);
  return (await response.json()) as JsonValue;
}
