// docs/upgrades.md: what Temporal's server says of builds, asked with workers that are nothing but their polls.
import { Client, type Connection } from '@temporalio/client';
import { NativeConnection, Worker } from '@temporalio/worker';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connectTemporal } from '../../src/adapters/temporal/connection.ts';
import { DEPLOYMENT } from '../../src/adapters/temporal/deployment-calls.ts';
import {
  createDeployments,
  type DeploymentsOptions,
} from '../../src/adapters/temporal/deployments.ts';
import type { Deployments } from '../../src/ports/deployments.ts';
import { codeOf } from '../../src/rules/errors.ts';
import { RUN_TASK_QUEUE } from '../../src/rules/run-input.ts';
import { until } from '../support/host.ts';
import { quietRuntime } from '../support/run-workflow.ts';
import { bundleFixtures } from '../support/temporal-fixture.ts';
import { startTestTemporal, type TestTemporal } from '../support/temporal.ts';

let temporal: TestTemporal;

beforeAll(async () => {
  quietRuntime();
  temporal = await startTestTemporal();
});
afterAll(() => temporal?.stop());

interface Asking {
  readonly buildId: string;
  readonly for: 'workflows' | 'activities';
}

/** Workers of the namespace, each with the polls of one kind. */
async function startWorkers(namespace: string) {
  const connection = await NativeConnection.connect({ address: temporal.address });
  const workflows = { workflowBundle: await bundleFixtures() };
  const activities = { activities: { scripted: () => Promise.resolve('done') } };
  const stops: (() => Promise<void>)[] = [];
  return {
    async start({ buildId, ...asking }: Asking): Promise<void> {
      const worker = await Worker.create({
        ...{ connection, namespace, taskQueue: RUN_TASK_QUEUE },
        ...(asking.for === 'workflows' ? workflows : activities),
        workerDeploymentOptions: {
          useWorkerVersioning: true,
          version: { deploymentName: DEPLOYMENT, buildId },
          defaultVersioningBehavior: 'PINNED',
        },
      });
      const ended = worker.run();
      stops.push(async () => {
        worker.shutdown();
        await ended;
      });
    },
    async stop(): Promise<void> {
      await Promise.all(stops.map((stop) => stop()));
      await connection.close();
    },
  };
}

async function isSeen(deployments: Deployments, buildId: string): Promise<boolean> {
  const deployment = await deployments.read().catch((error: unknown) => {
    if (codeOf(error) !== 'service_unavailable') throw error;
  });
  return deployment?.builds.find((one) => one.buildId === buildId)?.hasWorker === true;
}

describe('docs/upgrades.md promoting a build whose worker has just begun', () => {
  it('waits until the server has heard of all of its queues: it hears of them one by one', async () => {
    const namespace = await temporal.namespace();
    const connection = connectTemporal({ address: temporal.address, namespace });
    const deployments = createDeployments({ connection, namespace });
    const workers = await startWorkers(namespace);
    try {
      await workers.start({ buildId: 'one', for: 'workflows' });
      await workers.start({ buildId: 'one', for: 'activities' });
      await until(() => isSeen(deployments, 'one'), 'the first is seen');
      await deployments.promote('one', 100);
      // The server asks it of queues that were used.
      const used = { taskQueue: RUN_TASK_QUEUE, workflowId: 'used', args: [{}] };
      await new Client({ connection, namespace }).workflow.execute('everything', used);
      await workers.start({ buildId: 'two', for: 'workflows' });
      await until(() => isSeen(deployments, 'two'), 'the second is seen by the first of its polls');
      const promoted = deployments.promote('two', 100);
      await Promise.all([promoted, workers.start({ buildId: 'two', for: 'activities' })]);
      expect((await deployments.read())?.currentBuildId).toBe('two');
    } finally {
      await workers.stop();
      await connection.close();
    }
  });
});

const CURRENT = 'setWorkerDeploymentCurrentVersion';
const RAMPING = 'setWorkerDeploymentRampingVersion';

interface Asked {
  readonly namespace: string;
  readonly deploymentName: string;
}

/** The same server, one call of which is answered otherwise. */
function answering(
  connection: Connection,
  name: keyof Connection['workflowService'],
  answer: (asked: Asked) => Promise<unknown>,
): Connection {
  const workflowService = Object.create(connection.workflowService, {
    [name]: { value: answer },
  }) as Connection['workflowService'];
  return Object.create(connection, { workflowService: { value: workflowService } }) as Connection;
}

/** What it says of a deployment whose own workflow has just been made. */
const BEGINNING = Object.assign(new Error('9 FAILED_PRECONDITION'), {
  ...{ code: 9, details: 'Workflow task is not scheduled yet.', metadata: { get: () => [] } },
});

interface Denials {
  readonly none: number;
  readonly beginning: number;
}

/** The same server, which only begins to know the deployment the first times that it is asked, and then knows none. */
function denying(connection: Connection, { none, beginning }: Denials): Connection {
  const real = connection.workflowService;
  let left = none + beginning;
  return answering(connection, 'describeWorkerDeployment', (asked: Asked) => {
    if (left-- <= 0) return real.describeWorkerDeployment(asked);
    if (left >= none) return Promise.reject(BEGINNING);
    return real.describeWorkerDeployment({ ...asked, deploymentName: 'another' });
  });
}

