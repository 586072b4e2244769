// Cohorts over deaths (architecture §6): whatever dies in the middle of one, it goes on, and forks no run twice.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Environment } from '../../src/app/config.ts';
import type { Cohort } from '../../schemas/types.generated.ts';
import { agentNode, chain } from '../support/definitions.ts';
import {
  apiClient,
  type ApiClient,
  spawnHost,
  startTestHost,
  TEST_API_KEY,
  until,
  type SpawnedHost,
} from '../support/host.ts';
import { writeCaller, writeDefinition } from '../support/opensentience/agent-folders.ts';
import { sharedDatabase } from '../support/shared-postgres.ts';
import { CACHE_DIR, startTestTemporal } from '../support/temporal.ts';
import { patient } from '../support/machine.ts';

const COHORTS = '/v1/host/openwop-temporal/cohorts';
const CLERK = 'local.deaths.clerk';
const SPOKEN = chain('spoken', [agentNode('write', CLERK)]);
const SOURCES = 6;
const prompt = { agents: { clerk: { systemPrompt: 'pace: slow' } } };
const LIMIT_MS = patient(180_000);

let folder: string;
let env: Environment;
let temporal: Awaited<ReturnType<typeof startTestTemporal>>;
let host: SpawnedHost | undefined;

const ended = ({ status }: { status: string }) => status === 'completed';
const client = () => apiClient(host?.url ?? '', TEST_API_KEY);

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'openwop-deaths-'));
  await writeCaller(join(folder, 'agents'), {
    ...{ agentId: CLERK, toolAllowlist: [] },
    turns: [
      {
        cases: [
          {
            ...{ path: 'prompt.pace', equals: 'slow' },
            turn: {
              ...{ chunks: ['One. ', 'Two. ', 'Three. '], delayMsPerChunk: 400 },
              final: { decision: { done: true }, confidence: 1 },
            },
          },
        ],
        ...{ chunks: ['At once.'], final: { decision: { done: true }, confidence: 1 } },
      },
    ],
  });
  await writeDefinition(join(folder, 'definitions'), SPOKEN);
  temporal = await startTestTemporal();
  env = {
    ...{ OPENWOP_PORT: '0', OPENWOP_DATA_DIR: join(folder, 'data'), OPENWOP_CACHE_DIR: CACHE_DIR },
    ...{ OPENWOP_API_KEY: TEST_API_KEY, OPENWOP_TEST_MODE: 'true' },
    OPENWOP_FIXTURES_DIR: join(folder, 'definitions'),
    OPENWOP_AGENTS_DIR: join(folder, 'agents'),
    TEMPORAL_ADDRESS: temporal.address,
    TEMPORAL_NAMESPACE: await temporal.namespace(),
    // Beside it no demo is played at each start.
    DATABASE_URL: await sharedDatabase(),
  };
}, LIMIT_MS);

afterAll(async () => {
  await host?.kill('SIGKILL');
  await temporal?.stop();
  await rm(folder, { recursive: true, force: true });
}, LIMIT_MS);

const read = async (at: ApiClient, cohortId: string) =>
  (await at.api<Cohort>(`${COHORTS}/${cohortId}`)).body;

async function start(at: ApiClient): Promise<string> {
  const { status, body } = await at.api<Cohort>(COHORTS, {
    body: {
      select: { workflowId: SPOKEN.id },
      change: prompt,
      parallel: 2,
    },
  });
  expect([status, body.members]).toEqual([201, SOURCES]);
  return body.cohortId;
}

async function expectWhole(cohortId: string): Promise<void> {
  const { state, settled, totals, results = [] } = await read(client(), cohortId);
  expect({ state, settled, diverged: totals.diverged }).toEqual({
    ...{ state: 'completed', settled: SOURCES, diverged: SOURCES },
  });
  const { body } = await client().api<{ runs: { runId: string }[] }>(
    `/v1/runs?limit=200&cohortId=${cohortId}`,
  );
  const forks = body.runs.map(({ runId }) => runId).sort();
  expect(forks).toEqual(results.map(({ forkRunId }) => forkRunId).sort());
  expect(new Set(results.map(({ sourceRunId }) => sourceRunId)).size).toBe(SOURCES);
}

describe('a cohort', { timeout: LIMIT_MS }, () => {
  // [I74]
  it('waits for a worker, outlives a restart of its facade, goes on behind a SIGKILL of the host, and forks nobody twice', async () => {
    const options = {
      ...{ dataDir: join(folder, 'data'), env, fixturesDir: env.OPENWOP_FIXTURES_DIR },
      agentsDir: env.OPENWOP_AGENTS_DIR,
      temporal: { address: temporal.address, namespace: env.TEMPORAL_NAMESPACE ?? '' },
      ...(env.DATABASE_URL === undefined ? {} : { databaseUrl: env.DATABASE_URL }),
    };
    const first = await startTestHost(options);
    for (let at = 0; at < SOURCES; at++) {
      const runId = await first.startRun({ workflowId: SPOKEN.id });
      await first.waitFor(runId, ended);
    }
    await first.stop();

    const facade = await startTestHost({ ...options, parts: { facade: true, worker: false } });
    const cohortId = await start(facade);
    const { state, settled } = await read(facade, cohortId);
    expect([state, settled]).toEqual(['running', 0]);
    await facade.stop();

    host = await spawnHost('start', env);
    await until(async () => (await read(client(), cohortId)).settled > 0, 'a member is settled');
    await host.kill('SIGKILL');
    host = await spawnHost('start', env);
    let last = await read(client(), cohortId);
    expect(last.settled).toBeLessThan(SOURCES);
    await until(
      async () => (last = await read(client(), cohortId)).endedAt !== undefined,
      'it has ended',
      { progress: () => last.settled },
    );
    await expectWhole(cohortId);
  });
});
