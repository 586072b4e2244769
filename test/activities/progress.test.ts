// Progress of tool calls (seed 004 §4.3.2, architecture §3.5): shown live in `output.chunk` rows, recorded with the
// result, adopted by later tries, redacted and bounded.
import { ApplicationFailure } from '@temporalio/common';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { CallToolInput } from '../../activities/contract.ts';
import { PROGRESS_BYTES, PROGRESS_DELTAS } from '../../activities/progress-writer.ts';
import { expandDeltas } from '../../src/rules/deltas.ts';
import { HostError } from '../../src/rules/errors.ts';
import { digestOf } from '../../src/rules/ids.ts';
import {
  canonicalJson,
  utf8Length,
  type JsonObject,
  type JsonValue,
} from '../../src/rules/json.ts';
import type { LogStore } from '../../src/ports/log.ts';
import type { Stores } from '../../src/ports/stores.ts';
import type { Tool, ToolCallContext } from '../../src/ports/tools.ts';
import {
  activityEnvironment,
  AGENT_ID,
  createRig,
  expectValid,
  rowsOf,
  runActivity,
  type Rig,
  type RigOptions,
} from './rig.ts';
import { openAnyStores } from '../support/log-parts.ts';
import { runRef } from '../support/run-ref.ts';
import { takes } from '../support/waiting.ts';

let stores: Stores;
beforeAll(async () => {
  stores = await openAnyStores();
});
afterAll(() => stores.close());

const TOOL_ID = 'demo:notes';
const ACTIVITY_ID = 'n/1/0/i0.t0.c0.call';
const NOTICE = '[more output is not shown]\n';

type Say = (channel: string, text: string) => void;
type Behave = (say: Say, context: ToolCallContext) => Promise<JsonValue>;

const notSent = (): Error => Object.assign(new Error('the agent is gone'), { sent: false });
const passing = (): Promise<void> => takes(60);

/** A tool of an agent process that does and says what the test wants. */
function streaming(behave: Behave, more: Partial<Tool> = {}): Tool {
  return {
    toolId: TOOL_ID,
    description: 'Reads.',
    inputSchema: { type: 'object' },
    idempotent: false,
    timeoutMs: 30_000,
    transport: 'native',
    safetyTier: 'read',
    remote: { agentId: 'local.notes', waitMs: 1_000, approval: 'none', streams: true },
    call: (_input, context) =>
      behave((channel, text) => context.onProgress?.({ channel, text }), context),
    ...more,
  };
}

function input(rig: Rig, more: Partial<CallToolInput> = {}): CallToolInput {
  const argsHash = digestOf(canonicalJson({}));
  return {
    context: { ...rig.context, activityId: ACTIVITY_ID },
    agentId: AGENT_ID,
    call: { callId: 'call-1', toolId: TOOL_ID, arguments: {}, argsHash, occurrence: 0 },
    tools: [TOOL_ID],
    calledKey: 'agent.toolCalled|n/1/0/i0.t0.c0',
    ...more,
  };
}

/** A rig whose tool can be changed between tries. */
async function rigOf(
  behave: Behave,
  options: RigOptions & { more?: Partial<Tool> } = {},
  of = stores,
) {
  const now = { behave };
  const tool = streaming((say, context) => now.behave(say, context), options.more);
  const rig = await createRig(of, { tools: [tool], ...options });
  const call = (tryNumber = 1, more: Partial<CallToolInput> = {}) =>
    runActivity(rig, 'callTool', { input: input(rig, more), tryNumber });
  return { rig, call, now };
}

interface Chunk {
  readonly channel: string;
  readonly chunk: string;
}

async function chunksOf(rig: Rig): Promise<Chunk[]> {
  return (await rowsOf(rig)).map(({ payload }) => {
    const { channel, chunk } = JSON.parse(payload) as Chunk & JsonObject;
    return { channel, chunk };
  });
}

function textsOf(chunks: readonly Chunk[]): Record<string, string> {
  const texts: Record<string, string> = {};
  for (const { channel, chunk } of chunks) texts[channel] = (texts[channel] ?? '') + chunk;
  return texts;
}

async function isRecorded(rig: Rig, deltas: Parameters<typeof expandDeltas>[1] | undefined) {
  if (!deltas) throw new Error('nothing is recorded');
  const rebuilt = expandDeltas(rig.runId, deltas).map((each) => ({ runId: rig.runId, ...each }));
  expect(rebuilt).toEqual(await rowsOf(rig));
  expect(await rig.stores.log.openBlocks(runRef(rig.runId))).toEqual([]);
}