describe('docs/upgrades.md reading builds behind a change', () => {
  it('a deployment that the server denies while the workflow that knows it continues as new is read', async () => {
    const namespace = await temporal.namespace();
    const connection = connectTemporal({ address: temporal.address, namespace });
    const workers = await startWorkers(namespace);
    const read = (denials: Denials, more: Partial<DeploymentsOptions> = {}) =>
      createDeployments({ connection: denying(connection, denials), namespace, ...more }).read();
    try {
      await workers.start({ buildId: 'one', for: 'workflows' });
      const deployments = createDeployments({ connection, namespace });
      await until(() => isSeen(deployments, 'one'), 'it is seen');
      for (const [none, beginning] of [
        [1, 0],
        [3, 0],
        [0, 12],
        [2, 6],
      ] as const)
        expect((await read({ none, beginning }))?.builds).toMatchObject([{ buildId: 'one' }]);
      const never = read({ none: 100, beginning: 0 });
      expect(await never, 'and one that is not there is none').toBeUndefined();
      const always = { none: 0, beginning: 1_000 };
      const unknown = read(always, { beginningMs: 300 }).catch(codeOf);
      expect(await unknown, 'and unknown is not none').toBe('service_unavailable');
    } finally {
      await workers.stop();
      await connection.close();
    }
  });
});

/** The same server, which makes the first change and gives no answer. */
function mute(connection: Connection): Connection {
  const real = connection.workflowService;
  let asked = 0;
  return answering(connection, CURRENT, async (change: Asked) => {
    const answer = await real.setWorkerDeploymentCurrentVersion(change);
    if (asked++ > 0) return answer;
    throw Object.assign(new Error('4 DEADLINE_EXCEEDED'), {
      code: 4,
      details: '',
      metadata: { get: () => [] },
    });
  });
}

/** The same server; each change of builds that it is asked for is noted. */
function counting(connection: Connection, changes: string[]): Connection {
  return ([CURRENT, RAMPING] as const).reduce(
    (from, name) =>
      answering(from, name, (asked: Asked) => {
        changes.push(name);
        return connection.workflowService[name](asked);
      }),
    connection,
  );
}

describe('docs/upgrades.md promoting a build while the server is busy', () => {
  it('the server is asked for no change that changes nothing: it would say nothing of builds for seconds', async () => {
    const namespace = await temporal.namespace();
    const connection = connectTemporal({ address: temporal.address, namespace });
    const changes: string[] = [];
    const deployments = createDeployments({ connection: counting(connection, changes), namespace });
    const workers = await startWorkers(namespace);
    try {
      await workers.start({ buildId: 'one', for: 'workflows' });
      await workers.start({ buildId: 'two', for: 'workflows' });
      for (const id of ['one', 'two']) await until(() => isSeen(deployments, id), `${id} is seen`);
      for (const [buildId, percent] of [
        ['one', 100],
        ['one', 100],
        ['two', 30],
        ['two', 30],
        ['two', 40],
        ['two', 100],
        ['unversioned', 100],
        ['unversioned', 100],
      ] as const)
        await deployments.promote(buildId, percent);
      expect(changes).toEqual([CURRENT, RAMPING, RAMPING, CURRENT, CURRENT]);
    } finally {
      await workers.stop();
      await connection.close();
    }
  });

  it('the current build takes all new runs again when it is promoted, whichever has a part of them', async () => {
    const namespace = await temporal.namespace();
    const connection = connectTemporal({ address: temporal.address, namespace });
    const deployments = createDeployments({ connection, namespace });
    const workers = await startWorkers(namespace);
    const shares = async () => {
      const builds = (await deployments.read())?.builds ?? [];
      return Object.fromEntries(builds.map(({ buildId, share }) => [buildId, share]));
    };
    try {
      await workers.start({ buildId: 'one', for: 'workflows' });
      await workers.start({ buildId: 'two', for: 'workflows' });
      for (const id of ['one', 'two']) await until(() => isSeen(deployments, id), `${id} is seen`);
      await deployments.promote('one', 100);
      for (const id of ['two', 'unversioned']) {
        await deployments.promote(id, 30);
        expect(await shares()).toEqual({ one: 70, two: id === 'two' ? 30 : 0 });
        await deployments.promote('one', 100);
        expect(await shares()).toEqual({ one: 100, two: 0 });
      }
    } finally {
      await workers.stop();
      await connection.close();
    }
  });

  it('a change that gets no answer is asked for again', async () => {
    const namespace = await temporal.namespace();
    const connection = connectTemporal({ address: temporal.address, namespace });
    const workers = await startWorkers(namespace);
    try {
      await workers.start({ buildId: 'one', for: 'workflows' });
      const deployments = createDeployments({ connection: mute(connection), namespace });
      await until(() => isSeen(deployments, 'one'), 'it is seen');
      await deployments.promote('one', 100);
      expect((await deployments.read())?.currentBuildId).toBe('one');
    } finally {
      await workers.stop();
      await connection.close();
    }
  });
});
