// The outside world of fault tests: an HTTP service that counts what it performed, by run label and effect key, and
// never dies. Every pay is performed; a mark is performed once per key. A hook may hold a request at a stage, so that
// a crash hits exactly there; what was received is performed even when the caller is gone.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { MARK, PAY } from './scene.ts';

/** Slow enough that crashes at random moments fall between receipt and answer, too. */
const WORK_MS = 60;

export type EffectTool = typeof MARK | typeof PAY;
export type EffectStage = 'received' | 'performed';

export interface EffectRequest {
  readonly tool: EffectTool;
  readonly label: string;
  readonly key: string;
  performed: boolean;
  /** False when the caller's connection broke before the answer was written. */
  answered: boolean;
}

export interface EffectService {
  readonly url: string;
  requests(tool: EffectTool, label: string): readonly EffectRequest[];
  /** Runs once, at the first request that reaches the stage; the request waits for it. */
  at(
    point: { tool: EffectTool; label: string; stage: EffectStage },
    hook: () => Promise<void>,
  ): void;
  stop(): Promise<void>;
}

async function bodyOf(request: IncomingMessage): Promise<{ label: string }> {
  let text = '';
  for await (const piece of request) text += String(piece);
  return JSON.parse(text) as { label: string };
}

export async function startEffectService(): Promise<EffectService> {
  const requests: EffectRequest[] = [];
  const hooks = new Map<string, () => Promise<void>>();

  async function reach(stage: EffectStage, { tool, label }: EffectRequest): Promise<void> {
    await sleep(WORK_MS);
    const point = `${tool} ${label} ${stage}`;
    const hook = hooks.get(point);
    hooks.delete(point);
    await hook?.();
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const tool: EffectTool = request.url === `/${PAY}` ? PAY : MARK;
    const { label } = await bodyOf(request);
    const key = String(request.headers['idempotency-key']);
    const effect: EffectRequest = { tool, label, key, performed: false, answered: false };
    requests.push(effect);
    await reach('received', effect);
    const known = requests.some((other) => other.key === key && other.performed);
    if (tool === PAY || !known) effect.performed = true;
    await reach('performed', effect);
    effect.answered = !response.destroyed;
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ performed: key }));
  }

  const server = createServer((request, response) => {
    serve(request, response).catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests: (tool, label) => requests.filter((it) => it.tool === tool && it.label === label),
    at: ({ tool, label, stage }, hook) => void hooks.set(`${tool} ${label} ${stage}`, hook),
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
