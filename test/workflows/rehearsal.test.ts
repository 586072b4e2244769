// Rehearsals in workflow code: nothing ends by itself, a skip ends what waits in the order of deadlines, each at its own
// time, and what is performed meanwhile takes none of it.
import type { WorkflowHandle } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { describe, expect, it } from 'vitest';
import type { KeepTimeInput, StartChildrenInput } from '../../activities/contract.ts';
import { CHILD_ENDED_SIGNAL } from '../../src/rules/children.ts';
import { MAX_SKIP_STOPS } from '../../src/rules/limits.ts';
import { MESSAGES, NEXT_DEADLINE, type SkipMessage } from '../../src/rules/messages.ts';
import type { RunInput } from '../../src/rules/run-input.ts';
import type { WorkflowDefinition } from '../../schemas/types.generated.ts';
import { approvalSchema } from '../../workflows/approvals.ts';
import {
  agentNode,
  chain,
  definition,
  edge,
  node,
  pinned,
  runInput,
} from '../support/definitions.ts';
import { until } from '../support/host.ts';
import {
  isPaused,
  openInterruptIds,
  pendingOf,
  type FinishedRun,
} from '../support/run-workflow.ts';
import {
  answer,
  factsOf,
  payloadsOf,
  runBothWays,
  runOnce,
  taken,
  useWorkflowRunner,
} from './both-ways.ts';
import { AGENT, decision, scripted } from './scripted-agent.ts';
import { quietFor } from '../support/waiting.ts';

useWorkflowRunner();

const HOUR_MS = 3600 * 1000;
const DAY_MS = 24 * HOUR_MS;
const CLOCK_SET = 'openwop-temporal.clock-set';
const GATE = approvalSchema(['accept', 'reject']);

const rehearsal = (workflow: WorkflowDefinition, more: Partial<RunInput> = {}): RunInput =>
  runInput(workflow, { rehearsal: {}, ...more });

const wait = (id: string, ms: number) => node(id, 'core.delay', { config: { ms } });
const gate = (id: string, timeoutMs: number, more: object = {}) =>
  node(id, 'core.approvalGate', { config: { timeoutMs }, ...more });

/** Told again where it came between two segments, or the skip before it is still under way. */
const AGAIN = new Set(['service_unavailable', 'run_state_conflict']);
const ONCE = { again: new Set(['service_unavailable']) };

function skip(
  handle: WorkflowHandle,
  to: SkipMessage['to'],
  { updateId, again = AGAIN }: { updateId?: string; again?: ReadonlySet<string> } = {},
): Promise<unknown> {
  const args: [object] = [{ kind: 'skip', to, bodyDigest: 'b' }];
  const id = updateId === undefined ? {} : { updateId };
  return taken(() => handle.executeUpdate(MESSAGES.skip.update, { args, ...id }), again);
}

const isAsking = (handle: WorkflowHandle, nodeId: string) =>
  until(async () => (await openInterruptIds(handle, nodeId)).length === 1, `${nodeId} asks`);

const skipping = (to: SkipMessage['to']) => async (handle: WorkflowHandle) => {
  expect(await skip(handle, to)).toMatchObject({ status: 'skipping' });
};

/** The story of a run as its clock tells it: nodes that ended, by the time skipped until then. */
function story(run: FinishedRun): string[] {
  let skippedMs = 0;
  return factsOf(run).flatMap(({ type, nodeId, payload }) => {
    if (type === CLOCK_SET) skippedMs += payload.skippedMs as number;
    const told = ['node.completed', 'node.failed', 'node.retried', 'run.failed', 'run.completed'];
    return told.includes(type) ? [`${skippedMs / HOUR_MS}h ${type} ${nodeId ?? ''}`.trim()] : [];
  });
}

const ladder = chain('ladder', [
  wait('day1', DAY_MS),
  node('remind1', 'core.noop'),
  wait('day2', DAY_MS),
  node('remind2', 'core.noop'),
  wait('half', DAY_MS / 2),
  gate('ask', 7 * DAY_MS),
]);

