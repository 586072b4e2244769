// How workflow code waits for children (RFC 0007; architecture §4): the signal of a child's end, early, twice or of a
// stranger; a cancel in each phase; segment borders in between.
import type { WorkflowHandle } from '@temporalio/client';
import { ApplicationFailure, WorkflowNotFoundError } from '@temporalio/common';
import { describe, expect, it } from 'vitest';
import type {
  CancelChildInput,
  EndChildInput,
  StartChildrenInput,
} from '../../activities/contract.ts';
import { CHILD_ENDED_SIGNAL } from '../../src/rules/children.ts';
import { childPlaceOf, childRunIdOf } from '../../src/rules/ids.ts';
import { MESSAGES, type RunMessage } from '../../src/rules/messages.ts';
import type { RunInput } from '../../src/rules/run-input.ts';
import type { WorkflowDefinition } from '../../schemas/types.generated.ts';
import { chain, node, runInput } from '../support/definitions.ts';
import { until as untilSo } from '../support/host.ts';
import { pendingOf, type ScriptedActivities } from '../support/run-workflow.ts';
import {
  payloadsOf,
  runBothWays,
  runOnce,
  taken,
  typesOf,
  useWorkflowRunner,
} from './both-ways.ts';

useWorkflowRunner();

const VARIABLES = [
  { name: 'got', type: 'string', defaultValue: 'nothing' },
] as WorkflowDefinition['variables'];
const sub = (config: object = {}) =>
  node('sub', 'core.subWorkflow', {
    config: { workflowId: 'child', outputMapping: { got: 'result' }, ...config },
  });
const inputOf = (name: string, config: object = {}, settings = {}): RunInput =>
  runInput(
    chain(
      name,
      [node('before', 'core.noop'), { ...sub(config), settings }, node('after', 'core.noop')],
      { variables: VARIABLES },
    ),
  );

/** What became of children in the world that the activities are. */
interface World {
  readonly started: string[];
  readonly asked: EndChildInput[];
  readonly cancelled: CancelChildInput[];
  readonly activities: ScriptedActivities;
}

function world(more: ScriptedActivities = {}): World {
  const started: string[] = [];
  const asked: EndChildInput[] = [];
  const cancelled: CancelChildInput[] = [];
  const activities: ScriptedActivities = {
    async startChildren({ requests }: StartChildrenInput) {
      started.push(...requests.map(({ runId }) => runId));
      const starts = requests.map(() => ({ kind: 'started', workflowId: 'child' }));
      return { output: { starts }, events: [] };
    },
    async endChild(input: EndChildInput) {
      asked.push(input);
      return { output: { status: 'completed', variables: { result: 'paid' } }, events: [] };
    },
    async cancelChild(input: CancelChildInput) {
      cancelled.push(input);
      return { output: { found: 'open' }, events: [] };
    },
    ...more,
  };
  return { started, asked, cancelled, activities };
}

const until = (ready: () => boolean | Promise<boolean>) => untilSo(ready, String(ready));

/** Whoever says it: a child's own code, or the keeper for it. */
const tell = (handle: WorkflowHandle, childRunId: string) =>
  handle.signal(CHILD_ENDED_SIGNAL, { childRunId });

function passNotFound(error: unknown): void {
  if (!(error instanceof WorkflowNotFoundError)) throw error;
}

function cancel(handle: WorkflowHandle): Promise<unknown> {
  const message: RunMessage = { kind: 'cancel', cancelledBy: 'tester', bodyDigest: '' };
  return taken(() => handle.executeUpdate(MESSAGES.cancel.update, { args: [message] }));
}

