// How many long answers one process has open, whoever asks (architecture §10); limits of one key and of one session are
// held over HTTP in page-streams.test.ts.
import { readFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Response } from 'express';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createStreamRegistry, STREAM_LIMITS } from '../../src/facade/stream-registry.ts';
import { codeOf } from '../../src/rules/errors.ts';
import { subjectOf } from '../../src/rules/subject.ts';
import { silentLogger } from '../support/log-parts.ts';

const limits = { perKey: 2, perSession: 1, sessions: 2, total: 3 };
const registry = createStreamRegistry({ limits, logger: silentLogger });
/** Whoever the address names has a stream, or is refused. */
const server = createServer((request, response) => {
  const [, lane = '', name = ''] = (request.url ?? '').split('/');
  const subject = subjectOf(lane as 'api-key', 'default', name);
  try {
    registry.open(subject, response as ServerResponse as Response);
    response.writeHead(200).flushHeaders();
  } catch (error) {
    response.writeHead(429).end(codeOf(error));
  }
});

beforeAll(() => new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve)));
afterAll(() => {
  server.close();
  server.closeAllConnections();
});

const ask = async (path: string) => {
  const { port } = server.address() as AddressInfo;
  return (await fetch(`http://127.0.0.1:${port}${path}`)).status;
};

// [I110]
it('a process has no more than it may, whoever asks', async () => {
  expect([await ask('/api-key/a'), await ask('/api-key/a'), await ask('/api-key/b')]).toEqual([
    ...[200, 200, 200],
  ]);
  expect([await ask('/api-key/b'), await ask('/session/s')]).toEqual([429, 429]);
  expect(registry.size).toBe(limits.total);
});

it('SECURITY.md tells the limits, and sessions leave places for a key', () => {
  const { perKey, perSession, sessions, total } = STREAM_LIMITS;
  expect(sessions + perKey).toBeLessThanOrEqual(total);
  const said = readFileSync('SECURITY.md', 'utf8');
  const number = (value: number) => value.toLocaleString('en');
  expect(said).toContain(
    `at most ${perSession} event streams in each process, and all sessions together ${number(sessions)} of a process's ${number(total)}`,
  );
});