describe('a skip', () => {
  // [I77]
  it('over a ladder of days ends each wait at its own time, in order', async () => {
    const run = await runBothWays({
      input: rehearsal(ladder),
      script: async (handle) => {
        await skip(handle, 2.5 * DAY_MS);
        await answer(handle, 'ask', { action: 'accept' }, GATE);
      },
    });
    expect(story(run)).toEqual([
      '24h node.completed day1',
      '24h node.completed remind1',
      '48h node.completed day2',
      '48h node.completed remind2',
      '60h node.completed half',
      '60h node.completed ask',
      '60h run.completed',
    ]);
    const times = payloadsOf(run, CLOCK_SET).map(({ now }) => Date.parse(now as string));
    const [beganMs = 0] = times;
    expect(times.map((ms) => (ms - beganMs) / HOUR_MS)).toEqual([0, 24, 48, 60]);
  });

  it('to the next deadline stops there', async () => {
    const run = await runBothWays({
      input: rehearsal(chain('two', [wait('one', DAY_MS), wait('two', DAY_MS)])),
      script: async (handle) => {
        await skip(handle, NEXT_DEADLINE);
        await skip(handle, HOUR_MS);
        await skip(handle, NEXT_DEADLINE);
      },
    });
    expect(payloadsOf(run, CLOCK_SET).map(({ skippedMs }) => skippedMs)).toEqual(
      [0, 24, 1, 23].map((hours) => hours * HOUR_MS),
    );
    expect(run.status).toBe('completed');
  });

  it('stands after MAX_SKIP_STOPS stops, and goes on from there with the next skip', async () => {
    const minuteMs = 60_000;
    const waits = Array.from({ length: MAX_SKIP_STOPS + 1 }, (_, at) => wait(`w${at}`, minuteMs));
    const run = await runOnce({
      input: rehearsal(chain('steps', waits), {
        limits: {
          ...runInput(chain('limits', [])).limits,
          ...{ maxNodeExecutions: 2 * MAX_SKIP_STOPS, maxRunDurationMs: DAY_MS },
        },
      }),
      script: async (handle) => {
        await skip(handle, DAY_MS);
        await skip(handle, minuteMs / 2);
        await skip(handle, NEXT_DEADLINE);
      },
    });
    const stops = payloadsOf(run, CLOCK_SET).map(({ skippedMs }) => skippedMs);
    const ofFirst = waits.slice(1).map(() => minuteMs);
    expect(stops).toEqual([0, ...ofFirst, minuteMs / 2, minuteMs / 2]);
    expect(run.status).toBe('completed');
  });

  it('ends the waits of branches in the order of their deadlines', async () => {
    const run = await runBothWays({
      input: rehearsal(
        definition(
          'branches',
          [
            node('s', 'core.start'),
            wait('late', 2 * DAY_MS),
            wait('soon', DAY_MS),
            wait('then', HOUR_MS),
          ],
          [edge('s', 'late'), edge('s', 'soon'), edge('soon', 'then')],
        ),
      ),
      parallel: true,
      script: skipping(3 * DAY_MS),
    });
    expect(story(run).slice(1)).toEqual([
      '24h node.completed soon',
      '25h node.completed then',
      '48h node.completed late',
      '48h run.completed',
    ]);
  });

  it('lets a question expire: silence never grants', async () => {
    const run = await runBothWays({
      input: rehearsal(chain('asks', [gate('ask', 7 * DAY_MS), node('end', 'core.end')])),
      script: skipping(NEXT_DEADLINE),
    });
    expect(payloadsOf(run, 'approval.received')).toEqual([{ nodeId: 'ask', action: 'timeout' }]);
    expect(story(run)).toEqual(['168h node.failed ask', '168h run.failed']);
  });

  it('takes an answer before the deadline of its clock, and none at it', async () => {
    const run = await runOnce({
      input: rehearsal(
        chain('late', [
          gate('ask', 2 * DAY_MS),
          gate('again', 2 * DAY_MS),
          node('end', 'core.end'),
        ]),
      ),
      script: async (handle) => {
        await skip(handle, 2 * DAY_MS - 1);
        await answer(handle, 'ask', { action: 'accept' }, GATE);
        await isAsking(handle, 'again');
        await skip(handle, 2 * DAY_MS);
      },
    });
    expect(payloadsOf(run, 'approval.received').map(({ action }) => action)).toEqual([
      'accept',
      'timeout',
    ]);
  });

  it('ends the pause before a retry, and a node that is out of time', async () => {
    const retried = gate('ask', 9 * DAY_MS, {
      settings: {
        timeoutMs: DAY_MS,
        retry: { maxAttempts: 2, initialDelayMs: HOUR_MS, backoff: 1, maxDelayMs: HOUR_MS },
      },
    });
    const run = await runBothWays({
      input: rehearsal(chain('retries', [retried])),
      script: skipping(3 * DAY_MS),
    });
    expect(story(run)).toEqual(['24h node.retried ask', '49h node.failed ask', '49h run.failed']);
  });

  it('ends a run whose time is over', async () => {
    const run = await runBothWays({
      input: rehearsal(chain('limited', [wait('long', 9 * DAY_MS)]), {
        configurable: { runTimeoutMs: 2 * DAY_MS },
      }),
      script: skipping(9 * DAY_MS),
    });
    expect(story(run)).toEqual(['48h run.failed']);
    expect(payloadsOf(run, 'cap.breached')).toMatchObject([
      { kind: 'run-duration', limit: 2 * DAY_MS },
    ]);
  });

  it('waits for what is performed, which takes none of its time', async () => {
    const { activities } = scripted({ turns: [decision(1)] });
    let finish: () => void = () => {};
    const isAsked = new Promise<void>((resolve) => (finish = resolve));
    const inferTurn = (input: never) => activities.inferTurn?.(input);
    let hasBegun = false;
    const run = await runOnce({
      input: rehearsal(
        chain('thinks', [wait('first', DAY_MS), agentNode('think', AGENT), wait('last', DAY_MS)]),
        { agents: { [AGENT]: pinned(AGENT) } },
      ),
      activities: {
        ...activities,
        async inferTurn(input: never) {
          hasBegun = true;
          await isAsked;
          return inferTurn(input);
        },
      },
      script: async (handle) => {
        await skip(handle, 3 * DAY_MS);
        await until(() => hasBegun, 'the model is asked');
        const journal = await handle.describe();
        expect(journal.status.name).toBe('RUNNING');
        await expect(skip(handle, HOUR_MS, ONCE)).rejects.toMatchObject({
          cause: { type: 'run_state_conflict' },
        });
        finish();
      },
    });
    expect(story(run)).toEqual([
      '24h node.completed first',
      '24h node.completed think',
      '48h node.completed last',
      '48h run.completed',
    ]);
  });

  it('that comes again under its id is the same skip, in a later segment too', async () => {
    const run = await runBothWays({
      input: rehearsal(
        chain('once', [wait('one', DAY_MS), wait('two', DAY_MS), gate('ask', DAY_MS)]),
      ),
      script: async (handle) => {
        await skip(handle, DAY_MS, { updateId: 'same' });
        await skip(handle, DAY_MS, { updateId: 'same' });
        await skip(handle, DAY_MS, { updateId: 'other' });
        await answer(handle, 'ask', { action: 'accept' }, GATE);
      },
    });
    expect(story(run).at(-1)).toBe('48h run.completed');
  });
});