describe('RFC 0007 a child run', () => {
  it('is waited for over segment borders; its end is taken once, however often it is told', async () => {
    const { started, asked, activities } = world();
    let seen = 0;
    const run = await runBothWays({
      input: inputOf('told'),
      activities,
      script: async (handle) => {
        await until(() => started.length > seen);
        seen = started.length;
        const childRunId = started.at(-1) ?? '';
        await taken(() => tell(handle, 'run-of-somebody-else'));
        // Once it has been told, the run may have ended.
        for (let times = 0; times < 3; times++)
          await taken(() => tell(handle, childRunId)).catch(passNotFound);
        await handle.result().catch(() => undefined);
      },
    });
    expect(run.status).toBe('completed');
    expect(asked).toHaveLength(2);
    expect(payloadsOf(run, 'variable.changed')).toMatchObject([{ name: 'got', next: 'paid' }]);
    expect(payloadsOf(run, 'node.dispatched')).toHaveLength(1);
  });

  it('that is erased or expired while its parent waits fails the node by name', async () => {
    const gone = { code: 'child_lost', message: 'The child run is not there any more.' };
    const { started, activities } = world({
      endChild: async () => ({ output: { status: 'failed', error: gone }, events: [] }),
    });
    const run = await runOnce({
      input: inputOf('lost'),
      activities,
      script: async (handle) => {
        await until(() => started.length === 1);
        await tell(handle, started[0] ?? '');
        await handle.result().catch(() => undefined);
      },
    });
    expect(payloadsOf(run, 'node.failed')).toMatchObject([{ error: { code: 'child_lost' } }]);
    expect(payloadsOf(run, 'run.failed')).toMatchObject([{ error: { code: 'child_lost' } }]);
    expect(payloadsOf(run, 'variable.changed')).toEqual([]);
  });

  it('may end before its parent knows that it began', async () => {
    let handleOf: WorkflowHandle | undefined;
    const { asked, activities } = world({
      async startChildren({ requests }: StartChildrenInput) {
        if (handleOf) await tell(handleOf, requests[0]?.runId ?? '');
        return { output: { starts: [{ kind: 'started', workflowId: 'child' }] }, events: [] };
      },
    });
    const run = await runOnce({
      input: inputOf('early'),
      activities,
      script: async (handle) => {
        handleOf = handle;
        await handle.result();
      },
    });
    expect([run.status, asked.length]).toEqual(['completed', 1]);
  });

  // [I62]
  it('seed 003 §3.4: its id is a function of parent, call and index, whatever starts it', async () => {
    const { started, activities } = world({
      // The first try dies behind its effect.
      startChildren: (() => {
        let tries = 0;
        return async ({ requests }: StartChildrenInput) => {
          started.push(...requests.map(({ runId }) => runId));
          if (tries++ === 0) throw new Error('the worker died');
          return { output: { starts: [{ kind: 'started', workflowId: 'child' }] }, events: [] };
        };
      })(),
    });
    const input = inputOf('again');
    await runOnce({
      input,
      activities,
      script: async (handle) => {
        await until(() => started.length === 2);
        await tell(handle, started[0] ?? '');
        await handle.result();
      },
    });
    expect(new Set(started).size).toBe(1);
    expect(childRunIdOf('a', 'c', 0)).not.toBe(childRunIdOf('a', 'c', 1));
  });
});

describe('a child that a later attempt starts', () => {
  it('[I99] stands in the place of the one before; that of a later visit, and of another node, in another', async () => {
    const places: string[] = [];
    const left: unknown[] = [];
    let ended = 0;
    const given = world({
      async startChildren({ requests }: StartChildrenInput) {
        places.push(...requests.map(({ place }) => place));
        left.push(...requests.map(({ leftTools }) => leftTools));
        const starts = requests.map(({ runId }) => ({
          kind: 'recorded',
          childRunId: runId,
          workflowId: 'child',
          recordedOf: 'r',
        }));
        return { output: { starts }, events: [] };
      },
      async endChild() {
        const status = ended++ === 0 ? 'failed' : 'completed';
        return { output: { status, variables: { result: 'paid' } }, events: [] };
      },
    });
    const settings = { retry: { maxAttempts: 2, initialDelayMs: 1 } };
    const config = { workflowId: 'child' };
    const run = await runOnce({
      input: runInput(
        chain('places', [
          { ...node('one', 'core.subWorkflow', { config }), settings },
          node('two', 'core.subWorkflow', { config }),
        ]),
        { leftTools: ['demo:pay'] },
      ),
      activities: given.activities,
    });
    expect(run.status).toBe('completed');
    // It knows of which tools calls were left above it.
    expect(left).toEqual(places.map(() => ['demo:pay']));
    const [first, again, other] = places;
    expect(places).toHaveLength(3);
    expect(again).toBe(first);
    expect(other).not.toBe(first);
    expect(first).toBe(childPlaceOf({ nodeId: 'one', visit: 1 }, 'child'));
    expect(childPlaceOf({ nodeId: 'one', visit: 2 }, 'child')).not.toBe(first);
  });
});

