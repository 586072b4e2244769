// Hosts of several builds of the worker on one Temporal and one PostgreSQL, in one process each with its own bundle of
// workflow code: what it takes to see them beside each other.
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { workflowBundle } from '../../src/adapters/temporal/bundle.ts';
import { codeOf } from '../../src/rules/errors.ts';
import type { Build, Deployments } from '../../src/ports/deployments.ts';
import { chain, node } from './definitions.ts';
import { startTestHost, until, type TestHost, type TestHostOptions } from './host.ts';
import type { TestPostgres } from './postgres.ts';
import { CACHE_DIR, type TestTemporal } from './temporal.ts';

/** Waits for a human. */
export const GATE = chain('gate', [
  node('s', 'core.start'),
  node('gate', 'core.approvalGate', { config: { title: 'Now?' } }),
  node('e', 'core.end'),
]);
/** Waits for a clock, and then for a human. */
export const TIMED = chain('timed', [
  node('s', 'core.start'),
  node('wait', 'core.delay', { config: { ms: 4_000 } }),
  node('gate', 'core.approvalGate', { config: { title: 'Now?' } }),
  node('e', 'core.end'),
]);

/** Asks, and then begins a child that asks. */
export const PARENT = chain('parent', [
  node('gate', 'core.approvalGate', { config: { title: 'Now?' } }),
  node('sub', 'core.subWorkflow', { config: { workflowId: GATE.id } }),
]);

/**
 * A cache folder whose bundle is that of today's code and one timer more, at the beginning of each run: neither can go on
 * with a run of the other.
 */
export async function otherCode(): Promise<{ cacheDir: string; remove(): Promise<void> }> {
  const cacheDir = await mkdtemp(join(tmpdir(), 'openwop-other-code-'));
  const { codePath } = await workflowBundle({ cacheDir: CACHE_DIR });
  const code = await readFile(codePath, 'utf8');
  const head = /async function runWorkflow\(input\) \{/;
  if (!head.test(code)) throw new Error('the bundle has no such function');
  const timer = '$& await new Promise((done) => setTimeout(done, 1));';
  await writeFile(join(cacheDir, basename(codePath)), code.replace(head, timer));
  return { cacheDir, remove: () => rm(cacheDir, { recursive: true, force: true }) };
}

export interface Builds {
  readonly facade: TestHost;
  readonly deployments: Deployments;
  readonly base: TestHostOptions;
  readonly worker: (buildId: string, more?: TestHostOptions['env']) => Promise<TestHost>;
  readonly build: (buildId: string) => Promise<Build | undefined>;
  /** A run that waits for its answer. */
  readonly waiting: (workflowId?: string) => Promise<string>;
  readonly accept: (runId: string, key?: string) => Promise<number>;
  readonly completed: (runId: string) => Promise<void>;
  readonly stop: () => Promise<void>;
}

/** A facade on a namespace and a database of its own; workers are started by the test. */
export async function startBuilds(
  { postgres, temporal }: { readonly postgres: TestPostgres; readonly temporal: TestTemporal },
  more: Partial<TestHostOptions> = {},
): Promise<Builds> {
  const base: TestHostOptions = {
    databaseUrl: await postgres.createDatabase(),
    temporal: { address: temporal.address, namespace: await temporal.namespace() },
    builtIn: { definitions: [GATE, TIMED, PARENT] },
    ...more,
  };
  const facade = await startTestHost({ ...base, parts: { facade: true, worker: false } });
  const hosts = [facade];
  const { deployments } = facade;
  /** Of a new namespace the server's own workflows, which know builds, may be seconds behind. */
  const build = async (buildId: string) => {
    const deployment = await deployments.read().catch((error: unknown) => {
      if (codeOf(error) !== 'service_unavailable') throw error;
    });
    return deployment?.builds.find((one) => one.buildId === buildId);
  };
  return {
    ...{ facade, deployments, base, build },
    async worker(buildId, env = {}) {
      const worker = await startTestHost({
        ...base,
        parts: { facade: false, worker: true },
        env: { ...base.env, OPENWOP_BUILD_ID: buildId, ...env },
      });
      hosts.push(worker);
      if (buildId !== '')
        await until(
          async () => (await build(buildId))?.hasWorker === true,
          `the worker of build ${buildId} asks for work`,
        );
      return worker;
    },
    async waiting(workflowId = GATE.id) {
      const runId = await facade.startRun({ workflowId });
      await facade.waitFor(runId, ({ status }) => status === 'waiting-approval');
      return runId;
    },
    async accept(runId, key) {
      const answer = await facade.api(`/v1/runs/${runId}/interrupts/gate`, {
        body: { resumeValue: { action: 'accept' } },
        headers: key === undefined ? {} : { 'idempotency-key': key },
      });
      return answer.status;
    },
    async completed(runId) {
      await facade.waitFor(runId, ({ status }) => status === 'completed');
    },
    async stop() {
      for (const host of hosts.reverse()) await host.stop();
    },
  };
}
