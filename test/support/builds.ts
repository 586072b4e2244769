// Hosts of several builds of the worker on one Temporal and one PostgreSQL, in one process each with its own bundle of
// workflow code: what it takes to see them beside each other.
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { Client } from '@temporalio/client';
import { workflowBundle } from '../../src/adapters/temporal/bundle.ts';
import { connectTemporal } from '../../src/adapters/temporal/connection.ts';
import { codeOf } from '../../src/rules/errors.ts';
import type { Build, Deployments } from '../../src/ports/deployments.ts';
import { chain, node } from './definitions.ts';
import { startTestHost, until, type TestHost, type TestHostOptions } from './host.ts';
import { paced } from './machine.ts';
import type { SharedPostgres } from './shared-postgres.ts';
import { CACHE_DIR, type TestTemporal } from './temporal.ts';

/** Waits for a human. */
export const GATE = chain('gate', [
  node('s', 'core.start'),
  node('gate', 'core.approvalGate', { config: { title: 'Now?' } }),
  node('e', 'core.end'),
]);
/** What a test does with a run before its clock rings: a worker stops, or the run is moved to another one. */
const TIMED_MS = paced(4_000);
/** Waits for a clock, and then for a human. */
export const TIMED = chain('timed', [
  node('s', 'core.start'),
  node('wait', 'core.delay', { config: { ms: TIMED_MS } }),
  node('gate', 'core.approvalGate', { config: { title: 'Now?' } }),
  node('e', 'core.end'),
]);

/** Asks, and then begins a child that asks. */
export const PARENT = chain('parent', [
  node('gate', 'core.approvalGate', { config: { title: 'Now?' } }),
  node('sub', 'core.subWorkflow', { config: { workflowId: GATE.id } }),
]);

/** A place in the bundle of the workflow code, and what stands there in another one. */
export type CodeChange = readonly [place: RegExp, instead: string];

/** One timer more, at the beginning of each run: neither code can go on with a run of the other. */
export const TIMER_MORE: CodeChange = [
  /async function runWorkflow\(input\) \{/,
  '$& await new Promise((done) => setTimeout(done, 1));',
];

/** A cache folder whose bundle is that of today's code but for the changes, one after the other. */
export async function changedCode(...changes: readonly CodeChange[]): Promise<OtherCode> {
  const cacheDir = await mkdtemp(join(tmpdir(), 'openwop-other-code-'));
  const { codePath } = await workflowBundle({ cacheDir: CACHE_DIR });
  let code = await readFile(codePath, 'utf8');
  for (const [place, instead] of changes) {
    if (!place.test(code)) throw new Error(`the bundle has nothing like ${place}`);
    code = code.replace(place, instead);
  }
  await writeFile(join(cacheDir, basename(codePath)), code);
  return { cacheDir, remove: () => rm(cacheDir, { recursive: true, force: true }) };
}

export interface OtherCode {
  readonly cacheDir: string;
  remove(): Promise<void>;
}

export interface Builds {
  readonly facade: TestHost;
  readonly deployments: Deployments;
  readonly base: TestHostOptions;
  readonly worker: (buildId: string, more?: TestHostOptions['env']) => Promise<TestHost>;
  readonly build: (buildId: string) => Promise<Build | undefined>;
  /** A run that waits for its answer. */
  readonly waiting: (workflowId?: string, more?: Record<string, unknown>) => Promise<string>;
  readonly accept: (runId: string, key?: string) => Promise<number>;
  readonly completed: (runId: string) => Promise<void>;
  readonly stop: () => Promise<void>;
}

/** A facade on a namespace and a database of its own; workers are started by the test. */
export async function startBuilds(
  { postgres, temporal }: { readonly postgres: SharedPostgres; readonly temporal: TestTemporal },
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
  const build = async (buildId: string) => {
    const builds = await listed(deployments);
    return builds.find((one) => one.buildId === buildId);
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
    async waiting(workflowId = GATE.id, rest = {}) {
      const runId = await facade.startRun({ workflowId, ...rest });
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

/** Once the server answers: its own workflows, which know builds, may be seconds behind in a new namespace. */
async function listed(deployments: Deployments): Promise<readonly Build[]> {
  let builds: readonly Build[] = [];
  let refused: unknown;
  const isAnswered = async () => {
    try {
      builds = (await deployments.read())?.builds ?? [];
      return true;
    } catch (error) {
      refused = error;
      if (codeOf(error) !== 'service_unavailable') throw error;
      return false;
    }
  };
  await until(isAnswered, 'the server says which builds there are').catch((error: unknown) => {
    if (!(refused instanceof Error) || refused === error) throw error;
    throw new Error(
      `${(error as Error).message}: ${String((refused.cause as Error | undefined) ?? refused)}`,
    );
  });
  return builds;
}

/** Of the run's segment that is open or ended last. */
export async function described({ base }: Builds, runId: string) {
  const { address, namespace } = base.temporal as { address: string; namespace: string };
  const connection = connectTemporal({ address, namespace });
  try {
    const client = new Client({ connection, namespace });
    const { raw, historyLength } = await client.workflow.getHandle(runId).describe();
    const { firstRunId, execution, versioningInfo } = raw.workflowExecutionInfo ?? {};
    return {
      historyLength,
      isFirstSegment: firstRunId === execution?.runId,
      buildId: versioningInfo?.deploymentVersion?.buildId,
    };
  } finally {
    await connection.close();
  }
}
