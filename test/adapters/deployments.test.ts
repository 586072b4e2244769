// docs/upgrades.md: what Temporal's server says of builds, asked with workers that are nothing but their polls.
import { Client, type Connection } from '@temporalio/client';
import { NativeConnection, Worker } from '@temporalio/worker';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connectTemporal } from '../../src/adapters/temporal/connection.ts';
import { DEPLOYMENT } from '../../src/adapters/temporal/deployment-calls.ts';
import { createDeployments } from '../../src/adapters/temporal/deployments.ts';
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

/** What it says of a deployment whose own workflow has just been made. */
const BEGINNING = Object.assign(new Error('9 FAILED_PRECONDITION'), {
  ...{ code: 9, details: 'Workflow task is not scheduled yet.', metadata: {} },
});

/** The same server, which knows nothing of the deployment the first times that it is asked, or only begins to: in turn. */
function denying(connection: Connection, times: number): Connection {
  const real = connection.workflowService;
  let left = times;
  type Asked = Parameters<typeof real.describeWorkerDeployment>[0];
  const describeWorkerDeployment = (asked: Asked) => {
    if (left-- <= 0) return real.describeWorkerDeployment(asked);
    if (left % 2 === 1) return Promise.reject(BEGINNING);
    return real.describeWorkerDeployment({ ...asked, deploymentName: 'another' });
  };
  const workflowService = Object.create(real, {
    describeWorkerDeployment: { value: describeWorkerDeployment },
  }) as typeof real;
  return Object.create(connection, { workflowService: { value: workflowService } }) as Connection;
}

describe('docs/upgrades.md reading builds behind a change', () => {
  it('a deployment that the server denies while the workflow that knows it continues as new is read', async () => {
    const namespace = await temporal.namespace();
    const connection = connectTemporal({ address: temporal.address, namespace });
    const workers = await startWorkers(namespace);
    const read = (times: number) =>
      createDeployments({ connection: denying(connection, times), namespace }).read();
    try {
      await workers.start({ buildId: 'one', for: 'workflows' });
      const deployments = createDeployments({ connection, namespace });
      await until(() => isSeen(deployments, 'one'), 'it is seen');
      for (const times of [1, 3])
        expect((await read(times))?.builds.map(({ buildId }) => buildId)).toEqual(['one']);
      expect(await read(Infinity), 'and one that is not there is none').toBeUndefined();
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
  type Asked = Parameters<typeof real.setWorkerDeploymentCurrentVersion>[0];
  const setWorkerDeploymentCurrentVersion = async (change: Asked) => {
    const answer = await real.setWorkerDeploymentCurrentVersion(change);
    if (asked++ > 0) return answer;
    throw Object.assign(new Error('4 DEADLINE_EXCEEDED'), { code: 4, details: '', metadata: {} });
  };
  const workflowService = Object.create(real, {
    setWorkerDeploymentCurrentVersion: { value: setWorkerDeploymentCurrentVersion },
  }) as typeof real;
  return Object.create(connection, { workflowService: { value: workflowService } }) as Connection;
}

describe('docs/upgrades.md promoting a build while the server is busy', () => {
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
