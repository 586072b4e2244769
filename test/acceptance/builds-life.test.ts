// docs/upgrades.md: what a build's life meets: a part of new runs, a way back, segments, agents' queues, the way into
// versioning and out of it, and one process that is upgraded.
import { mkdtemp, rm } from 'node:fs/promises';
import { spawn } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { freePort } from '../../src/adapters/temporal/dev-server.ts';
import { obtainProgram } from '../../src/adapters/temporal/server-program/index.ts';
import { connectTemporal } from '../../src/adapters/temporal/connection.ts';
import type { ApiClient } from '../support/host.ts';
import { startTestHost, until, type TestHost } from '../support/host.ts';
import { described, GATE, PARENT, startBuilds, type Builds } from '../support/builds.ts';
import { agentNode, chain } from '../support/definitions.ts';
import {
  type CallerSpec,
  writeAgentFolder,
  writeCaller,
  writeDefinition,
} from '../support/opensentience/agent-folders.ts';
import { sharePostgres, type SharedPostgres } from '../support/shared-postgres.ts';
import { PROGRAM, startTestTemporal, type TestTemporal } from '../support/temporal.ts';

let postgres: SharedPostgres | undefined;
let missing: string | undefined;
let temporal: TestTemporal;
let folder: string;

beforeAll(async () => {
  const started = await sharePostgres();
  if ('missing' in started) missing = started.missing;
  else postgres = started;
  temporal = await startTestTemporal();
  folder = await mkdtemp(join(tmpdir(), 'openwop-builds-'));
});

afterAll(async () => {
  await temporal?.stop();
  await postgres?.stop();
  await rm(folder, { recursive: true, force: true });
});

const TOOL = 'com.example.hello/greet';
const CALLER = 'local.builds.caller';
const CALLS = chain('calls', [agentNode('n', CALLER)]);