describe('a cancel of the parent', () => {
  // [I64]
  it.each([
    ['while the child is being started', 'starting'],
    ['while it is waited for', 'running'],
    ['while its end is read', 'ending'],
  ])('%s: the child is told, seen to end, and the run ends once', async (_when, phase) => {
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    let reached = phase === 'running';
    const given = world();
    const hold = (name: string) => async (input: never) => {
      reached = true;
      await held;
      return given.activities[name]?.(input);
    };
    const activities = {
      ...given.activities,
      ...(phase === 'starting' ? { startChildren: hold('startChildren') } : {}),
      ...(phase === 'ending' ? { endChild: hold('endChild') } : {}),
    } as ScriptedActivities;
    const input = inputOf(`cancelled-${phase}`);
    const run = await runOnce({
      input,
      activities,
      script: async (handle) => {
        if (phase !== 'starting') await until(() => given.started.length === 1);
        if (phase === 'ending') await tell(handle, given.started[0] ?? '');
        await until(() => reached);
        await cancel(handle);
        release();
        if (phase !== 'ending') {
          await until(() => given.cancelled.length === 1);
          await tell(handle, given.cancelled[0]?.childRunId ?? '');
        }
        await handle.result().catch(() => undefined);
      },
    });
    expect(run.status).toBe('cancelled');
    expect(typesOf(run).slice(-2)).toEqual(['node.cancelled sub', 'run.cancelled']);
    expect(given.cancelled.map(({ reason }) => reason)).toEqual(
      phase === 'ending' ? [] : ['parent-cancelled'],
    );
  });
});

describe('what a child is given', () => {
  it('says what of it is sensitive in its parent: variables, ports and outputs that are masked there', async () => {
    const given: StartChildrenInput['requests'][number][] = [];
    const { activities } = world({
      async startChildren({ requests }: StartChildrenInput) {
        given.push(...requests);
        const refusal = { kind: 'refused', code: 'validation_error', message: 'no' };
        return { output: { starts: [refusal] }, events: [] };
      },
    });
    const port = (variableName: string) => ({ type: 'variable' as const, variableName });
    const nodes = [
      {
        ...node('before', 'core.noop', { inputs: { key: port('key') } }),
        outputSensitivity: { key: true },
      },
      {
        ...sub({ inputMapping: { mapped: 'pin', over: 'open', unset: 'none' } }),
        inputs: {
          port: port('pin'),
          shown: port('open'),
          over: port('pin'),
          unset: port('pin'),
          from: { type: 'connection' as const, nodeId: 'before', outputKey: 'key' },
        },
      },
    ] as WorkflowDefinition['nodes'];
    const variables = [
      { name: 'pin', type: 'string', sensitive: true, defaultValue: '1' },
      { name: 'key', type: 'string', defaultValue: '2' },
      { name: 'open', type: 'string', defaultValue: '3' },
      { name: 'none', type: 'string' },
      { name: 'got', type: 'string' },
    ] as WorkflowDefinition['variables'];
    const input = runInput(chain('masked', nodes, { variables }), {
      variables: { pin: '1', key: '2', open: '3' },
    });
    await runOnce({
      input,
      activities,
      script: async (handle) => void (await handle.result().catch(() => undefined)),
    });
    expect(given[0]?.inputs).toMatchObject({ mapped: '1', over: '3', port: '1' });
    expect(given[0]?.sensitive?.toSorted()).toEqual(['from', 'mapped', 'port', 'unset']);
  });
});

