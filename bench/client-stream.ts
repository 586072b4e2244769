// A reader of one run's event stream over HTTP within the bench's own process: how far it is, and when it ended.
import { request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { nowMs } from './statistics.ts';

export interface ClientStream {
  /** Resolves once an event of this type has arrived; rejects where the stream ends before. */
  readonly seen: (type: string) => Promise<number>;
  /** When the stream ended, in ms epoch: the host ends it behind the terminal event. */
  readonly ended: Promise<number>;
}

export function openStream(url: string, apiKey: string): ClientStream {
  let text = '';
  const waiting: { readonly type: string; readonly resolve: (atMs: number) => void }[] = [];
  const failed: ((error: Error) => void)[] = [];
  const look = (): void => {
    for (const { type, resolve } of waiting)
      if (text.includes(`event: ${type}\n`)) resolve(nowMs());
  };
  const ended = new Promise<number>((resolve, reject) => {
    const headers = { authorization: `Bearer ${apiKey}`, accept: 'text/event-stream' };
    const fail = (error: Error): void => {
      reject(error);
      for (const tell of failed) tell(error);
    };
    const asked = request(url, { headers, agent: false }, (answer: IncomingMessage) => {
      if (answer.statusCode !== 200) return fail(new Error(`${url} answered ${answer.statusCode}`));
      answer.setEncoding('utf8');
      answer.on('data', (piece: string) => {
        text += piece;
        look();
      });
      answer.on('error', fail);
      answer.on('end', () => {
        resolve(nowMs());
        for (const tell of failed) tell(new Error(`${url} ended`));
      });
    });
    asked.on('error', fail);
    asked.end();
  });
  ended.catch(() => undefined);
  return {
    ended,
    seen: (type) =>
      new Promise((resolve, reject) => {
        waiting.push({ type, resolve });
        failed.push(reject);
        look();
      }),
  };
}
