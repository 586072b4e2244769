// Whose a failure is (architecture §4.1): an outage of what the host stands on counts for nothing and costs no answer; what
// may have happened is asked about, whatever ended the call.
import type { ApplicationFailure } from '@temporalio/common';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { createActivities } from '../../activities/create-activities.ts';
import type { CallToolInput } from '../../activities/contract.ts';
import { LOST_TRIES, OWN_TRIES } from '../../activities/tries.ts';
import { databaseError } from '../../src/adapters/postgres/db.ts';
import { HostError, type ErrorCode } from '../../src/rules/errors.ts';
import { effectIdOf } from '../../src/adapters/postgres/effect-ledger.ts';
import { agentTaskQueue } from '../../src/rules/run-input.ts';
import { digestOf } from '../../src/rules/ids.ts';
import { canonicalJson, type JsonValue } from '../../src/rules/json.ts';
import type { Model } from '../../src/ports/models.ts';
import type { Stores } from '../../src/ports/stores.ts';
import type { Tool } from '../../src/ports/tools.ts';
import { openAnyStores } from '../support/log-parts.ts';
import { runRef } from '../support/run-ref.ts';
import {
  activityEnvironment,
  AGENT_ID,
  createRig,
  runActivity,
  turnInput,
  type Rig,
} from './rig.ts';

let stores: Stores;
beforeAll(async () => {
  stores = await openAnyStores();
});
afterAll(() => stores.close());

const DECIDES = { final: { decision: 'yes', confidence: 1 } };

interface Tries {
  readonly failures: number;
  readonly outages: number;
}

/** A try behind others that ended so; those that are not among them lost their worker. `left`: ms that it has. */
function tryBehind(tries: Tries, { lost = 0, left = 30_000, taskQueue = 'openwop' } = {}) {
  const env = activityEnvironment(1 + tries.failures + tries.outages + lost, {
    heartbeatDetails: { tries: { begun: tries.failures + tries.outages + lost, ...tries } },
    startToCloseTimeoutMs: left + 15_000,
    taskQueue,
  });
  const beats: { tries: Tries & { begun?: number } }[] = [];
  env.on('heartbeat', (details: (typeof beats)[number]) => void beats.push(details));
  const last = () => {
    const { failures, outages } = beats.at(-1)?.tries ?? {};
    return { failures, outages };
  };
  return { env, last, beats };
}

/** The stores of the rig, of which parts fail with a code. */
class Outage {
  /** Times that it still fails. */
  left = 0;
  readonly #error: Error;
  constructor(what: ErrorCode | Error = 'service_unavailable') {
    this.#error = what instanceof Error ? what : new HostError(what, { part: 'database' });
  }

  fail(): void {
    if (this.left-- > 0) throw this.#error;
  }

  of(whole: Stores): Stores {
    const put: Stores['content']['put'] = async (holder, bytes) => {
      this.fail();
      return whole.content.put(holder, bytes);
    };
    const settle: Stores['effects']['settle'] = async (...said) => {
      this.fail();
      return whole.effects.settle(...said);
    };
    return {
      ...whole,
      runs: whole.runs,
      content: { ...whole.content, put },
      effects: { ...whole.effects, settle },
    };
  }
}

function paying(pay: () => Promise<JsonValue>, more: Partial<Tool> = {}): Tool {
  return {
    toolId: 'demo:pay',
    description: 'Pays.',
    inputSchema: { type: 'object' },
    idempotent: false,
    timeoutMs: 5_000,
    transport: 'native',
    safetyTier: 'write',
    call: pay,
    ...more,
  };
}

function input(rig: Rig): CallToolInput {
  return {
    context: { ...rig.context, activityId: 'n/1/0/i0.t0.c0.call' },
    agentId: AGENT_ID,
    call: {
      callId: 'call-1',
      toolId: 'demo:pay',
      arguments: {},
      argsHash: digestOf(canonicalJson({})),
      occurrence: 0,
    },
    tools: ['demo:pay'],
    calledKey: 'agent.toolCalled|n/1/0/i0.t0.c0',
  };
}