describe('what a child is given together', () => {
  it('is bounded: one variable that is mapped to many names fails the node, and starts nothing', async () => {
    const { started, activities } = world();
    const names = Array.from({ length: 100 }, (_, at): [string, string] => [`name${at}`, 'text']);
    const inputMapping = Object.fromEntries(names);
    const definition = chain('mapped', [sub({ inputMapping })], {
      variables: [{ name: 'text', type: 'string' }] as WorkflowDefinition['variables'],
    });
    const run = await runOnce({
      input: runInput(definition, { variables: { text: 'x'.repeat(30_000) } }),
      activities,
      script: async (handle) => void (await handle.result().catch(() => undefined)),
    });
    expect(run.status).toBe('failed');
    expect(payloadsOf(run, 'run.failed')).toMatchObject([{ error: { code: 'payload_too_large' } }]);
    expect(started).toEqual([]);
  });
});

describe('a start that fails', () => {
  it('ends what it has begun, and the next attempt begins another child', async () => {
    const asked: string[] = [];
    const { cancelled, activities } = world({
      async startChildren({ requests }: StartChildrenInput) {
        asked.push(...requests.map(({ runId }) => runId));
        // The run is there, and what follows its row failed for good.
        if (asked.length === 1)
          throw ApplicationFailure.create({ type: 'forbidden', nonRetryable: true });
        return { output: { starts: [{ kind: 'started', workflowId: 'child' }] }, events: [] };
      },
    });
    const run = await runOnce({
      input: inputOf('half', {}, { retry: { maxAttempts: 2, initialDelayMs: 1 } }),
      activities,
      script: async (handle) => {
        await until(() => cancelled.length === 1);
        await tell(handle, asked[0] ?? '');
        await until(() => asked.length === 2);
        await tell(handle, asked[1] ?? '');
        await handle.result();
      },
    });
    expect(run.status).toBe('completed');
    expect(cancelled).toMatchObject([{ childRunId: asked[0], reason: 'not-needed' }]);
    expect(asked[1]).not.toBe(asked[0]);
  });
});

/** The pause has to come before it is over, on a busy machine too. */
const ENOUGH_TO_PAUSE_MS = 4_000;

describe('a pause of the parent', () => {
  it.each([
    ['of the child', 'completed', { timeoutMs: ENOUGH_TO_PAUSE_MS }, {}],
    ['of the node', 'failed', {}, { timeoutMs: ENOUGH_TO_PAUSE_MS }],
  ])(
    'the time %s runs on: the child is ended before the resume',
    async (_whose, status, config, settings) => {
      const { started, cancelled, activities } = world();
      const send = (handle: WorkflowHandle, kind: 'pause' | 'resume') =>
        taken(() =>
          handle.executeUpdate(MESSAGES[kind].update, {
            args: [{ kind, drainPolicy: 'drain-current-node', bodyDigest: '' }],
          }),
        );
      const run = await runOnce({
        input: inputOf('paused-late', config, settings),
        activities,
        script: async (handle) => {
          await until(() => started.length === 1);
          await send(handle, 'pause');
          await until(() => cancelled.length === 1);
          await tell(handle, started[0] ?? '');
          // A node that is out of time may end the run before it is resumed.
          await send(handle, 'resume').catch(() => undefined);
          await handle.result().catch(() => undefined);
        },
      });
      expect(typesOf(run)).toContain('run.paused');
      expect(run.status).toBe(status);
      expect(cancelled).toHaveLength(1);
    },
  );

  it('rests while its child goes on, and takes the end that came meanwhile at the resume', async () => {
    const { started, asked, activities } = world();
    const send = (handle: WorkflowHandle, kind: 'pause' | 'resume') =>
      taken(() =>
        handle.executeUpdate(MESSAGES[kind].update, {
          args: [{ kind, drainPolicy: 'immediate', bodyDigest: '' }],
        }),
      );
    const run = await runOnce({
      input: inputOf('paused'),
      activities,
      script: async (handle) => {
        await until(() => started.length === 1);
        await send(handle, 'pause');
        await tell(handle, started[0] ?? '');
        await until(async () => !(await pendingOf(handle)).hasTask);
        expect((await pendingOf(handle)).activities).toEqual([]);
        expect(asked).toEqual([]);
        await send(handle, 'resume');
        await handle.result();
      },
    });
    expect(run.status).toBe('completed');
    expect(typesOf(run).filter((type) => /pause|resume/.test(type))).toEqual([
      'run.paused',
      'run.resumed',
    ]);
    expect(asked).toHaveLength(1);
  });
});