describe('the clock of a rehearsal', () => {
  // [I76]
  it('stands: what would be over long ago is not', async () => {
    const run = await runOnce({
      input: rehearsal(chain('short', [wait('short', 50)])),
      script: async (handle) => {
        await until(async () => !(await pendingOf(handle)).hasTask, 'it waits');
        await quietFor(400);
        expect((await handle.describe()).status.name).toBe('RUNNING');
        await skip(handle, 50);
      },
    });
    expect(run.status).toBe('completed');
    expect(run.segments.flat().filter((event) => event.timerStartedEventAttributes)).toEqual([]);
  });

  it('is moved by nobody while the run is paused, and goes on behind that', async () => {
    const run = await runOnce({
      input: rehearsal(chain('paused', [gate('ask', 2 * DAY_MS)])),
      script: async (handle) => {
        await isAsking(handle, 'ask');
        const args: [object] = [{ bodyDigest: 'b', drainPolicy: 'drain-current-node' }];
        await handle.executeUpdate(MESSAGES.pause.update, { args });
        await until(() => isPaused(handle), 'it is paused');
        await expect(skip(handle, DAY_MS, ONCE)).rejects.toMatchObject({
          cause: { type: 'run_state_conflict' },
        });
        await handle.executeUpdate(MESSAGES.resume.update, { args });
        await skip(handle, 2 * DAY_MS);
      },
    });
    expect(story(run)).toEqual(['48h node.failed ask', '48h run.failed']);
  });

  it('ends with a cancel, also while it is to move', async () => {
    let leave: (error: Error) => void = () => {};
    const run = await runOnce({
      input: rehearsal(chain('cancelled', [agentNode('think', AGENT), wait('last', DAY_MS)]), {
        agents: { [AGENT]: pinned(AGENT) },
      }),
      activities: {
        ...scripted({ turns: [] }).activities,
        inferTurn: () => new Promise((_, reject) => (leave = reject)),
      },
      script: async (handle) => {
        await skip(handle, DAY_MS);
        const message = { kind: 'cancel', cancelledBy: 'tester', bodyDigest: '' } as const;
        await taken(() => handle.executeUpdate(MESSAGES.cancel.update, { args: [message] }));
      },
    });
    leave(new Error('nobody waits any more'));
    expect(run.status).toBe('cancelled');
    expect(payloadsOf(run, CLOCK_SET)).toHaveLength(1);
  });

  it('is in no other run: one that is none refuses, by name', async () => {
    const run = await runOnce({
      input: runInput(chain('ordinary', [gate('ask', DAY_MS)])),
      script: async (handle) => {
        await expect(skip(handle, HOUR_MS)).rejects.toMatchObject({
          cause: { type: 'not_a_rehearsal' },
        });
        await answer(handle, 'ask', { action: 'accept' }, GATE);
      },
    });
    expect(payloadsOf(run, CLOCK_SET)).toEqual([]);
  });
});