const failing = (promise: Promise<unknown>): Promise<ApplicationFailure> =>
  promise.then(
    () => expect.fail('it succeeded'),
    (error: ApplicationFailure) => error,
  );

const stateOf = async (rig: Rig) =>
  (await stores.effects.ofRun(runRef(rig.runId))).map(({ state }) => state);

describe('an outage is no fact of a run [I98]', () => {
  const unreached = (code: ErrorCode) => paying(async () => Promise.reject(new HostError(code)));

  test.each(['service_unavailable', 'key_unavailable'] as const)(
    '(%s) its tries have no number, and count for none of the step’s own',
    async (code) => {
      const outage = new Outage(code);
      let doubts = 0;
      const rig = await createRig(outage.of(stores), { tools: [paying(async () => ({}))] });
      const watch = { isThere: () => true, doubt: () => void doubts++ };
      const activities = createActivities({ ...rig.ports, watch });
      outage.left = Infinity;
      const { env, last } = tryBehind({ failures: OWN_TRIES - 1, outages: 400 }, { left: 0 });
      const failed = await failing(
        runActivity({ activities }, 'callTool', { input: input(rig), env }),
      );
      expect(failed).toMatchObject({ type: code, nonRetryable: false });
      expect(last()).toEqual({ failures: OWN_TRIES - 1, outages: 401 });
      expect(doubts).toBe(1);
    },
  );

  test('a step that comes while the stores are known to be away is handed back unbegun', async () => {
    const rig = await createRig(stores, { tools: [paying(async () => expect.fail())] });
    const watch = { isThere: () => false, doubt: () => undefined };
    const activities = createActivities({ ...rig.ports, watch });
    const { env, last } = tryBehind({ failures: 0, outages: 2 });
    const failed = await failing(
      runActivity({ activities }, 'callTool', { input: input(rig), env }),
    );
    // Another worker may have it at once.
    expect(failed).toMatchObject({ type: 'service_unavailable', nextRetryDelay: 500 });
    expect(last()).toEqual({ failures: 0, outages: 3 });
    const queued = tryBehind({ failures: 0, outages: 0 }, { taskQueue: agentTaskQueue('t', 'a') });
    const call = { input: input(rig), env: queued.env };
    const rests = await failing(runActivity({ activities }, 'callTool', call));
    expect(rests.nextRetryDelay ?? undefined).toBeUndefined();
  });

  test('what the step fails with by itself is counted, and its last failure is final', async () => {
    const bug = new Error('a bug');
    const rig = await createRig(stores, { tools: [] });
    const tools = { ...rig.ports.tools, find: async () => Promise.reject(bug) };
    const activities = createActivities({ ...rig.ports, tools });
    const attempt = async (failures: number) => {
      const { env, last } = tryBehind({ failures, outages: 7 });
      const call = { input: input(rig), env };
      const { nonRetryable } = await failing(runActivity({ activities }, 'callTool', call));
      return { nonRetryable, told: last() };
    };
    expect(await attempt(0)).toEqual({ nonRetryable: false, told: { failures: 1, outages: 7 } });
    expect(await attempt(OWN_TRIES - 2)).toMatchObject({ nonRetryable: false });
    expect(await attempt(OWN_TRIES - 1)).toMatchObject({ nonRetryable: true });
  });

  test('a step that ends each worker which takes it is not begun for ever', async () => {
    let calls = 0;
    const rig = await createRig(stores, { tools: [paying(async () => ({ n: ++calls }))] });
    const last = tryBehind({ failures: 0, outages: 3 }, { lost: LOST_TRIES - 1 });
    await runActivity(rig, 'callTool', { input: input(rig), env: last.env });
    expect(calls).toBe(1);
    const other = await createRig(stores, { tools: [paying(async () => ({ n: ++calls }))] });
    const beyond = tryBehind({ failures: 0, outages: 3 }, { lost: LOST_TRIES });
    const failed = await failing(
      runActivity(other, 'callTool', { input: input(other), env: beyond.env }),
    );
    expect(failed).toMatchObject({ type: 'internal_error', nonRetryable: true });
    expect(calls).toBe(1);
  });

  test('a try that did not begin, since its input could not be decoded, counts for nothing', async () => {
    let calls = 0;
    const rig = await createRig(stores, { tools: [paying(async () => ({ n: ++calls }))] });
    const info = { heartbeatDetails: undefined } as object;
    const env = activityEnvironment(2 * LOST_TRIES, info);
    const beats: unknown[] = [];
    env.on('heartbeat', (details) => beats.push(details));
    await runActivity(rig, 'callTool', { input: input(rig), env });
    expect(calls).toBe(1);
    // Each that begins after the first says so, whatever becomes of it.
    expect(beats[0]).toEqual({ tries: { begun: 1, failures: 0, outages: 0 } });
    const { env: next, beats: later } = tryBehind({ failures: 1, outages: 2 }, { lost: 3 });
    const other = await createRig(stores, { tools: [paying(async () => ({}))] });
    await runActivity(other, 'callTool', { input: input(other), env: next });
    expect(later[0]).toEqual({ tries: { begun: 7, failures: 1, outages: 2 } });
  });

  test('that a tool is away is a failure of the tool’s', async () => {
    const rig = await createRig(stores, { tools: [unreached('service_unavailable')] });
    const { env } = tryBehind({ failures: 0, outages: 0 });
    const { output } = await runActivity(rig, 'callTool', { input: input(rig), env });
    expect(output).toMatchObject({ kind: 'in-doubt' });
    const again = await createRig(stores, {
      tools: [
        paying(async () => Promise.reject(new HostError('service_unavailable')), {
          idempotent: true,
        }),
      ],
    });
    const { last, ...next } = tryBehind({ failures: 1, outages: 0 });
    const failed = await failing(
      runActivity(again, 'callTool', { input: input(again), env: next.env }),
    );
    expect(failed).toMatchObject({ type: 'tool_failed', nonRetryable: false });
    expect(last()).toEqual({ failures: 2, outages: 0 });
  });

  test('what a model said while the store was away is kept: it is asked once', async () => {
    const outage = new Outage();
    let asked = 0;
    const model: Model = {
      infer: async (request) => {
        asked++;
        return {
          ...{ kind: 'final', reasoning: '', calls: [], model: request.model },
          final: '{"decision":"yes","confidence":1}',
          usage: { inputTokens: 1, outputTokens: 1 },
        };
      },
    };
    const rig = await createRig(stores);
    const activities = createActivities({
      ...rig.ports,
      stores: outage.of(stores),
      models: { ...rig.ports.models, get: () => model },
    });
    const { env } = tryBehind({ failures: 0, outages: 0 });
    const turn = { input: await turnInput(rig, { verbosity: 'off' }), env };
    outage.left = 4;
    const { output } = await runActivity({ activities }, 'inferTurn', turn);
    expect(output).toMatchObject({ kind: 'decision', decision: 'yes' });
    expect(asked).toBe(1);
  });

  test('so is what it streamed: shown whole, and asked once', async () => {
    const rig = await createRig(stores, { turns: [{ chunks: ['One. ', 'Two.'], ...DECIDES }] });
    let left = 0;
    const closeBlock: Stores['log']['closeBlock'] = async (...block) => {
      if (left-- > 0) throw new HostError('service_unavailable');
      return stores.log.closeBlock(...block);
    };
    const log = { ...stores.log, closeBlock };
    const activities = createActivities({ ...rig.ports, stores: { ...stores, log } });
    const turn = { input: await turnInput(rig), env: tryBehind({ failures: 0, outages: 0 }).env };
    left = 3;
    const { output, events } = await runActivity({ activities }, 'inferTurn', turn);
    expect(output).toMatchObject({ kind: 'decision' });
    expect(events[0]).toMatchObject({ payload: { reasoning: 'One. Two.' } });
    const rows = await stores.log.read(runRef(rig.runId), { after: -1, limit: 10 });
    expect(
      rows.map(({ payload }) => (JSON.parse(payload) as { delta: string }).delta).join(''),
    ).toBe('One. Two.');
  });

  test('a model that takes longer than a try has failed, and is asked again', async () => {
    const rig = await createRig(stores);
    const model: Model = {
      infer: (_request, { signal }) =>
        new Promise((_, reject) =>
          signal.addEventListener('abort', () => reject(signal.reason as Error)),
        ),
    };
    const models = { ...rig.ports.models, get: () => model };
    const activities = createActivities({ ...rig.ports, models });
    const { env, last } = tryBehind({ failures: 0, outages: 0 }, { left: 50 });
    const turn = { input: await turnInput(rig, { verbosity: 'off' }), env };
    const failed = await failing(runActivity({ activities }, 'inferTurn', turn));
    expect(failed).toMatchObject({ type: 'model_unavailable', nonRetryable: false });
    expect(last()).toEqual({ failures: 1, outages: 0 });
  });
});