/** One deployment whose builds follow each other, from a worker that names none to builds whose runs are moved. */
describe('docs/upgrades.md the life of a build', () => {
  let all: Builds;
  beforeAll(async () => {
    if (postgres === undefined) return;
    const [agentsDir, fixturesDir] = [join(folder, 'callers'), join(folder, 'definitions')];
    const turns: CallerSpec['turns'] = [
      { calls: [{ toolId: TOOL, arguments: { name: 'you' } }] },
      { final: { decision: 1, confidence: 1 } },
    ];
    await writeCaller(agentsDir, { agentId: CALLER, toolAllowlist: [TOOL], turns });
    await writeDefinition(fixturesDir, CALLS);
    all = await startBuilds({ postgres, temporal }, { agentsDir, fixturesDir });
  });
  beforeEach((context) => context.skip(missing !== undefined, missing));
  afterAll(() => all?.stop());

  it('into versioning and out of it: no run is left behind, and history has no event more', async () => {
    const { worker, deployments, build, waiting, accept, completed, facade } = all;
    const plain = await worker('');
    const [before, measured] = [await waiting(), await waiting()];
    expect(await accept(measured)).toBe(200);
    await completed(measured);
    expect(await deployments.read()).toBeUndefined();
    const listed = await facade.api('/v1/host/openwop-temporal/deployments');
    expect(listed.body).toEqual({ builds: [], runsWithoutWorker: 0 });

    const one = await worker('one');
    await until(async () => (await build('one'))?.state === 'current', 'the first is current');
    await plain.stop();
    expect(await accept(before)).toBe(200);
    await completed(before);
    const versioned = await waiting();
    const held = await waiting();
    expect(await accept(versioned)).toBe(200);
    await completed(versioned);
    const [with_, without] = await Promise.all([
      described(all, versioned),
      described(all, measured),
    ]);
    expect(with_.historyLength).toBe(without.historyLength);

    await worker('');
    await deployments.promote('unversioned', 100);
    await deployments.moveFrom('one', 'current-from-now-on');
    await one.stop();
    expect(await accept(held)).toBe(200);
    await completed(held);
    await completed(await answeredNew());

    async function answeredNew(): Promise<string> {
      const runId = await waiting();
      expect(await accept(runId)).toBe(200);
      return runId;
    }
  });

  describe('two of the same code', () => {
    const [OLD, NEW] = ['two', 'three'];
    beforeAll(async () => {
      if (missing !== undefined) return;
      const agents = join(folder, 'agents');
      await writeAgentFolder(agents, {
        id: 'com.example.hello',
        script: new URL('../agent-sdk/hello-agent.ts', import.meta.url),
      });
      await all.worker(OLD);
      await all.worker(NEW, { OPENWOP_OPENSENTIENCE_DIR: agents });
    });
    beforeEach(async () => {
      if (missing === undefined) await all.deployments.promote(OLD, 100);
    });

    it('a part of new runs, all of them, and back', async () => {
      const { deployments, build, waiting, accept, completed } = all;
      await deployments.promote(NEW, 30);
      expect(await build(NEW)).toMatchObject({ state: 'ramping', share: 30 });
      expect(await build(OLD)).toMatchObject({ state: 'current', share: 70 });
      await deployments.promote(NEW, 0);
      expect(await build(NEW)).toMatchObject({ share: 0 });
      await deployments.promote(NEW, 100);
      const young = await waiting();
      await deployments.promote(OLD, 100);
      expect(await build(OLD)).toMatchObject({ state: 'current', share: 100 });
      const old = await waiting();
      await until(async () => (await build(OLD))?.heldRuns === 1, 'the first holds the new one');
      expect(await build(NEW)).toMatchObject({ heldRuns: 1, state: 'draining' });
      for (const runId of [young, old]) {
        expect(await accept(runId)).toBe(200);
        await completed(runId);
      }
    });

    it('a pinned run continues as new on its own build', async () => {
      const { deployments, accept, completed } = all;
      const short = await startTestHost({
        ...all.base,
        parts: { facade: true, worker: false },
        facade: { forceContinueAsNewAfter: 1 },
      });
      const runId = await short.startRun({ workflowId: GATE.id });
      await short.stop();
      await all.facade.waitFor(runId, ({ status }) => status === 'waiting-approval');
      await deployments.promote(NEW, 100);
      expect(await accept(runId)).toBe(200);
      await completed(runId);
      expect(await described(all, runId)).toMatchObject({ isFirstSegment: false, buildId: OLD });
    });

    it('a child begins on the build of its parent, whatever is promoted meanwhile', async () => {
      const { deployments, build, waiting, accept, completed } = all;
      await until(async () => (await build(OLD))?.heldRuns === 0, 'the first holds nothing');
      const runId = await waiting(PARENT.id);
      await deployments.promote(NEW, 100);
      expect(await accept(runId)).toBe(200);
      await until(async () => (await build(OLD))?.heldRuns === 2, 'the first holds both');
      const held = await deployments.runsOf(OLD);
      const [childId = ''] = held.flatMap((one) => (one.runId === runId ? [] : [one.runId]));
      // The server names it with the child's first task.
      await until(
        async () => (await described(all, childId)).buildId !== undefined,
        'the child has begun',
      );
      expect(await described(all, childId)).toMatchObject({ buildId: OLD });
      await until(async () => (await accept(childId)) === 200, 'the child asks and is answered');
      await completed(runId);
    });

    it('a tool of an agent is performed by whichever worker has the agent, whatever its build', async () => {
      const { facade } = all;
      const runId = await facade.startRun({ workflowId: CALLS.id });
      const { status } = await facade.waitFor(runId, (one) =>
        ['completed', 'failed', 'waiting-approval'].includes(one.status),
      );
      expect(status).toBe('completed');
      expect(await described(all, runId)).toMatchObject({ buildId: OLD });
    });
  });

  it('auto-upgrade: the next task of a run goes to the build that is current then', async () => {
    const { worker, deployments, build, waiting, accept, completed } = all;
    const moves = { OPENWOP_RUN_VERSIONING: 'auto-upgrade' };
    const four = await worker('four', moves);
    await deployments.promote('four', 100);
    const runId = await waiting();
    await until(async () => (await build('four'))?.openRuns === 1, 'the run is on it');
    expect(await build('four')).toMatchObject({ heldRuns: 0 });
    await worker('five', moves);
    await deployments.promote('five', 100);
    await four.stop();
    expect(await accept(runId)).toBe(200);
    await completed(runId);
    expect(await described(all, runId)).toMatchObject({ buildId: 'five' });
  });
});