/** Stores whose log behaves otherwise in places. */
function withLog(change: Partial<LogStore>): Stores {
  return { ...stores, log: { ...stores.log, ...change } };
}

async function failureOf(promise: Promise<unknown>): Promise<ApplicationFailure> {
  const error: unknown = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(ApplicationFailure);
  return error as ApplicationFailure;
}

describe('seed 004 §4.3.2 progress of a call', () => {
  test('is shown live by channel, valid, and the result records it byte for byte', async () => {
    const seen: Chunk[][] = [];
    const { rig, call } = await rigOf(async (say) => {
      say('stdout', 'one ');
      say('stderr', 'oh ');
      say('stdout', 'two ');
      await expect.poll(() => chunksOf(rig)).toHaveLength(3);
      seen.push(await chunksOf(rig));
      say('status', 'half');
      say('partial_result', '{"n":1}');
      return { n: 2 };
    });
    const { deltas, events, output } = await call();
    expect(seen[0]).toEqual([
      { channel: 'tool.stdout', chunk: 'one ' },
      { channel: 'tool.stderr', chunk: 'oh ' },
      { channel: 'tool.stdout', chunk: 'two ' },
    ]);
    const rows = await rowsOf(rig);
    expect(JSON.parse(rows[3]?.payload ?? '')).toEqual({
      nodeId: 'n',
      runId: rig.runId,
      chunk: 'half\n',
      isLast: false,
      channel: 'tool.status',
      callId: 'call-1',
      toolId: TOOL_ID,
      sequence: 3,
    });
    expect(rows.every(({ type, nodeId }) => type === 'output.chunk' && nodeId === 'n')).toBe(true);
    expect((await chunksOf(rig))[4]).toEqual({
      channel: 'tool.partial_result',
      chunk: '{"n":1}\n',
    });
    expect(deltas).toMatchObject({ activityId: ACTIVITY_ID, field: 'chunk' });
    await isRecorded(rig, deltas);
    expect(output).toMatchObject({ kind: 'returned', status: 'ok' });
    events.forEach((event) => expectValid(rig, event));
    expect(events.map(({ type }) => type)).toEqual(['agent.toolReturned']);
  });

  test('a call without progress leaves no block, asks the log nothing and returns as ever', async () => {
    const asked: string[] = [];
    const watch = <Name extends 'appendDeltas' | 'closeBlock' | 'storedDeltas'>(name: Name) => ({
      [name]: (...args: unknown[]) => {
        asked.push(name);
        return (stores.log[name] as (...all: unknown[]) => unknown)(...args);
      },
    });
    const log = { ...watch('appendDeltas'), ...watch('closeBlock'), ...watch('storedDeltas') };
    const { rig, call } = await rigOf(async () => ({ n: 1 }), {}, withLog(log));
    const result = await call();
    expect(Object.keys(result)).toEqual(['output', 'events']);
    expect(asked).toEqual([]);
    expect(await rowsOf(rig)).toEqual([]);
  });

  test.each([
    ['of this host', { remote: undefined }],
    [
      'of an agent that does not stream',
      { remote: { agentId: 'a', waitMs: 1, approval: 'none', streams: false } },
    ],
  ] as const)('a tool %s is not asked for progress: nobody would seal it', async (_name, more) => {
    let isAsked = true;
    const behave: Behave = async (_say, context) => {
      isAsked = context.onProgress !== undefined;
      return {};
    };
    const { call } = await rigOf(behave, { more });
    await call();
    expect(isAsked).toBe(false);
  });

  test('no progress comes before the first event of the run; the call ends all the same', async () => {
    const behave: Behave = async (say) => {
      say('log', 'early');
      return {};
    };
    const { rig, call } = await rigOf(behave, { caughtUpTo: 0 });
    const { deltas, output } = await call();
    expect([deltas, await rowsOf(rig)]).toEqual([undefined, []]);
    expect(output).toMatchObject({ status: 'ok' });
  });

  test('what comes after the end is dropped', async () => {
    let late: Say = () => undefined;
    const { rig, call } = await rigOf(async (say) => {
      late = say;
      say('log', 'in time');
      return {};
    });
    const { deltas } = await call();
    late('log', 'too late');
    await passing();
    expect(textsOf(await chunksOf(rig))).toEqual({ 'tool.log': 'in time\n' });
    await isRecorded(rig, deltas);
  });

  test('is counted in the details of the heartbeats', async () => {
    const env = activityEnvironment(1);
    const beats: unknown[] = [];
    let counted: () => void = () => undefined;
    const isCounted = new Promise<void>((resolve) => (counted = resolve));
    env.on('heartbeat', ({ told }: { told?: unknown }) => {
      beats.push(told);
      if (told !== undefined) counted();
    });
    const { rig } = await rigOf(async (say) => {
      say('stdout', 'a');
      say('stdout', 'b');
      await isCounted;
      return {};
    });
    await runActivity(rig, 'callTool', { input: input(rig), env });
    expect(beats).toContainEqual({ progress: 2 });
  });
});

