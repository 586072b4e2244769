// What docker-compose.yml serves, on a host of its own: the request in its head starts a run, and a human ends it.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { RunCreateResponse } from '../../schemas/types.generated.ts';
import { ended, expectLawful, readLog, waiting } from '../facade/suite-parts.ts';
import { startTestHost, type TestHost } from '../support/host.ts';

const at = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const HEAD = /\/v1\/runs -d '(.*)'/;

let host: TestHost;

beforeAll(async () => {
  host = await startTestHost({
    fixturesDir: at('examples/compose/definitions'),
    agentsDir: at('examples/compose/agents'),
  });
});
afterAll(() => host.stop());

it('the request in the head of docker-compose.yml starts a run; a yes ends it', async () => {
  const body = HEAD.exec(readFileSync(at('docker-compose.yml'), 'utf8'))?.[1] ?? '{}';
  const created = await host.api<RunCreateResponse>('/v1/runs', { body: JSON.parse(body) });
  expect(created).toMatchObject({ status: 201 });
  expect(created.body).not.toHaveProperty('warnings');
  const { runId } = created.body;
  await host.waitFor(runId, waiting);
  const answer = { resumeValue: { action: 'accept' } };
  const answered = await host.api(`/v1/runs/${runId}/interrupts/approval`, { body: answer });
  expect(answered.status).toBe(200);
  expect((await host.waitFor(runId, ended)).status).toBe('completed');
  expectLawful((await readLog(host, runId)).events);
});
