// The refund desk of `npm start`: everything the host loads for the demo, and the shop that it talks to.
import { join } from 'node:path';
import type { ResolvedAgent } from '../ports/catalog.ts';
import type { Logger } from '../ports/logger.ts';
import type { Tool } from '../ports/tools.ts';
import type { AgentScript, WorkflowDefinition } from '../../schemas/types.generated.ts';
import { refundDesk, refundDeskAgents } from './definition.ts';
import { orderTools } from './order-tools.ts';
import { startOrdersServer } from './orders-server.ts';
import { refundDeskScripts } from './scripts.ts';

export { demoRunRequest } from './definition.ts';

export interface Demo {
  readonly definitions: readonly WorkflowDefinition[];
  readonly agents: readonly ResolvedAgent[];
  /** By agentId, for the provider `scripted`. */
  readonly scripts: Readonly<Record<string, AgentScript>>;
  readonly tools: readonly Tool[];
  /** Address of the shop: `GET /refunds` tells how often money was paid. */
  readonly ordersUrl: string;
  stop(): Promise<void>;
}

/** Starts the shop on a free loopback port; its refunds are counted in `<dataDir>/demo/refunds.jsonl`. */
export async function createDemo(options: { dataDir: string; logger: Logger }): Promise<Demo> {
  const orders = await startOrdersServer({
    refundsFile: join(options.dataDir, 'demo', 'refunds.jsonl'),
    logger: options.logger,
  });
  return {
    definitions: [refundDesk],
    agents: refundDeskAgents,
    scripts: refundDeskScripts,
    tools: orderTools(orders.url),
    ordersUrl: orders.url,
    stop: () => orders.stop(),
  };
}