describe('ends of a call (architecture §3.5)', () => {
  const said =
    (end: () => Promise<JsonValue>): Behave =>
    async (say) => {
      say('stdout', 'working ');
      return end();
    };

  test.each([
    [
      'an error',
      said(async () => Promise.reject(new HostError('tool_failed', { final: true }))),
      'returned',
    ],
    ['a doubt', said(async () => Promise.reject(new Error('connection reset'))), 'in-doubt'],
  ])('%s returns what was shown', async (_name, behave, kind) => {
    const { rig, call } = await rigOf(behave);
    const { deltas, output } = await call();
    expect(output.kind).toBe(kind);
    expect(deltas?.text).toBe('working ');
    await isRecorded(rig, deltas);
  });

  test('a throw leaves the block open; the next try adopts it, channel by channel', async () => {
    const { rig, call, now } = await rigOf(async (say) => {
      say('stdout', 'one ');
      say('stderr', 'oh ');
      say('stdout', 'two ');
      throw notSent();
    });
    await failureOf(call());
    expect(await rig.stores.log.openBlocks(runRef(rig.runId))).toEqual([ACTIVITY_ID]);
    expect(await chunksOf(rig)).toHaveLength(3);
    now.behave = async (say) => {
      say('stderr', 'oh no ');
      say('stdout', 'one ');
      say('stdout', 'two three ');
      return {};
    };
    const { deltas } = await call(2);
    expect((await chunksOf(rig)).slice(3)).toEqual([
      { channel: 'tool.stderr', chunk: 'no ' },
      { channel: 'tool.stdout', chunk: 'three ' },
    ]);
    await isRecorded(rig, deltas);
  });

  test('a difference in one channel ends the streaming; what is stored stays', async () => {
    const { rig, call, now } = await rigOf(async (say) => {
      say('stdout', 'one ');
      say('stderr', 'oh ');
      throw notSent();
    });
    await failureOf(call());
    now.behave = async (say) => {
      say('stdout', 'one ');
      say('stderr', 'ah ');
      say('stdout', 'two ');
      return {};
    };
    const { deltas } = await call(2);
    expect(textsOf(await chunksOf(rig))).toEqual({ 'tool.stdout': 'one ', 'tool.stderr': 'oh ' });
    await isRecorded(rig, deltas);
  });

  test('a later try that says nothing, or finds the tool gone, records what the first has shown', async () => {
    const behave: Behave = async (say) => {
      say('stdout', 'one ');
      throw notSent();
    };
    const quiet = await rigOf(behave);
    await failureOf(quiet.call());
    quiet.now.behave = async () => ({});
    await isRecorded(quiet.rig, (await quiet.call(2)).deltas);

    const gone = await rigOf(behave);
    await failureOf(gone.call());
    const other = await createRig(stores);
    const { output, deltas } = await runActivity(other, 'callTool', {
      input: input(gone.rig),
      tryNumber: 2,
    });
    expect(output).toMatchObject({ kind: 'returned', status: 'error' });
    await isRecorded(gone.rig, deltas);
  });

  test('an effect that is done already: its progress comes from the block', async () => {
    const { rig, call } = await rigOf(async (say) => {
      say('stdout', 'once ');
      return {};
    });
    const first = await call();
    const second = await call(2);
    expect(second.deltas).toEqual(first.deltas);
    expect(second.output).toEqual(first.output);
    await isRecorded(rig, second.deltas);
  });

  test('a call that ends without a result is sealed: recorded, without an event', async () => {
    const { rig, call } = await rigOf(async (say) => {
      say('stdout', 'lost ');
      throw notSent();
    });
    await failureOf(call());
    const seal = {
      context: { ...rig.context, activityId: `${ACTIVITY_ID}.seal` },
      sealedActivityId: ACTIVITY_ID,
      kind: 'tool' as const,
      agentId: AGENT_ID,
      verbosity: 'off' as const,
    };
    const sealed = await runActivity(rig, 'sealBlock', { input: seal });
    expect(sealed).toMatchObject({ output: { deltas: 1 }, events: [] });
    await isRecorded(rig, sealed.deltas);
    const late = await call(2).catch((error: unknown) => error);
    expect(late).toBeInstanceOf(ApplicationFailure);
    await isRecorded(rig, sealed.deltas);
  });

  test.each([
    ['before', 'half '],
    ['after', 'half [REDACTED:vault]'],
  ])(
    'a call whose time is over and that is sealed %s it knows: the seal records what the log shows',
    async (order, shown) => {
      const secrets = [{ id: 'vault', value: 'hunter2-hunter2' }];
      const { rig } = await rigOf(
        async (say, { signal }) => {
          say('stdout', 'half hunt');
          await new Promise((resolve) => signal.addEventListener('abort', resolve));
          throw new HostError('service_unavailable');
        },
        { secrets },
      );
      const env = activityEnvironment(1);
      const running = runActivity(rig, 'callTool', { input: input(rig), env }).catch(
        () => undefined,
      );
      await expect.poll(() => chunksOf(rig)).toHaveLength(1);
      const end = async () => {
        env.cancel('TIMED_OUT');
        await running;
      };
      if (order === 'after') await end();
      const sealed = await runActivity(rig, 'sealBlock', {
        input: {
          context: { ...rig.context, activityId: `${ACTIVITY_ID}.seal` },
          sealedActivityId: ACTIVITY_ID,
          kind: 'tool',
          agentId: AGENT_ID,
          verbosity: 'off',
        },
      });
      if (order === 'before') await end();
      expect(sealed.deltas?.text).toBe(shown);
      await isRecorded(rig, sealed.deltas);
    },
  );
});

