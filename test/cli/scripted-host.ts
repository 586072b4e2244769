// An HTTP server that answers as a test says, and keeps what it was asked; and the command line asked of it.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import type { CliParts } from '../../src/cli/cli.ts';
import { runCli } from '../../src/cli/program.ts';

export const KEY = 'owop_key_of_the_cli_tests';

export interface Asked {
  readonly line: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: unknown;
}

export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

type Handler = (response: ServerResponse, asked: Asked) => void;
/** JSON with a status, or what the test does with the response itself. */
export type Scripted = { readonly status?: number; readonly body: unknown } | Handler;

export interface ScriptedHost {
  readonly url: string;
  readonly asked: readonly Asked[];
  /** By `METHOD /path`, without the query; of a list each answer once, the last one for ever. */
  script(answers: Readonly<Record<string, Scripted | readonly Scripted[]>>): void;
  /** Nothing answers at its address until it is opened again. */
  close(): Promise<void>;
  open(): Promise<void>;
  run(args: readonly string[], parts?: Partial<CliParts>): Promise<Ran>;
}

export async function scriptedHost(): Promise<ScriptedHost> {
  const asked: Asked[] = [];
  let answers: Record<string, Scripted[]> = {};
  let port = 0;
  const server = createServer((request, response) => {
    let text = '';
    request.setEncoding('utf8').on('data', (piece: string) => (text += piece));
    request.on('end', () => {
      const [path = ''] = (request.url ?? '').split('?');
      const one: Asked = {
        line: `${request.method} ${request.url}`,
        headers: request.headers,
        body: text === '' ? undefined : JSON.parse(text),
      };
      asked.push(one);
      const list = answers[`${request.method} ${path}`] ?? [refusal(404, 'not_found')];
      const answer = list.length > 1 ? list.shift() : list[0];
      if (typeof answer === 'function') return answer(response, one);
      const { status = 200, body } = answer ?? refusal(404, 'not_found');
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    });
  });
  const open = (): Promise<void> =>
    new Promise((resolve) => {
      server.listen(port, '127.0.0.1', () => {
        ({ port } = server.address() as AddressInfo);
        resolve();
      });
    });
  await open();
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    asked,
    open,
    script: (given) => {
      asked.length = 0;
      answers = Object.fromEntries(
        Object.entries(given).map(([name, one]) => [name, isList(one) ? [...one] : [one]]),
      );
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
    async run(args, parts = {}) {
      let out = '';
      let err = '';
      const code = await runCli(args, {
        ...{ url, apiKey: KEY, input: Readable.from([]) },
        ...{ out: (text: string) => void (out += text), err: (text: string) => void (err += text) },
        ...parts,
      });
      return { code, out, err };
    },
  };
}

function isList(one: Scripted | readonly Scripted[]): one is readonly Scripted[] {
  return Array.isArray(one);
}

export function refusal(status: number, error: string, more: object = {}) {
  return { status, body: { error, message: `The words of ${error}.`, ...more } };
}

/** Frames as the host sends them. */
export function frames(events: readonly { sequence: number; type: string }[]): string {
  return events
    .map(
      (event) => `id: ${event.sequence}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`,
    )
    .join('');
}