describe('runs below a rehearsal', () => {
  const sub = node('sub', 'core.subWorkflow', { config: { workflowId: 'child' } });
  const ended = (handle: WorkflowHandle, childRunId: string) =>
    handle.signal(CHILD_ENDED_SIGNAL, { childRunId });

  it('begin at its time, are asked before its clock moves, and told where it stands', async () => {
    const asked: KeepTimeInput[] = [];
    const started: StartChildrenInput[] = [];
    let beganMs = 0;
    const run = await runOnce({
      input: rehearsal(chain('parent', [wait('first', DAY_MS), sub, wait('last', DAY_MS)])),
      activities: {
        async startChildren(input: StartChildrenInput) {
          started.push(input);
          const starts = input.requests.map(() => ({ kind: 'started', workflowId: 'child' }));
          return { output: { starts }, events: [] };
        },
        async keepTime(input: KeepTimeInput) {
          asked.push(input);
          const { children } = input;
          beganMs = (started[0]?.requests[0]?.clockMs ?? 0) - DAY_MS;
          const output =
            input.toMs === undefined
              ? { children: [...children, 'grandchild'], nextMs: beganMs + DAY_MS + HOUR_MS }
              : { children };
          return { output, events: [] };
        },
        async endChild() {
          return { output: { status: 'completed' }, events: [] };
        },
      },
      script: async (handle) => {
        await skip(handle, 3 * DAY_MS);
        await until(async () => asked.some(({ toMs }) => toMs !== undefined), 'they are told');
        await ended(handle, started[0]?.requests[0]?.runId ?? '');
      },
    });
    expect(run.status).toBe('completed');
    expect(story(run)).toContain('25h node.completed sub');
    expect(story(run)).toContain('49h node.completed last');
    const [first, told] = asked;
    expect(first?.toMs).toBeUndefined();
    expect(told).toMatchObject({
      children: [started[0]?.requests[0]?.runId, 'grandchild'],
      toMs: beganMs + DAY_MS + HOUR_MS,
    });
  });

  it('that wait for no time leave the clock where it is, and it is said so', async () => {
    let child = '';
    const run = await runOnce({
      input: rehearsal(chain('open', [sub])),
      activities: {
        async startChildren({ requests }: StartChildrenInput) {
          child = requests[0]?.runId ?? '';
          const starts = requests.map(() => ({ kind: 'started', workflowId: 'child' }));
          return { output: { starts }, events: [] };
        },
        async keepTime({ children }: KeepTimeInput) {
          return { output: { children }, events: [] };
        },
        async endChild() {
          return { output: { status: 'completed' }, events: [] };
        },
      },
      script: async (handle) => {
        await skip(handle, NEXT_DEADLINE);
        // Taken when the first is done.
        await skip(handle, NEXT_DEADLINE);
        await ended(handle, child);
      },
    });
    expect(run.status).toBe('completed');
    const skipped = payloadsOf(run, CLOCK_SET).map(({ skippedMs }) => skippedMs);
    expect(skipped.slice(0, 2)).toEqual([0, 0]);
    expect(new Set(skipped)).toEqual(new Set([0]));
  });

  it('that cannot be asked leave the clock where it is', async () => {
    const run = await runOnce({
      input: rehearsal(chain('mute', [sub])),
      activities: {
        async startChildren({ requests }: StartChildrenInput) {
          const starts = requests.map(() => ({ kind: 'started', workflowId: 'child' }));
          return { output: { starts }, events: [] };
        },
        async keepTime() {
          throw ApplicationFailure.nonRetryable('no', 'replay_source_missing');
        },
        async cancelChild() {
          return { output: { found: 'ended' }, events: [] };
        },
      },
      script: async (handle) => {
        await skip(handle, DAY_MS);
        await skip(handle, DAY_MS);
        const message = { kind: 'cancel', cancelledBy: 'tester', bodyDigest: '' } as const;
        await taken(() => handle.executeUpdate(MESSAGES.cancel.update, { args: [message] }));
      },
    });
    expect(run.status).toBe('cancelled');
    expect(payloadsOf(run, CLOCK_SET)).toHaveLength(1);
  });
});