describe('what may have happened is asked about [I99]', () => {
  test.each([
    ['does not answer', new HostError('service_unavailable')],
    ['has a damaged page', databaseError({ code: 'XX001', message: 'invalid page in block 7' })],
  ])('an answer that a store which %s cannot take is kept until it can', async (_what, error) => {
    const outage = new Outage(error);
    let paid = 0;
    const pay = async (): Promise<JsonValue> => {
      return { paid: ++paid };
    };
    const rig = await createRig(outage.of(stores), { tools: [paying(pay)] });
    outage.left = 4;
    const { env } = tryBehind({ failures: 0, outages: 0 });
    const { output } = await runActivity(rig, 'callTool', { input: input(rig), env });
    expect(output).toMatchObject({ kind: 'returned', status: 'ok' });
    expect(await stateOf(rig)).toEqual(['done']);
    expect(paid).toBe(1);
  });

  test.each([
    ['answers', 'done', async (): Promise<JsonValue> => ({}), 'returned'],
    ['is lost', 'in-doubt', async () => Promise.reject(new Error('reset')), 'in-doubt'],
  ])(
    'a call whose claim the database has lost, and which %s, is noted again: %s',
    async (_what, state, answer, kind) => {
      let paid = 0;
      const pay = () => (paid++, answer());
      const rig = await createRig(losing(), { tools: [paying(pay)] });
      const first = await runActivity(rig, 'callTool', { input: input(rig) });
      expect(first.output).toMatchObject({ kind });
      expect(await stateOf(rig)).toEqual([state]);
      const ports = { ...rig.ports, stores };
      const again = await runActivity({ ...rig, activities: createActivities(ports) }, 'callTool', {
        input: input(rig),
      });
      expect(again.output).toMatchObject({ kind });
      expect(paid).toBe(1);
    },
  );

  test('a call that goes on for longer than a renewal of its lost claim goes on, and is made once', async () => {
    let paid = 0;
    const pay = async (): Promise<JsonValue> => {
      await expect.poll(() => stateOf(rig)).toEqual(['claimed']);
      return { paid: ++paid };
    };
    const rig = await createRig(losing(), { tools: [paying(pay, { timeoutMs: 20_000 })] });
    const { output } = await runActivity(rig, 'callTool', { input: input(rig) });
    expect(output).toMatchObject({ kind: 'returned', status: 'ok' });
    expect(await stateOf(rig)).toEqual(['done']);
    expect(paid).toBe(1);
  });

  test('as long as its try may take; then the next one finds a doubt, and pays nothing', async () => {
    const outage = new Outage();
    let paid = 0;
    const rig = await createRig(outage.of(stores), {
      tools: [paying(async () => ({ paid: ++paid }))],
    });
    outage.left = Infinity;
    const { env } = tryBehind({ failures: 0, outages: 0 }, { left: 300 });
    const failed = await failing(runActivity(rig, 'callTool', { input: input(rig), env }));
    expect(failed).toMatchObject({ type: 'service_unavailable', nonRetryable: false });
    outage.left = 0;
    await leaseOver(rig);
    const next = tryBehind({ failures: 0, outages: 1 });
    const { output } = await runActivity(rig, 'callTool', { input: input(rig), env: next.env });
    expect(output).toMatchObject({ kind: 'in-doubt' });
    expect(paid).toBe(1);
  });

  // The wrapper fails with what no try can mend, and with what the step has failed with once too often.
  test.each([
    ['history_undecodable', 0],
    ['internal_error', OWN_TRIES - 1],
  ] as const)('a call that fails for good (%s) behind its effect', async (code, failures) => {
    const outage = new Outage(code);
    let paid = 0;
    const rig = await createRig(outage.of(stores), {
      tools: [paying(async () => ({ paid: ++paid }))],
    });
    outage.left = Infinity;
    const { env } = tryBehind({ failures, outages: 0 });
    const failed = await failing(runActivity(rig, 'callTool', { input: input(rig), env }));
    // Its own claim still runs: whoever comes then asks.
    expect(failed).toMatchObject({ type: 'service_unavailable', nonRetryable: false });
    await leaseOver(rig);
    const next = tryBehind({ failures, outages: 1 }, { lost: LOST_TRIES });
    const { output, events } = await runActivity(rig, 'callTool', {
      input: input(rig),
      env: next.env,
    });
    expect(output).toMatchObject({ kind: 'in-doubt' });
    expect(events).toEqual([]);
    expect(paid).toBe(1);
  });

  test('of a run that has ended nobody is asked', async () => {
    const rig = await createRig(stores, {
      tools: [paying(async () => Promise.reject(new Error()))],
    });
    const { output } = await runActivity(rig, 'callTool', {
      input: input(rig),
      env: tryBehind({ failures: 0, outages: 0 }).env,
    });
    expect(output).toMatchObject({ kind: 'in-doubt' });
    const claim = async () => ({ kind: 'run-closed' as const });
    const effects = { ...stores.effects, claim };
    const activities = createActivities({ ...rig.ports, stores: { ...stores, effects } });
    const { env } = tryBehind({ failures: 0, outages: 0 });
    const failed = await failing(
      runActivity({ activities }, 'callTool', { input: input(rig), env }),
    );
    expect(failed).toMatchObject({ type: 'run_state_conflict', nonRetryable: true });
  });

  test('one whose tool cannot be looked up any more is asked about, and offered nothing that cannot be done', async () => {
    const rig = await createRig(stores, {
      tools: [paying(async () => Promise.reject(new Error()))],
    });
    await runActivity(rig, 'callTool', {
      input: input(rig),
      env: tryBehind({ failures: 0, outages: 0 }).env,
    });
    const find = async () => Promise.reject(new Error('a bug'));
    const activities = createActivities({ ...rig.ports, tools: { ...rig.ports.tools, find } });
    const { env } = tryBehind({ failures: OWN_TRIES - 1, outages: 0 });
    const { output } = await runActivity({ activities }, 'callTool', { input: input(rig), env });
    expect(output).toMatchObject({ kind: 'in-doubt', refused: true });
  });

  test('a look at the ledger that fails once, too, does not make an error of it', async () => {
    const rig = await createRig(stores, {
      tools: [paying(async () => Promise.reject(new Error()))],
    });
    const run = (activities: Rig['activities']) =>
      runActivity({ activities }, 'callTool', {
        input: input(rig),
        env: tryBehind({ failures: OWN_TRIES - 1, outages: 0 }).env,
      });
    await run(rig.activities);
    const broken = async () => Promise.reject(new Error('a bug'));
    const effects = { ...stores.effects, claim: broken, recall: broken };
    const failed = await failing(
      run(createActivities({ ...rig.ports, stores: { ...stores, effects } })),
    );
    expect(failed).toMatchObject({ type: 'internal_error', nonRetryable: false });
    const recalls = { ...stores.effects, claim: broken };
    const { output } = await run(
      createActivities({ ...rig.ports, stores: { ...stores, effects: recalls } }),
    );
    expect(output).toMatchObject({ kind: 'in-doubt' });
  });

  test("a human's word still holds behind tries that an outage ended before they claimed anything", async () => {
    let calls = 0;
    const pay = async () => (++calls === 1 ? Promise.reject(new Error('broken')) : { calls });
    const rig = await createRig(stores, { tools: [paying(pay)] });
    const first = tryBehind({ failures: 0, outages: 0 });
    const doubt = await runActivity(rig, 'callTool', { input: input(rig), env: first.env });
    if (doubt.output.kind !== 'in-doubt') expect.fail(doubt.output.kind);
    const { epoch } = doubt.output;
    const resolution = { kind: 'perform' as const, ...(epoch === undefined ? {} : { epoch }) };
    const { env } = tryBehind({ failures: 0, outages: 2 });
    const asked = { ...input(rig), resolution };
    const { output } = await runActivity(rig, 'callTool', { input: asked, env });
    expect(output).toMatchObject({ status: 'ok' });
    expect(calls).toBe(2);
  });

  test('a doubt, too, is noted when it can be', async () => {
    const outage = new Outage();
    const rig = await createRig(outage.of(stores), {
      tools: [paying(async () => Promise.reject(new Error('broken')))],
    });
    outage.left = 3;
    const { env } = tryBehind({ failures: 0, outages: 0 });
    const { output } = await runActivity(rig, 'callTool', { input: input(rig), env });
    expect(output).toMatchObject({ kind: 'in-doubt' });
    expect(await stateOf(rig)).toEqual(['in-doubt']);
  });

  test('that nobody came cannot be stored: a later try says so, and of a call that never left no doubt is made', async () => {
    const outage = new Outage();
    const rig = await createRig(outage.of(stores), { tools: [paying(async () => expect.fail())] });
    const asked = { ...input(rig), resolution: { kind: 'unreached' as const } };
    outage.left = 1;
    const { env, last } = tryBehind({ failures: 0, outages: 0 });
    const failed = await failing(runActivity(rig, 'callTool', { input: asked, env }));
    expect(failed).toMatchObject({ type: 'service_unavailable', nonRetryable: false });
    expect(last()).toEqual({ failures: 0, outages: 1 });
    const { output } = await runActivity(rig, 'callTool', { input: asked });
    expect(output).toMatchObject({ kind: 'returned', status: 'error' });
    expect(await stateOf(rig)).toEqual([]);
  });

  test('a reconcile hook that does not end, and heeds nothing, is left: a human is asked', async () => {
    const rig = await createRig(stores, {
      tools: [
        paying(async () => Promise.reject(new Error('broken')), {
          timeoutMs: 50,
          reconcile: () => new Promise(() => undefined),
        }),
      ],
    });
    const { env } = tryBehind({ failures: 0, outages: 0 });
    const { output } = await runActivity(rig, 'callTool', { input: input(rig), env });
    expect(output).toMatchObject({ kind: 'in-doubt' });
  });

  // [I34]
  test.each([
    ['a human had it made meanwhile', true],
    ['it is still its own', false],
  ])(
    'a process that was stopped between its claim and its call looks whether that is still its own: %s',
    async (_what, isTaken) => {
      let paid = 0;
      const pay = async () => ({ paid: ++paid });
      const rig = await createRig(stores, { tools: [paying(pay)] });
      const byWord = async (): Promise<void> => {
        await leaseOver(rig);
        const { output } = await runActivity(rig, 'callTool', { input: input(rig) });
        if (output.kind !== 'in-doubt' || output.epoch === undefined) expect.fail(output.kind);
        const resolution = { kind: 'perform' as const, epoch: output.epoch };
        await runActivity(rig, 'callTool', { input: { ...input(rig), resolution } });
      };
      const claim: Stores['effects']['claim'] = async (...asked) => {
        const claimed = await stores.effects.claim(...asked);
        if (isTaken) await byWord();
        vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 20_000);
        return claimed;
      };
      const renew = vi.fn<Stores['effects']['renew']>((...held) => stores.effects.renew(...held));
      const effects = { ...stores.effects, claim, renew };
      const activities = createActivities({ ...rig.ports, stores: { ...stores, effects } });
      const ended = await runActivity({ activities }, 'callTool', { input: input(rig) }).then(
        ({ output }) => output.kind,
        ({ type }: ApplicationFailure) => type,
      );
      vi.mocked(Date.now).mockRestore();
      expect(renew).toHaveBeenCalledTimes(1);
      expect(ended).toBe(isTaken ? 'service_unavailable' : 'returned');
      expect(paid).toBe(1);
      expect(await stateOf(rig)).toEqual(['done']);
    },
  );

  test('of a tool without effects nobody is asked behind tries that were lost: the model is told', async () => {
    const reads = { idempotent: true, safetyTier: 'read' } as const;
    const tool = paying(async () => Promise.reject(new Error('broken')), reads);
    const rig = await createRig(stores, { tools: [tool] });
    await failing(runActivity(rig, 'callTool', { input: input(rig) }));
    const { env } = tryBehind({ failures: 0, outages: 0 }, { lost: LOST_TRIES });
    const { events } = await runActivity(rig, 'callTool', { input: input(rig), env });
    expect(events[0]?.payload).toMatchObject({
      error: { code: 'tool_failed', message: 'It is not known what came of the call.' },
    });
    const asked = { ...input(rig), resolution: { kind: 'unreached' as const } };
    const unreached = await runActivity(rig, 'callTool', { input: asked });
    expect(unreached.events[0]?.payload).toMatchObject({ error: { code: 'agent_unavailable' } });
  });

  test('a call with effects whose tool says now that it has none is asked about', async () => {
    const tool = paying(async () => Promise.reject(new Error('broken')));
    const rig = await createRig(stores, { tools: [tool] });
    await runActivity(rig, 'callTool', { input: input(rig) });
    const reads = { ...tool, idempotent: true, safetyTier: 'read' } as const;
    const find = async () => new Map<string, Tool>([[tool.toolId, reads]]);
    const activities = createActivities({ ...rig.ports, tools: { ...rig.ports.tools, find } });
    const { env } = tryBehind({ failures: 0, outages: 0 }, { lost: LOST_TRIES });
    const asked = await runActivity({ activities }, 'callTool', { input: input(rig), env });
    expect(asked.output).toMatchObject({ kind: 'in-doubt' });
  });

  test('one that was never sent fails as it failed', async () => {
    const rig = await createRig(stores, { tools: [paying(async () => ({}))] });
    const beyond = tryBehind({ failures: 0, outages: 0 }, { lost: LOST_TRIES });
    const failed = await failing(
      runActivity(rig, 'callTool', { input: input(rig), env: beyond.env }),
    );
    expect(failed).toMatchObject({ type: 'internal_error', nonRetryable: true });
    expect(await stateOf(rig)).toEqual([]);
  });
});

/** Stores that note no claim: as after a failover that loses what was confirmed last. */
function losing(): Stores {
  const claim: Stores['effects']['claim'] = async (identity) => ({
    ...{ kind: 'perform', effectId: effectIdOf(identity), epoch: 3, inDoubt: false },
    ...{ isAsked: true, isForeign: false },
  });
  return { ...stores, effects: { ...stores.effects, claim } };
}

/** Its lease runs out: here at once. */
async function leaseOver(rig: Rig): Promise<void> {
  const [effect] = await stores.effects.ofRun(runRef(rig.runId));
  expect(effect?.state).toBe('claimed');
  await stores.effects.renew(effect?.effectId ?? '', effect?.epoch ?? 0, -1);
}
