// An OpenAI-compatible endpoint of the tests' own: a real HTTP server that answers streamed chat completions as told,
// strict as the documented API or not, and notes what it was asked and which sockets were closed on it.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { DECISION_TOOL } from '../../src/adapters/models/decision-tool.ts';
import { functionNameOf } from '../../src/adapters/models/tool-names.ts';
import { faultOfCompletions } from './openai-rules.ts';

export type ServerAnswer = (
  response: ServerResponse,
  body: Record<string, unknown>,
  request: IncomingMessage,
) => void;

type Delta = Record<string, unknown>;

/** One server-sent event of a stream. */
export function chunk(delta: Delta, finish_reason: string | null = null): string {
  const choices = [{ index: 0, delta, finish_reason }];
  return `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', model: 'served-1', choices })}\n\n`;
}

export const USAGE = `data: ${JSON.stringify({
  id: 'c',
  model: 'served-1',
  choices: [],
  usage: { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 },
})}\n\n`;
export const DONE = 'data: [DONE]\n\n';

/** A piece of a streamed tool call; the name comes with the first piece only. */
export function callPiece(index: number, name: string | undefined, args: string): Delta {
  return {
    tool_calls: [
      {
        index,
        ...(name ? { id: `x${index}`, type: 'function' } : {}),
        function: { ...(name ? { name } : {}), arguments: args },
      },
    ],
  };
}

export function streaming(...parts: string[]): ServerAnswer {
  return (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const part of parts) response.write(part);
    response.end();
  };
}

export function failing(
  status: number,
  error: Delta = {},
  headers: Record<string, string> = {},
): ServerAnswer {
  return (response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(JSON.stringify({ error }));
  };
}

/** Says the pieces, then closes the connection in the middle of the answer. */
export function dropping(...pieces: string[]): ServerAnswer {
  return (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const text = pieces.map((content) => chunk({ content })).join('');
    response.write(text, () => setTimeout(() => response.destroy(), 100));
  };
}

/** Calls whose arguments come in two pieces each, by the names that the endpoint knows. */
export function callChunks(
  calls: readonly { readonly name: string; readonly arguments: string }[],
): string {
  return calls
    .flatMap(({ name, arguments: text }, index) => {
      const half = Math.ceil(text.length / 2);
      return [
        chunk(callPiece(index, name, text.slice(0, half))),
        chunk(callPiece(index, undefined, text.slice(half))),
      ];
    })
    .join('');
}

/** What is said before calls or a decision: nothing where the answer has to match a schema. */
export function prose(pieces: readonly string[], body: Delta): string {
  if (body.response_format !== undefined) return '';
  return pieces.map((content) => chunk({ content })).join('');
}

/** The end of an answer; the usage for whoever asks for it. */
export function finish(reason: string, body: Delta): string {
  const { include_usage: usage } = (body.stream_options ?? {}) as Delta;
  return chunk({}, reason) + (usage === true ? USAGE : '') + DONE;
}

/** Reasoning in pieces, then calls. */
export function callingTools(
  pieces: readonly string[],
  calls: readonly { toolId: string; arguments: unknown }[],
): ServerAnswer {
  const named = calls.map(({ toolId, arguments: args }) => ({
    name: functionNameOf(toolId),
    arguments: JSON.stringify(args),
  }));
  return (response, body, request) => {
    const parts = [prose(pieces, body), callChunks(named), finish('tool_calls', body)];
    streaming(...parts)(response, body, request);
  };
}

/** Whether a request offers the tool that takes the decision. */
function takesDecision({ tools = [] }: Delta): boolean {
  return (tools as { function: Delta }[]).some((tool) => tool.function.name === DECISION_TOOL);
}

/** The decision in the way that was asked for: its tool's arguments, or text on lines of its own in small pieces. */
export function decisionChunks(final: unknown, body: Delta): string {
  const text = typeof final === 'string' ? final : JSON.stringify(final);
  if (takesDecision(body)) {
    const call = callChunks([{ name: DECISION_TOOL, arguments: text }]);
    return call + finish('tool_calls', body);
  }
  const before = body.response_format === undefined ? ['\n'] : [];
  const output = [...before, ...(text.match(/[\s\S]{1,9}/g) ?? [])];
  return output.map((content) => chunk({ content })).join('') + finish('stop', body);
}

/** Reasoning in pieces, then the decision. */
export function deciding(pieces: readonly string[], final: unknown): ServerAnswer {
  return (response, body, request) => {
    streaming(prose(pieces, body), decisionChunks(final, body))(response, body, request);
  };
}

export interface OpenAiServer {
  /** Base for OPENAI_BASE_URL. */
  readonly url: string;
  /** Bodies of all requests so far that were let through. */
  readonly requests: readonly Record<string, unknown>[];
  /** What the strict endpoint refused, in words. */
  readonly refused: readonly string[];
  /** Requests whose socket closed before the answer was finished. */
  readonly aborted: () => number;
  stop(): Promise<void>;
}

export interface OpenAiServerOptions {
  /** Refuses what the documented API refuses. */
  readonly strict?: boolean;
  /** What the endpoint does not know, and refuses with 400. */
  readonly without?: readonly ('tools' | 'json_schema')[];
  /** Absent: any key will do, or none. */
  readonly key?: string;
  /** Ids in the list of models. */
  readonly models?: readonly string[];
}

/** `answerOf` tells how to answer the n-th request (from 0), whose Idempotency-Key is `key`. */
export async function startOpenAiServer(
  answerOf: (body: Record<string, unknown>, index: number, key: string) => ServerAnswer | undefined,
  options: OpenAiServerOptions = {},
): Promise<OpenAiServer> {
  const requests: Record<string, unknown>[] = [];
  const refused: string[] = [];
  let aborted = 0;
  const answer = (request: IncomingMessage, text: string): ServerAnswer => {
    const { key, models = [] } = options;
    if (key !== undefined && request.headers.authorization !== `Bearer ${key}`)
      return failing(401, { code: 'invalid_api_key', type: 'invalid_request_error' });
    if (request.method === 'GET' && request.url === '/v1/models') return listing(models);
    const body = JSON.parse(text) as Record<string, unknown>;
    const fault = lacking(body, options) ?? (options.strict ? faultOfCompletions(body) : undefined);
    if (fault !== undefined) {
      refused.push(fault);
      return failing(400, { message: fault, type: 'invalid_request_error', code: null });
    }
    const idempotencyKey = request.headers['idempotency-key']?.toString() ?? '';
    const told = answerOf(body, requests.push(body) - 1, idempotencyKey) ?? failing(404);
    return (response) => told(response, body, request);
  };
  const server: Server = createServer((request, response) => {
    let text = '';
    response.on('close', () => {
      if (!response.writableFinished) aborted++;
    });
    request.on('data', (piece: Buffer) => (text += piece.toString()));
    request.on('end', () => answer(request, text)(response, {}, request));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    requests,
    refused,
    aborted: () => aborted,
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function lacking(body: Delta, { without = [] }: OpenAiServerOptions): string | undefined {
  if (without.includes('tools') && body.tools !== undefined)
    return `The model ${String(body.model)} does not support tools.`;
  if (without.includes('json_schema') && body.response_format !== undefined)
    return 'This response_format type is unavailable now.';
  return undefined;
}

function listing(models: readonly string[]): ServerAnswer {
  const data = models.map((id) => ({ id, object: 'model', created: 1, owned_by: 'tests' }));
  return (response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ object: 'list', data }));
  };
}