describe('SR-1: secrets in progress', () => {
  const secrets = [{ id: 'vault', value: 'hunter2-hunter2' }];

  test('one that straddles two chunks of a channel while another channel speaks is in no row or result', async () => {
    const { rig, call } = await rigOf(
      async (say) => {
        say('stdout', 'key: hunt');
        say('stderr', 'busy ');
        await passing();
        say('stdout', 'er2-hun');
        say('stderr', 'still ');
        say('stdout', 'ter2, sk-abcdefgh');
        await passing();
        say('stdout', 'ijklmnopqrst done ');
        return {};
      },
      { secrets },
    );
    const { deltas } = await call();
    expect(textsOf(await chunksOf(rig))).toEqual({
      'tool.stdout': 'key: [REDACTED:vault], [REDACTED:credential] done ',
      'tool.stderr': 'busy still ',
    });
    await isRecorded(rig, deltas);
    expect(JSON.stringify([deltas, await rowsOf(rig)])).not.toMatch(/hunt|abcd/);
  });

  test('the held-back rest of every channel is shown at the end', async () => {
    const { rig, call } = await rigOf(
      async (say) => {
        say('stdout', 'a hunter2-hu');
        say('stderr', 'b hunt');
        return {};
      },
      { secrets },
    );
    await isRecorded(rig, (await call()).deltas);
    expect(textsOf(await chunksOf(rig))).toEqual({
      'tool.stdout': 'a hunter2-hu',
      'tool.stderr': 'b hunt',
    });
  });

  test.each(['hunter2-hunter2', 'UPPER', '', 'a.b', 'x'.repeat(33), 'tool.x\n'])(
    'the channel name %j is no name: its text goes to the log channel',
    async (name) => {
      const { rig, call } = await rigOf(
        async (say) => {
          say(name, 'text');
          return {};
        },
        { secrets },
      );
      await call();
      expect(await chunksOf(rig)).toEqual([{ channel: 'tool.log', chunk: 'text\n' }]);
    },
  );
});