/** `npm start` with a Temporal server of its own: one process, which is upgraded in place. */
describe('docs/upgrades.md one process', () => {
  // [I81]
  it('after an upgrade the new build takes new runs by itself, and open ones go on; so without a build id', async () => {
    const dataDir = join(folder, 'own');
    const databaseUrl = await postgres?.createDatabase();
    const start = (id: string | undefined): Promise<TestHost> =>
      startTestHost({
        ...{ temporal: 'own', dataDir, builtIn: { definitions: [GATE] } },
        ...(databaseUrl === undefined ? {} : { databaseUrl }),
        env: { OPENWOP_BUILD_ID: id },
      });
    const accept = (host: ApiClient, runId: string) =>
      host.api(`/v1/runs/${runId}/interrupts/gate`, {
        body: { resumeValue: { action: 'accept' } },
      });
    const waits: string[] = [];
    for (const id of ['a', 'b', undefined]) {
      const host = await start(id);
      await until(
        // A server that has just begun may not know its builds yet.
        () =>
          host.deployments.read().then(
            (deployment) => deployment?.currentBuildId === id,
            () => false,
          ),
        `${id} is current`,
      );
      const before = waits.pop();
      if (before !== undefined) {
        expect((await accept(host, before)).status).toBe(200);
        await host.waitFor(before, ({ status }) => status === 'completed');
      }
      waits.push(await host.startRun({ workflowId: GATE.id }));
      await host.waitFor(waits[0] as string, ({ status }) => status === 'waiting-approval');
      await host.stop();
    }
  });
});

/** Older than 1.28, or switched off, as a namespace of Temporal's own server may be. */
describe('docs/upgrades.md a server that knows no builds', () => {
  it('is served without one, which is said', async () => {
    const port = await freePort();
    const program = await obtainProgram({ ...PROGRAM, report: () => undefined });
    const off = ['--dynamic-config-value', 'system.enableDeploymentVersions=false'];
    const args = ['server', 'start-dev', '--headless', '--port', String(port), ...off];
    const server = spawn(program.path, args, { stdio: 'ignore' });
    const ended = new Promise((resolve) => server.once('exit', resolve));
    try {
      const address = `127.0.0.1:${port}`;
      await until(() => answers(address), 'the server answers');
      const host = await startTestHost({
        ...{ temporal: { address, namespace: 'default' }, builtIn: { definitions: [GATE] } },
        env: { OPENWOP_BUILD_ID: 'one' },
      });
      try {
        const runId = await host.startRun({ workflowId: GATE.id });
        await host.waitFor(runId, ({ status }) => status === 'waiting-approval');
        expect(host.logs.filter((line) => line.includes('knows no builds'))).toHaveLength(1);
        expect(await host.deployments.read()).toBeUndefined();
        const promoted = await host.api('/v1/host/openwop-temporal/deployments/one/promote', {
          body: {},
        });
        expect([promoted.status, promoted.body.error]).toEqual([409, 'build_conflict']);
        expect((await host.api('/readyz')).body).not.toHaveProperty('builds');
      } finally {
        await host.stop();
      }
    } finally {
      server.kill('SIGTERM');
      await ended;
    }
  });
});

async function answers(address: string): Promise<boolean> {
  const connection = connectTemporal({ address, namespace: 'default' });
  try {
    await connection.workflowService.listWorkflowExecutions({ namespace: 'default' });
    return true;
  } catch {
    return false;
  } finally {
    await connection.close();
  }
}
