// What is said between Core and agents, message by message: the SDK's agent and the three examples against the real
// server, every message held against the schemas and against the seed's own examples (seed 004 §8).
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { Notes } from '../../examples/notebook/notes.ts';
import { agent, tool } from '../../src/agent-sdk/index.ts';
import type { JsonObject } from '../../src/rules/json.ts';
import { validate } from '../../src/wire/validators.ts';
import {
  canRun,
  launchExample,
  type ExampleName,
  type LaunchedExample,
} from '../support/opensentience/examples.ts';
import type { Message } from '../support/opensentience/scripted-core.ts';
import { tap, type Tap } from '../support/opensentience/tap.ts';
import { callOf, startStage, type Stage } from '../support/opensentience/wire.ts';
import type { ToolProgress } from '../../src/ports/tools.ts';

/** What the stage's gate admits. */
const TOKEN = 'right';
const HEARTBEAT_MS = 100;
// A busy machine is late with heartbeats: that is not the matter here.
const LIMITS = {
  heartbeatIntervalMs: HEARTBEAT_MS,
  missedHeartbeats: 500,
  lostHeartbeats: 1_000,
  cancelMs: 20_000,
};

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

interface Scene {
  readonly stage: Stage;
  readonly line: Tap;
}

async function scene(): Promise<Scene> {
  const stage = await startStage(LIMITS);
  const line = await tap(stage.server.socketPath);
  cleanups.push(() => line.stop().then(() => stage.stop()));
  return { stage, line };
}

