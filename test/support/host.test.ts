// The client of the tests repeats a request that the host cannot serve now as a careful user's client does: with the same
// key, and never without one.
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { apiClient } from './host.ts';

const AWAY = [503, 'service_unavailable'] as const;
const BEGUN = [409, 'idempotency_in_flight'] as const;
const DONE = [201, undefined] as const;

let server: Server;
let url: string;
/** What the server answers, one after the other; then 201. */
let answers: (readonly [number, string | undefined])[];
let seen: IncomingMessage[];

beforeAll(async () => {
  server = createServer((request, response) => {
    seen.push(request);
    const [status, error] = answers.shift() ?? DONE;
    request.resume();
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ error }));
  });
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => void server.close());
beforeEach(() => {
  answers = [];
  seen = [];
});

const keys = () => seen.map(({ headers }) => headers['idempotency-key']);

it('sends what changes something again with one key until it is done', async () => {
  answers = [AWAY, BEGUN];
  expect((await apiClient(url, 'k').api('/x', { body: {} })).status).toBe(201);
  expect(seen).toHaveLength(3);
  expect(new Set(keys()).size).toBe(1);
  expect(keys()[0]).toMatch(/^[0-9a-f-]{36}$/);
});

it('keeps the key that a test gives', async () => {
  answers = [AWAY];
  await apiClient(url, 'k').api('/x', { body: {}, headers: { 'idempotency-key': 'mine' } });
  expect(keys()).toEqual(['mine', 'mine']);
});

it('reads again without a key', async () => {
  answers = [AWAY];
  expect((await apiClient(url, 'k').api('/x')).status).toBe(201);
  expect(keys()).toEqual([undefined, undefined]);
});

it.each([
  ['a test that is about a 503', { body: {}, isPatient: false }, AWAY],
  ['a test that leaves the key out', { body: {}, headers: { 'idempotency-key': '' } }, AWAY],
  ['another 503', { body: {} }, [503, 'history_undecodable']],
  ['a refusal', { body: {} }, [409, 'run_state_conflict']],
] as const)('sends once: %s', async (_what, request, answer) => {
  answers = [answer];
  expect((await apiClient(url, 'k').api('/x', request)).status).toBe(answer[0]);
  expect(seen).toHaveLength(1);
});

it('a client that is not patient sends as it is told, and once', async () => {
  answers = [AWAY];
  const client = apiClient(url, 'k', { isPatient: false });
  expect((await client.api('/x', { body: {} })).status).toBe(503);
  expect(keys()).toEqual([undefined]);
});
