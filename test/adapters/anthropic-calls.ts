// Calls of the provider `anthropic` to an endpoint of the test's own, which is as strict as the documented API.
import { afterEach } from 'vitest';
import { createAnthropicModel, type AnthropicConfig } from '../../src/adapters/models/anthropic.ts';
import { DECISION_TOOL } from '../../src/adapters/models/decision-tool.ts';
import { functionNameOf } from '../../src/adapters/models/tool-names.ts';
import { codeOf } from '../../src/rules/errors.ts';
import type { ModelRequest, ToolDescription, TranscriptItem } from '../../src/ports/models.ts';
import {
  begin,
  end,
  startAnthropicServer,
  streaming,
  toolBlock,
  type AnthropicAnswer,
  type AnthropicServer,
  type AnthropicServerOptions,
} from '../support/anthropic-server.ts';

export const KEY = 'sk-ant-test-key-that-is-long';

let server: AnthropicServer | undefined;
afterEach(stopServer);

/** In place of the one before; it ends with its test. */
export async function serve(options: AnthropicServerOptions): Promise<AnthropicServer> {
  await stopServer();
  server = await startAnthropicServer(options);
  return server;
}

export async function stopServer(): Promise<void> {
  await server?.stop();
  server = undefined;
}

/** What the endpoint of this test let through, as far as there is one. */
export const requests = (): AnthropicServer['requests'] => server?.requests ?? [];
export const refused = (): AnthropicServer['refused'] => server?.refused ?? [];

/** Gives the answers in their order, the last one for ever. */
export async function endpoint(...answers: AnthropicAnswer[]): Promise<AnthropicConfig> {
  const { url } = await serve({
    answerOf: (_body, index) => answers[Math.min(index, answers.length - 1)],
    key: KEY,
  });
  return { apiKey: KEY, baseUrl: url };
}

export const ORDERS: ToolDescription = {
  toolId: 'demo:orders.get',
  description: 'Reads an order.',
  inputSchema: { type: 'object', properties: { id: { type: 'string' } } },
  idempotent: true,
  timeoutMs: 1000,
  transport: 'http',
  safetyTier: 'read',
};
export const ORDERS_NAME = functionNameOf(ORDERS.toolId);

export const SYSTEM: TranscriptItem = { role: 'system', text: 'You decide.' };
export const TASK: TranscriptItem = { role: 'user', text: 'Task', trusted: false };
export const asking = (text: string, ...callIds: string[]): TranscriptItem => ({
  role: 'assistant',
  text,
  calls: callIds.map((callId) => ({ callId, toolId: ORDERS.toolId, arguments: { id: 'A' } })),
});
export const result = (callId: string, text = '{}'): TranscriptItem => ({
  role: 'tool',
  callId,
  toolId: ORDERS.toolId,
  text,
});

export const REQUEST: ModelRequest = {
  provider: 'anthropic',
  model: 'claude-test-1',
  agentId: 'local.test.desk.agent',
  items: [SYSTEM, TASK, asking('I look.', 'call-1'), result('call-1')],
  tools: [ORDERS],
  outputSchema: { type: 'object', properties: { decision: {} }, required: ['decision'] },
  idempotencyKey: 'key-1',
};

export async function infer(
  config: AnthropicConfig,
  more: Partial<ModelRequest> = {},
  stop?: AbortSignal,
) {
  const pieces: string[] = [];
  const response = await createAnthropicModel(config).infer(
    { ...REQUEST, ...more },
    { signal: stop ?? new AbortController().signal, onReasoning: (piece) => pieces.push(piece) },
  );
  return { response, pieces };
}

export function failureOf(
  config: AnthropicConfig,
  more: Partial<ModelRequest> = {},
): Promise<unknown> {
  return infer(config, more).then(
    () => 'no failure',
    (error: unknown) => {
      const { message, details } = error as { message: string; details?: unknown };
      return { code: codeOf(error), message, details };
    },
  );
}

export const decision = (index = 0): string => toolBlock(index, DECISION_TOOL, '{"decision":1}');
export const WHOLE = decision() + end('tool_use');
export const DECIDES = streaming(begin(), WHOLE);