describe('bounds of a call’s progress', () => {
  test('text above the bound is left out, and the last chunk says so, once', async () => {
    const { rig, call } = await rigOf(async (say) => {
      for (let at = 0; at < 5; at++) say('stdout', 'ü '.repeat(PROGRESS_BYTES / 12));
      say('stderr', 'more ');
      return {};
    });
    const { deltas, output } = await call();
    const texts = textsOf(await chunksOf(rig));
    expect(Object.keys(texts)).toEqual(['tool.stdout', 'tool.status']);
    expect(utf8Length(texts['tool.stdout'] ?? '')).toBeGreaterThan(PROGRESS_BYTES - 3);
    expect(utf8Length(texts['tool.stdout'] ?? '')).toBeLessThanOrEqual(PROGRESS_BYTES);
    expect(texts['tool.status']).toBe(NOTICE);
    expect((await chunksOf(rig)).at(-1)?.chunk).toBe(NOTICE);
    expect(output).toMatchObject({ status: 'ok' });
    await isRecorded(rig, deltas);
  });

  test('a later try that repeats it all adds nothing', async () => {
    const talk = (say: Say): void => {
      say('stdout', 'x '.repeat(PROGRESS_BYTES));
    };
    const { rig, call, now } = await rigOf(async (say) => {
      talk(say);
      throw notSent();
    });
    await failureOf(call());
    const before = await chunksOf(rig);
    expect(before.at(-1)?.chunk).toBe(NOTICE);
    now.behave = async (say) => {
      talk(say);
      return {};
    };
    await isRecorded(rig, (await call(2)).deltas);
    expect(await chunksOf(rig)).toEqual(before);
  });

  test('deltas: as many as permitted, then the notice', async () => {
    const { rig, call } = await rigOf(async (say) => {
      for (let round = 0; round < 12; round++) {
        const stored = (await rig.stores.log.storedDeltas(runRef(rig.runId), ACTIVITY_ID)).length;
        for (let at = 0; at < 250; at++) say(at % 2 ? 'stdout' : 'stderr', '. ');
        const want = Math.min(stored + 250, PROGRESS_DELTAS);
        await expect
          .poll(
            async () => (await rig.stores.log.storedDeltas(runRef(rig.runId), ACTIVITY_ID)).length,
          )
          .toBeGreaterThanOrEqual(want);
      }
      return {};
    });
    const { deltas } = await call();
    expect(deltas?.cuts).toHaveLength(PROGRESS_DELTAS + 1);
    expect(deltas?.channels?.at(-1)).toEqual(['tool.status', 1]);
    expect(deltas?.text.endsWith(NOTICE)).toBe(true);
    const rows = await rig.stores.log.storedDeltas(runRef(rig.runId), ACTIVITY_ID);
    expect(rows.map(({ payload }) => payload)).toEqual(
      expandDeltas(rig.runId, deltas as never).map(({ payload }) => payload),
    );
  });

  test('a slow log makes larger deltas and loses nothing', async () => {
    let open: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => (open = resolve));
    const slow = withLog({
      appendDeltas: async (...args) => {
        await gate;
        return stores.log.appendDeltas(...args);
      },
    });
    const behave: Behave = async (say) => {
      for (let at = 0; at < 5_000; at++) say(at % 2 ? 'stdout' : 'stderr', `${at} `);
      await passing();
      open();
      return {};
    };
    const { rig, call } = await rigOf(behave, {}, slow);
    const { deltas } = await call();
    expect(deltas?.cuts.length).toBeLessThan(1_000);
    const numbers = Array.from({ length: 5_000 }, (_, at) => at);
    const rows = await rig.stores.log.storedDeltas(runRef(rig.runId), ACTIVITY_ID);
    const chunks = rows.map(({ payload }) => JSON.parse(payload) as Chunk);
    expect(textsOf(chunks)).toEqual({
      'tool.stderr': numbers
        .filter((at) => at % 2 === 0)
        .map((at) => `${at} `)
        .join(''),
      'tool.stdout': numbers
        .filter((at) => at % 2 === 1)
        .map((at) => `${at} `)
        .join(''),
    });
  });

  test('channels: the text of too many goes to the log channel', async () => {
    const { rig, call } = await rigOf(async (say) => {
      for (let at = 0; at < 20; at++) say(`c${at}`, `${at} `);
      return {};
    });
    await call();
    const texts = textsOf(await chunksOf(rig));
    expect(Object.keys(texts)).toHaveLength(8);
    expect(texts['tool.log']).toBe(Array.from({ length: 13 }, (_, at) => `${at + 7} \n`).join(''));
  });

  test('an append whose answer is lost is not repeated', async () => {
    let losses = 2;
    const lossy = withLog({
      appendDeltas: async (...args) => {
        const outcome = await stores.log.appendDeltas(...args);
        if (losses-- > 0) throw new Error('connection reset');
        return outcome;
      },
    });
    const behave: Behave = async (say) => {
      say('stdout', 'a ');
      say('stderr', 'b ');
      await passing();
      say('stdout', 'c ');
      await expect.poll(() => losses).toBeLessThan(1);
      return {};
    };
    const { rig, call } = await rigOf(behave, {}, lossy);
    await isRecorded(rig, (await call()).deltas);
    expect(await chunksOf(rig)).toEqual([
      { channel: 'tool.stdout', chunk: 'a ' },
      { channel: 'tool.stderr', chunk: 'b ' },
      { channel: 'tool.stdout', chunk: 'c ' },
    ]);
  });
});
