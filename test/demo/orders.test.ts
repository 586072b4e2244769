// The demo's shop and tools: what the effect ledger is shown against.
import { once } from 'node:events';
import { appendFileSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createDemo, type Demo } from '../../src/demo/index.ts';
import { orderTools } from '../../src/demo/order-tools.ts';
import type { Logger } from '../../src/ports/logger.ts';
import type { Tool, ToolCallContext } from '../../src/ports/tools.ts';

const logger: Logger = { debug() {}, info() {}, warn() {}, error() {} };
let dataDir: string;
let demo: Demo;

beforeEach(async () => {
  dataDir = mkdtempSync(join(tmpdir(), 'openwop-demo-'));
  demo = await createDemo({ dataDir, logger });
});
afterEach(async () => {
  await demo.stop();
  rmSync(dataDir, { recursive: true });
});

function tool(toolId: string): Tool {
  const found = demo.tools.find((one) => one.toolId === toolId);
  if (!found) throw new Error(toolId);
  return found;
}

function context(idempotencyKey = 'key-1'): ToolCallContext {
  const signal = AbortSignal.timeout(10_000);
  return {
    tenant: 'default',
    runId: 'run-1',
    correlationId: 'run-1',
    nodeId: 'pay',
    workflowId: 'refund-desk',
    callerAgentId: 'agent.desk',
    callId: 'call-1',
    principal: 'p',
    idempotencyKey,
    signal,
  };
}

async function refunds(): Promise<{ count: number; refunds: { idempotencyKey: string }[] }> {
  const response = await fetch(`${demo.ordersUrl}/refunds`);
  return (await response.json()) as { count: number; refunds: { idempotencyKey: string }[] };
}

const payment = { orderId: 'A-1007', amountCents: 6490, reason: 'cracked' };

describe('demo:orders.get', () => {
  it('reads an order', async () => {
    expect(await tool('demo:orders.get').call({ orderId: 'A-1007' }, context())).toMatchObject({
      orderId: 'A-1007',
      totalCents: 6490,
    });
  });
  it('an unknown order is a final failure in words', async () => {
    await expect(tool('demo:orders.get').call({ orderId: 'B-1' }, context())).rejects.toMatchObject(
      {
        code: 'tool_failed',
        details: { final: true, reason: 'There is no such order.' },
      },
    );
  });
  it('is idempotent', () => expect(tool('demo:orders.get').idempotent).toBe(true));
});

describe('demo:orders.refund (architecture §5)', () => {
  it('notes the idempotency key but pays every call: only the ledger prevents the second one', async () => {
    await tool('demo:orders.refund').call(payment, context());
    await tool('demo:orders.refund').call(payment, context());
    expect(await refunds()).toMatchObject({
      count: 2,
      refunds: [{ idempotencyKey: 'key-1' }, { idempotencyKey: 'key-1' }],
    });
  });
  it('is not idempotent and cannot be asked whether it happened', () => {
    expect(tool('demo:orders.refund').idempotent).toBe(false);
    expect('reconcile' in tool('demo:orders.refund')).toBe(false);
  });
  it.each([
    [{ ...payment, amountCents: 6491 }, "The order's total is 6490 cents."],
    [{ ...payment, amountCents: 0 }, 'amountCents must be a whole number above 0.'],
    [{ ...payment, orderId: 'B-1' }, 'There is no such order.'],
  ])('refuses %j and pays nothing', async (input, reason) => {
    const call = tool('demo:orders.refund').call(input, context());
    await expect(call).rejects.toMatchObject({
      code: 'tool_failed',
      details: { final: true, reason },
    });
    expect(await refunds()).toMatchObject({ count: 0 });
  });
  it('a connection that was never made certainly sent nothing', async () => {
    await demo.stop();
    const call = tool('demo:orders.refund').call(payment, context());
    await expect(call).rejects.toMatchObject({ sent: false });
    demo = await createDemo({ dataDir, logger });
  });
  it('a redirect is not followed: that nobody answers behind it does not say that nothing was sent', async () => {
    let posts = 0;
    const server = createServer((request, response) => {
      posts++;
      request.resume();
      // Port 9 of this machine: nobody listens there.
      response.writeHead(307, { location: 'http://127.0.0.1:9/' }).end();
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const refund = orderTools(`http://127.0.0.1:${port}`).find(
      ({ toolId }) => toolId === 'demo:orders.refund',
    );
    const thrown: unknown = await refund?.call(payment, context()).catch((error: unknown) => error);
    server.close();
    expect(posts).toBe(1);
    expect(thrown).toMatchObject({ message: 'The orders service answered HTTP 307.' });
    expect(thrown).not.toHaveProperty('sent');
    expect(thrown).not.toHaveProperty('details');
  });
  it('the count survives a restart, and a line cut by a crash does not count', async () => {
    await tool('demo:orders.refund').call(payment, context());
    await demo.stop();
    appendFileSync(join(dataDir, 'demo', 'refunds.jsonl'), '{"refundId":"R-2","ord');
    demo = await createDemo({ dataDir, logger });
    expect(await tool('demo:orders.refund').call(payment, context('key-2'))).toMatchObject({
      refundId: 'R-2',
    });
    expect(await refunds()).toMatchObject({ count: 2 });
  });
});
