// An OpenAI-compatible endpoint of the tests' own: a real HTTP server that answers streamed chat completions as told,
// and notes what it was asked and which sockets were closed on it.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { functionNameOf } from '../../src/adapters/models/tool-names.ts';

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

/** Reasoning in pieces, then calls whose arguments come in two pieces each. */
export function callingTools(
  pieces: readonly string[],
  calls: readonly { toolId: string; arguments: unknown }[],
): ServerAnswer {
  const halves = calls.flatMap(({ toolId, arguments: args }, index) => {
    const text = JSON.stringify(args);
    const half = Math.ceil(text.length / 2);
    return [
      chunk(callPiece(index, functionNameOf(toolId), text.slice(0, half))),
      chunk(callPiece(index, undefined, text.slice(half))),
    ];
  });
  const said = pieces.map((content) => chunk({ content }));
  return streaming(...said, ...halves, chunk({}, 'tool_calls'), USAGE, DONE);
}

/** Reasoning in pieces, then the final output on lines of its own, in pieces of a few characters. */
export function deciding(pieces: readonly string[], final: unknown): ServerAnswer {
  const text = typeof final === 'string' ? final : JSON.stringify(final);
  const output = ['\n', ...(text.match(/[\s\S]{1,9}/g) ?? [])];
  const said = [...pieces, ...output].map((content) => chunk({ content }));
  return streaming(...said, chunk({}, 'stop'), USAGE, DONE);
}

export interface OpenAiServer {
  /** Base for OPENAI_BASE_URL. */
  readonly url: string;
  /** Bodies of all requests so far. */
  readonly requests: readonly Record<string, unknown>[];
  /** Requests whose socket closed before the answer was finished. */
  readonly aborted: () => number;
  stop(): Promise<void>;
}

/** `answerOf` tells how to answer the n-th request (from 0), whose Idempotency-Key is `key`. */
export async function startOpenAiServer(
  answerOf: (body: Record<string, unknown>, index: number, key: string) => ServerAnswer | undefined,
): Promise<OpenAiServer> {
  const requests: Record<string, unknown>[] = [];
  let aborted = 0;
  const server: Server = createServer((request, response) => {
    let text = '';
    response.on('close', () => {
      if (!response.writableFinished) aborted++;
    });
    request.on('data', (piece: Buffer) => (text += piece.toString()));
    request.on('end', () => {
      const body = JSON.parse(text) as Record<string, unknown>;
      const key = request.headers['idempotency-key']?.toString() ?? '';
      const answer = answerOf(body, requests.push(body) - 1, key) ?? failing(404);
      answer(response, body, request);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    requests,
    aborted: () => aborted,
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
