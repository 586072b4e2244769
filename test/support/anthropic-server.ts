// Anthropic's Messages API of the tests' own: a real HTTP server, as strict as the documented API (version 2026-10-21),
// that streams what it is told to, and notes what it was asked and which sockets were closed on it.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { functionNameOf } from '../../src/adapters/models/tool-names.ts';
import { faultOfMessages } from './anthropic-rules.ts';

type Json = Record<string, unknown>;

export type AnthropicAnswer = (
  response: ServerResponse,
  body: Json,
  request: IncomingMessage,
) => void;

/** One server-sent event, named as the API names it. */
export function event(data: Json & { readonly type: string }): string {
  return `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
}

export const PING = event({ type: 'ping' });
export const STOP = event({ type: 'message_stop' });

export function begin(usage: Json = { input_tokens: 11, output_tokens: 1 }): string {
  const message = {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    content: [],
    model: 'served-1',
    stop_reason: null,
    stop_sequence: null,
    usage,
  };
  return event({ type: 'message_start', message }) + PING;
}

export function end(stop_reason: string | null, more: Json = {}): string {
  const { usage = { output_tokens: 7 }, ...delta } = more;
  return (
    event({
      type: 'message_delta',
      delta: { stop_reason, stop_sequence: null, ...delta },
      usage,
    }) + STOP
  );
}

export function blockStart(index: number, content_block: Json): string {
  return event({ type: 'content_block_start', index, content_block });
}

export function blockDelta(index: number, delta: Json): string {
  return event({ type: 'content_block_delta', index, delta });
}

export function blockStop(index: number): string {
  return event({ type: 'content_block_stop', index });
}

export function textBlock(index: number, pieces: readonly string[]): string {
  const deltas = pieces.map((text) => blockDelta(index, { type: 'text_delta', text }));
  return blockStart(index, { type: 'text', text: '' }) + deltas.join('') + blockStop(index);
}

export function thinkingBlock(index: number, pieces: readonly string[]): string {
  const deltas = pieces.map((thinking) => blockDelta(index, { type: 'thinking_delta', thinking }));
  const signature = blockDelta(index, { type: 'signature_delta', signature: 'EqQBCgIYAhIM' });
  const start = blockStart(index, { type: 'thinking', thinking: '', signature: '' });
  return start + deltas.join('') + signature + blockStop(index);
}

/** The name as the API knows it; the input as text, in two pieces. */
export function toolBlock(index: number, name: string, input: string): string {
  const half = Math.ceil(input.length / 2);
  const pieces = [input.slice(0, half), input.slice(half)];
  const deltas = pieces.map((partial_json) =>
    blockDelta(index, { type: 'input_json_delta', partial_json }),
  );
  const start = { type: 'tool_use', id: `toolu_${index}`, name, input: {} };
  return blockStart(index, start) + deltas.join('') + blockStop(index);
}

export function streaming(...parts: string[]): AnthropicAnswer {
  return (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const part of parts) response.write(part);
    response.end();
  };
}

/** What is said before calls: thought, where the request lets it be seen, else as text. */
export function spoken(pieces: readonly string[], body: Json): string {
  const thinks = (body.thinking as Json | undefined)?.type;
  return thinks === 'adaptive' || thinks === 'enabled'
    ? thinkingBlock(0, pieces)
    : textBlock(0, pieces);
}

/** Tools by the names of the API. */
export function using(
  pieces: readonly string[],
  calls: readonly { readonly name: string; readonly input: string }[],
): AnthropicAnswer {
  return (response, body, request) => {
    const blocks = calls.map(({ name, input }, at) => toolBlock(at + 1, name, input));
    const parts = [begin(), spoken(pieces, body), ...blocks, end('tool_use')];
    streaming(...parts)(response, body, request);
  };
}

export function callingTools(
  pieces: readonly string[],
  calls: readonly { toolId: string; arguments: unknown }[],
): AnthropicAnswer {
  const named = calls.map(({ toolId, arguments: sent }) => ({
    name: functionNameOf(toolId),
    input: JSON.stringify(sent),
  }));
  return using(pieces, named);
}

export function failing(
  status: number,
  type: string,
  { message = 'no', headers = {} }: { message?: string; headers?: Record<string, string> } = {},
): AnthropicAnswer {
  return (response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(JSON.stringify({ type: 'error', error: { type, message }, request_id: 'req_1' }));
  };
}

/** An error within a stream that had begun with 200. */
export function errorEvent(type: string, message = 'no'): string {
  return event({ type: 'error', error: { type, message } });
}

export interface AnthropicServer {
  /** Base for ANTHROPIC_BASE_URL. */
  readonly url: string;
  /** Bodies of all requests that the rules let through so far. */
  readonly requests: readonly Json[];
  /** What the rules refused, in words. */
  readonly refused: readonly string[];
  /** Requests whose socket closed before the answer was finished. */
  readonly aborted: () => number;
  /** Times that the list of models was asked for. */
  readonly listed: () => number;
  stop(): Promise<void>;
}

export interface AnthropicServerOptions {
  /** Tells how to answer the n-th request (from 0), whose Idempotency-Key is `key`. */
  readonly answerOf: (body: Json, index: number, key: string) => AnthropicAnswer | undefined;
  /** Absent: any key will do, or none. */
  readonly key?: string;
  /** Ids in the list of models. */
  readonly models?: readonly string[];
  /** The list goes on behind its first page. */
  readonly hasMoreModels?: boolean;
}

interface Notes {
  readonly requests: Json[];
  readonly refused: string[];
  aborted: number;
  listed: number;
}

export async function startAnthropicServer(
  options: AnthropicServerOptions,
): Promise<AnthropicServer> {
  const notes: Notes = { requests: [], refused: [], aborted: 0, listed: 0 };
  const server: Server = createServer((request, response) => {
    let text = '';
    response.on('close', () => {
      if (!response.writableFinished) notes.aborted++;
    });
    request.on('data', (piece: Buffer) => (text += piece.toString()));
    request.on('end', () => answer({ options, notes, request, text })(response, {}, request));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    requests: notes.requests,
    refused: notes.refused,
    aborted: () => notes.aborted,
    listed: () => notes.listed,
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

interface Asked {
  readonly options: AnthropicServerOptions;
  readonly notes: Notes;
  readonly request: IncomingMessage;
  readonly text: string;
}

function answer({ options, notes, request, text }: Asked): AnthropicAnswer {
  const { headers, method, url } = request;
  const keys = [headers['x-api-key'], headers.authorization?.replace(/^Bearer /, '')];
  if (options.key !== undefined && !keys.includes(options.key))
    return failing(401, 'authentication_error', { message: `invalid x-api-key: ${keys.join()}` });
  if (!/^(2023-06-01|2026-10-21)$/.test(String(headers['anthropic-version'])))
    return refuse(notes, 'anthropic-version: header is required');
  if (method === 'GET' && url?.startsWith('/v1/models')) return listing(options, notes);
  if (method !== 'POST' || url !== '/v1/messages') return failing(404, 'not_found_error');
  const body = JSON.parse(text) as Json;
  const fault = faultOfMessages(body);
  if (fault !== undefined) return refuse(notes, fault);
  const key = headers['idempotency-key']?.toString() ?? '';
  const told = options.answerOf(body, notes.requests.push(body) - 1, key);
  return (response) => (told ?? failing(404, 'not_found_error'))(response, body, request);
}

function listing(
  { models = [], hasMoreModels = false }: AnthropicServerOptions,
  notes: Notes,
): AnthropicAnswer {
  notes.listed++;
  const data = models.map((id) => ({ type: 'model', id, display_name: id }));
  const ends = { first_id: models[0] ?? null, last_id: models.at(-1) ?? null };
  return (response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ data, has_more: hasMoreModels, ...ends }));
  };
}

function refuse(notes: Notes, fault: string): AnthropicAnswer {
  notes.refused.push(fault);
  return failing(400, 'invalid_request_error', { message: fault });
}