function temp(): string {
  const folder = mkdtempSync(join(tmpdir(), 'transcript-'));
  cleanups.push(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

async function registered({ line }: Scene, id: string): Promise<void> {
  const reply = await line.next('core.tools.registered');
  const declared = (await line.next('agent.tools.register')).payload.tools;
  expect(reply.payload).toEqual({ registered: declared.map(({ tool_id }) => tool_id) });
  expect(declared.every(({ tool_id }) => tool_id.startsWith(`${id}/`))).toBe(true);
}

/** A call through Core's session; what it gives and what came on the way. */
async function callThrough({ stage }: Scene, toolId: string, input: JsonObject) {
  const progress: ToolProgress[] = [];
  const onProgress = (one: ToolProgress): void => void progress.push(one);
  const session = stage.session(toolId.slice(0, toolId.indexOf('/')));
  const output = await session.call(callOf(toolId, { input, onProgress }));
  return { output, progress };
}

/** Cancels once the agent has the call; what Core says then. */
async function cancelThrough({ stage, line }: Scene, toolId: string, input: JsonObject) {
  const abort = new AbortController();
  const session = stage.session(toolId.slice(0, toolId.indexOf('/')));
  const requestId = 'request-to-cancel';
  const calling = session.call(callOf(toolId, { input, requestId, signal: abort.signal }));
  await line.next('core.tool.call', (one) => one.request_id === requestId);
  abort.abort();
  await expect(calling).rejects.toMatchObject({ code: 'cancelled' });
  return line.next('agent.tool.result', (one) => one.request_id === requestId);
}

/** Types in their order; signs of life, asked for by a Core that hears none, left out; a run of streams as one. */
function outline({ heard }: Tap): string[] {
  const types = heard
    .map(({ message }) => message.type)
    .filter((type) => !/beat|ping|pong/.test(type));
  return types.filter((type, at) => type !== 'agent.tool.stream' || types[at - 1] !== type);
}

const HELLO = ['agent.hello', 'core.welcome', 'agent.tools.register', 'core.tools.registered'];
const CANCELED = ['core.tool.call', 'core.tool.cancel', 'agent.tool.cancel_ack'];

function example(type: string): Message {
  const file = new URL(`../fixtures/opensentience/${type}.json`, import.meta.url);
  return JSON.parse(readFileSync(file, 'utf8')) as Message;
}

/** Fields that the seed calls optional (or "required where applicable", §3.1) and its examples leave out. */
const OPTIONAL: Record<string, readonly string[]> = {
  envelope: ['in_reply_to', 'request_id', 'correlation_id', 'causation_id', 'actor'],
  'agent.hello': ['manifest_hash', 'sdk'],
  'core.tool.call': ['timeout_ms', 'idempotency_key', 'caller', 'context'],
  'agent.tool.result': ['metrics'],
};

/** Same fields of the same kinds as the seed's example, and no others than it permits. */
function expectForm(ours: object, theirs: object, optional: readonly string[]): void {
  const kind = (value: unknown) => (Array.isArray(value) ? 'array' : typeof value);
  const kinds = (value: object) =>
    Object.fromEntries(Object.entries(value).map(([name, member]) => [name, kind(member)]));
  const extra = Object.keys(ours).filter((name) => !(name in theirs));
  expect(optional).toEqual(expect.arrayContaining(extra));
  expect(kinds(ours)).toMatchObject(kinds(theirs));
}

/** Every message valid; those that the seed shows, in its form; correlation on all that belongs to a call. */
function expectSpoken({ heard }: Tap): void {
  const calls = new Map<string, Message>();
  for (const { from, message } of heard) {
    expect(validate.openSentienceEnvelope(message)).toMatchObject({ ok: true });
    expect(message.type.startsWith(`${from}.`)).toBe(true);
    expect(new Date(message.ts).getTime()).not.toBeNaN();
    if (from === 'agent')
      expect(validate.agentMessage(message.type as 'agent.hello', message.payload)).toMatchObject({
        ok: true,
      });
    if (message.type === 'core.tool.call') calls.set(message.payload.call_id, message);
    const call = calls.get(message.payload.call_id);
    if (call) {
      const { request_id, correlation_id, causation_id } = call;
      expect(message).toMatchObject({ request_id, correlation_id, causation_id });
    }
    const shown = OPTIONAL[message.type];
    // The seed shows a result that succeeded.
    if (!shown || (message.payload.status ?? 'succeeded') !== 'succeeded') continue;
    expectForm(message, example(message.type), OPTIONAL.envelope ?? []);
    expectForm(message.payload, example(message.type).payload, shown);
  }
  const ids = heard.map(({ message }) => message.id);
  expect(new Set(ids).size).toBe(ids.length);
}

/** Streams of a call count from 1 by one. */
function expectCounted({ heard }: Tap): void {
  const last = new Map<string, number>();
  for (const { message } of heard) {
    if (message.type !== 'agent.tool.stream') continue;
    const { call_id, seq } = message.payload;
    expect(seq).toBe((last.get(call_id) ?? 0) + 1);
    last.set(call_id, seq);
  }
}

describe("the seed's own examples (seed 004 §8)", () => {
  it.each(['agent.hello', 'core.tool.call', 'agent.tool.result'])('%s is valid', (type) => {
    const message = example(type);
    expect(validate.openSentienceEnvelope(message)).toMatchObject({ ok: true });
    if (type.startsWith('agent.'))
      expect(validate.agentMessage(type as 'agent.hello', message.payload)).toMatchObject({
        ok: true,
      });
  });
});

describe("the SDK's agent against Core", () => {
  it('seed 004 §4: hello to goodbye, message by message', async () => {
    const input = {
      type: 'object',
      properties: { query: { type: 'string' } },
      required: ['query'],
      additionalProperties: false,
    } as const;
    const search = tool({
      name: 'graph_search',
      description: 'Searches.',
      input,
      streaming: true,
      run: ({ query }, { stream }) => {
        stream.status(`looking for ${query}`);
        stream.partial({ found: 1 });
        return { query_id: 'q_123', results: [], warnings: [] };
      },
    });
    const waits = tool({
      name: 'waits',
      description: 'Ends when its signal says so.',
      input: { type: 'object' },
      run: async (_, { signal }) => {
        await once(signal, 'abort');
        signal.throwIfAborted();
      },
    });
    const id = 'com.graphonomous.core';
    const set = await scene();
    const { line, stage } = set;
    const env = { OPENSENTIENCE_SOCKET: line.socketPath, OPENSENTIENCE_SESSION_TOKEN: TOKEN };
    const log: string[] = [];
    const surroundings = {
      env,
      log: (one: string) => void log.push(one),
      exit: () => undefined,
      onStop: () => () => undefined,
    };
    const ended = agent({ id, version: '1.0.0', tools: [search, waits], surroundings }).run();
    await registered(set, id);
    await line.next('agent.heartbeat');
    const { output, progress } = await callThrough(set, `${id}/graph_search`, { query: 'foo' });
    expect(output).toEqual({ query_id: 'q_123', results: [], warnings: [] });
    expect(progress).toHaveLength(2);
    const canceled = await cancelThrough(set, `${id}/waits`, {});
    expect(canceled.payload).toMatchObject({
      status: 'canceled',
      error: { code: 'tool.canceled' },
    });
    await stage.session(id).drain('restart', 1_000);
    await expect(ended).resolves.toEqual({ how: 'goodbye', reason: 'restart' });
    expect(outline(line)).toEqual([
      ...HELLO,
      ...['core.tool.call', 'agent.tool.stream', 'agent.tool.result'],
      ...[...CANCELED, 'agent.tool.result', 'core.goodbye'],
    ]);
    expectSpoken(line);
    expectCounted(line);
  });
});

interface Script {
  /** Environment of the agent. */
  readonly env: () => Record<string, string>;
  readonly tools: readonly string[];
  /** Calls that succeed, and one that streams. */
  readonly plays: (set: Scene, id: string) => Promise<void>;
  readonly invalid: readonly [tool: string, input: JsonObject];
  readonly canceled: readonly [tool: string, input: JsonObject];
}

const SCRIPTS: Record<ExampleName, Script> = {
  notebook: {
    env: () => {
      const folder = temp();
      // Enough for a list that is still at work when its cancel comes.
      const notes = new Notes(folder);
      for (let n = 1; n <= 600; n += 1) notes.add(`Note ${n}`, 'A text.');
      notes.close();
      return { NOTEBOOK_DIR: folder };
    },
    tools: ['add_note', 'search_notes', 'list_notes', 'delete_note'],
    plays: async (set, id) => {
      const input = { title: 'Buy milk', text: 'Two litres.' };
      const first = await callThrough(set, `${id}/add_note`, input);
      expect(first.output).toMatchObject({ note: { id: 601, ...input }, repeated: false });
      // The same idempotency key: one effect.
      const again = await callThrough(set, `${id}/add_note`, input);
      expect(again.output).toMatchObject({ note: { id: 601 }, repeated: true });
      const found = await callThrough(set, `${id}/search_notes`, { words: 'MILK' });
      expect(found.output).toMatchObject({ notes: [{ id: 601 }] });
      const listed = await callThrough(set, `${id}/list_notes`, {});
      expect(listed.output).toEqual({ count: 601, pages: 31 });
      expect(listed.progress).toHaveLength(31);
      const gone = await callThrough(set, `${id}/delete_note`, { id: 601 });
      expect(gone.output).toEqual({ deleted: 601 });
      const refused = callThrough(set, `${id}/delete_note`, { id: 601 });
      await expect(refused).rejects.toMatchObject({ code: 'tool_failed' });
    },
    invalid: ['add_note', { title: '' }],
    canceled: ['list_notes', {}],
  },
  ledger: {
    env: () => ({ LEDGER_DIR: temp() }),
    tools: ['post_entry', 'balance', 'slow_report'],
    plays: async (set, id) => {
      const lines = (cents: number) => [
        { account: 'cash', cents },
        { account: 'sales', cents: -1_250 },
      ];
      const entry = { text: 'Sale', lines: lines(1_250) };
      const posted = await callThrough(set, `${id}/post_entry`, entry);
      expect(posted.output).toEqual({ number: 1 });
      const cash = await callThrough(set, `${id}/balance`, { account: 'cash' });
      expect(cash.output).toEqual({ account: 'cash', cents: 1_250 });
      const odd = callThrough(set, `${id}/post_entry`, { text: 'Sale', lines: lines(1) });
      await expect(odd).rejects.toMatchObject({ code: 'tool_failed' });
      const report = await callThrough(set, `${id}/slow_report`, { steps: 2 });
      expect(report.output).toEqual({
        accounts: [
          { account: 'cash', cents: 1_250 },
          { account: 'sales', cents: -1_250 },
        ],
      });
      expect(report.progress).toHaveLength(2);
    },
    invalid: ['balance', { account: 7 }],
    canceled: ['slow_report', { steps: 1_000 }],
  },
  files: {
    env: () => {
      const folder = temp();
      writeFileSync(join(folder, 'a.txt'), 'one\ntwo\nthree\n');
      writeFileSync(join(folder, 'huge.bin'), '');
      // Without blocks on the disk, and long at work when its cancel comes.
      truncateSync(join(folder, 'huge.bin'), 64 * 1024 ** 3);
      return { FILES_DIR: folder };
    },
    tools: ['checksum', 'list_files', 'grep_files'],
    plays: async (set, id) => {
      const sum = await callThrough(set, `${id}/checksum`, { path: 'a.txt' });
      expect(sum.output).toEqual({
        bytes: 14,
        sha256: 'b6285c57e8797db5d4c51c80d6f11938afda9b11c6a003549709189e9b4b92a2',
      });
      const listed = await callThrough(set, `${id}/list_files`, {});
      expect(listed.output).toEqual({ files: ['a.txt', 'huge.bin'], truncated: false });
      const found = await callThrough(set, `${id}/grep_files`, { text: 't' });
      expect(found.output).toMatchObject({ matches: 2 });
      expect(found.progress).toHaveLength(2);
      for (const path of ['../secret', '/etc/passwd', 'a/../../b', 'none.txt'])
        await expect(callThrough(set, `${id}/checksum`, { path })).rejects.toMatchObject({
          code: 'tool_failed',
        });
    },
    invalid: ['grep_files', { text: '' }],
    canceled: ['checksum', { path: 'huge.bin' }],
  },
};

async function start(name: ExampleName, set: Scene): Promise<LaunchedExample> {
  const launched = launchExample(name, {
    ...SCRIPTS[name].env(),
    OPENSENTIENCE_SOCKET: set.line.socketPath,
    OPENSENTIENCE_SESSION_TOKEN: TOKEN,
  });
  cleanups.push(() => launched.child.kill('SIGKILL'));
  await registered(set, launched.id);
  return launched;
}

/** Names as the closing line of `npm test` shows them when they are skipped. */
const TITLES: Record<ExampleName, string> = {
  notebook: 'the notebook (TypeScript)',
  ledger: '[python] the ledger',
  files: '[go] the files',
};

for (const name of Object.keys(SCRIPTS) as ExampleName[])
  describe.skipIf(!canRun(name))(`${TITLES[name]} against Core`, () => {
    const { tools, plays, invalid, canceled } = SCRIPTS[name];
    it('seed 004 §4: hello to goodbye, message by message', async () => {
      const set = await scene();
      const { line, stage } = set;
      const { id, exited, written } = await start(name, set);
      const hello = line.heard[0]?.message.payload;
      expect(hello).toMatchObject({ agent_id: id, session_token: TOKEN });
      expect(hello?.manifest_hash).toMatch(/^sha256:[0-9a-f]{64}$/);
      const declared = stage.session(id).tools();
      expect(declared.map((one) => one.name)).toEqual(tools);
      await plays(set, id);
      const result = await cancelThrough(set, `${id}/${canceled[0]}`, canceled[1]);
      expect(result.payload).toMatchObject({
        status: 'canceled',
        error: { code: 'tool.canceled' },
      });
      await line.next('agent.heartbeat');
      await stage.session(id).drain('restart', 1_000);
      expect(await exited).toEqual([0, null]);
      expect(outline(line).slice(0, 4)).toEqual(HELLO);
      const ending = outline(line).filter((type) => type !== 'agent.tool.stream');
      expect(ending.slice(-5)).toEqual([...CANCELED, 'agent.tool.result', 'core.goodbye']);
      expectSpoken(line);
      expectCounted(line);
      expect(written()).not.toContain(TOKEN);
    });
    it('seed 004 §4.3.1, §6.2: refuses bad input, repeated calls and unknown types itself', async () => {
      const { startScriptedCore } = await import('../support/opensentience/scripted-core.ts');
      const core = await startScriptedCore();
      cleanups.push(() => core.stop());
      const env = { ...SCRIPTS[name].env(), OPENSENTIENCE_SOCKET: core.socket };
      const launched = launchExample(name, { ...env, OPENSENTIENCE_SESSION_TOKEN: TOKEN });
      cleanups.push(() => launched.child.kill('SIGKILL'));
      const connection = await core.connection();
      await connection.greet({ heartbeat_interval_ms: 50 });
      await connection.next('agent.heartbeat');
      const bad = connection.call(`${launched.id}/${invalid[0]}`, invalid[1]);
      const { payload, ...ids } = await connection.result(bad.callId);
      expect(payload).toMatchObject({ status: 'failed', error: { code: 'tool.invalid_input' } });
      expect(ids).toMatchObject(bad.extras);
      connection.call(`${launched.id}/none`, {}, { payload: { call_id: bad.callId } });
      await connection.next('agent.error');
      connection.send('core.dance', {}, { request_id: 'r-1' });
      const unknown = await connection.next('agent.error');
      expect(unknown.error?.code).toBe('protocol.unknown_type');
      const late = connection.call(`${launched.id}/${canceled[0]}`, canceled[1], {
        payload: { timeout_ms: 20 },
      });
      const timedOut = (await connection.result(late.callId)).payload;
      expect(timedOut).toMatchObject({ status: 'failed', error: { code: 'tool.timeout' } });
      // Its token is spent: it ends with its connection.
      connection.socket.destroy();
      const [code] = await launched.exited;
      expect(code).toBe(1);
    });
  });
