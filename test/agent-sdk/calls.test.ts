// Calls of the SDK's agent (seed 004 §3.1, §4.3, §4.4, §7): validation, correlation, streams, cancellation, and exactly
// one result whatever happens.
import { once } from 'node:events';
import { afterEach, describe, expect, it } from 'vitest';
import { tool, ToolError, type AgentOptions, type ToolCall } from '../../src/agent-sdk/index.ts';
import type { JsonMap } from '../../src/opensentience/messages.ts';
import type { Message } from '../support/opensentience/scripted-core.ts';
import { attach, TOKEN, type Attached } from './attached.ts';

const EMPTY = { type: 'object' } as const;
const running = (name: string, run: (call: ToolCall) => object | void | Promise<object | void>) =>
  tool({ name, description: name, input: EMPTY, run: (_, call) => run(call) });

/** Ends when its signal says so, by throwing the signal's reason. */
const waits = running('waits', async ({ signal }) => {
  await once(signal, 'abort');
  signal.throwIfAborted();
});
/** Never ends. */
const deaf = running('deaf', () => new Promise(() => undefined));
const finishes = running('finishes', async ({ signal }) => {
  await once(signal, 'abort');
  return { finished: true };
});
const counted = tool({
  name: 'counted',
  description: 'Counts.',
  input: {
    type: 'object',
    properties: { to: { type: 'integer', minimum: 1 }, by: { type: 'integer', default: 10 } },
    required: ['to'],
    additionalProperties: false,
  },
  output: { type: 'object', properties: { sum: { type: 'integer' } }, required: ['sum'] },
  run: ({ to, by = 1 }) => ({ sum: to + by }),
});

let open: Attached | undefined;
const attached = async (options: Partial<AgentOptions>, welcome: object = {}) =>
  (open = await attach(options, welcome));
afterEach(async () => {
  await open?.stop();
  open = undefined;
});
const ID = (name: string) => `com.example.test/${name}`;

describe('a call', () => {
  it('seed 004 §3.1: request_id, correlation_id and causation_id are on every message of a call', async () => {
    const speaks = running('speaks', async ({ stream, signal }) => {
      stream.status('working');
      await once(signal, 'abort');
      signal.throwIfAborted();
    });
    const { connection } = await attached({ tools: [speaks] });
    const { callId, extras } = connection.call(ID('speaks'), {});
    await connection.next('agent.tool.stream');
    connection.send('core.tool.cancel', { call_id: callId });
    await connection.result(callId);
    const ofCall = connection.received.filter(({ payload }) => payload.call_id === callId);
    expect(ofCall.map(({ type }) => type)).toEqual([
      'agent.tool.stream',
      'agent.tool.cancel_ack',
      'agent.tool.result',
    ]);
    for (const message of ofCall) expect(message).toMatchObject(extras);
  });
  it('seed 004 §4.3.1: a tool sees key, caller, context, actor and timeout of its call', async () => {
    let seen: ToolCall | undefined;
    const looks = running('looks', (call) => void (seen = call));
    const { connection } = await attached({ tools: [looks] });
    const caller = { type: 'agent', id: 'planner' };
    const actor = { type: 'human', id: 'u-1', display: 'Ada' };
    const context = { project_root: '/p', resource_paths: ['a'] };
    const payload = { timeout_ms: 5_000, idempotency_key: 'key-1', caller, context };
    const { callId, extras } = connection.call(ID('looks'), {}, { payload, extras: { actor } });
    expect((await connection.result(callId)).payload).toMatchObject({ output: {} });
    expect(seen).toMatchObject({
      ...{ callId, caller, actor, context, toolId: ID('looks') },
      ...{ idempotencyKey: 'key-1', timeoutMs: 5_000, requestId: extras.request_id },
      ...{ correlationId: extras.correlation_id, causationId: extras.causation_id },
    });
  });
  it('seed 004 §4.3.3: a result has status, output and times, and is the only one', async () => {
    const { connection } = await attached({ tools: [counted] });
    const { callId } = connection.call(ID('counted'), { to: 3 });
    const { payload } = await connection.result(callId);
    expect(payload).toEqual({
      call_id: callId,
      status: 'succeeded',
      // What was approved is what the tool gets: the schema's default fills in nothing.
      output: { sum: 4 },
      started_at: expect.any(String) as string,
      finished_at: expect.any(String) as string,
    });
  });
  it.each<[string, unknown, object]>([
    ['a wrong type', { to: 'three' }, { path: '/to', keyword: 'type' }],
    ['a missing property', {}, { path: '', keyword: 'required' }],
    ['one too many', { to: 1, secret: 'x' }, { path: '', keyword: 'additionalProperties' }],
    ['no object', [1], {}],
    ['nothing', undefined, {}],
  ])('seed 004 §4.3.1: input is validated: %s is tool.invalid_input', async (_, input, details) => {
    const { connection } = await attached({ tools: [counted] });
    const { callId } = connection.call(ID('counted'), input);
    const { payload } = await connection.result(callId);
    expect(payload).toMatchObject({ status: 'failed', error: { code: 'tool.invalid_input' } });
    expect(payload.error.details ?? {}).toMatchObject(details);
  });
  it.each<[string, () => object | void, string]>([
    ['not its schema', () => ({ sum: 'x' }), 'tool.invalid_output'],
    ['a list', () => [1], 'tool.invalid_output'],
    ['a cycle', () => cycle(), 'tool.invalid_output'],
    [
      'a whole number that may have been another',
      () => ({ sum: 1, id: 2 ** 60 }),
      'tool.invalid_output',
    ],
    ['no finite number', () => ({ sum: 1, all: [{ n: NaN }] }), 'tool.invalid_output'],
    // Core would end the connection at such a frame.
    ['more levels than a frame may have', () => nested(63), 'tool.invalid_output'],
    ['too large', () => ({ sum: 1, all: 'x'.repeat(3_000) }), 'tool.output_too_large'],
  ])('seed 004 §7.3: output is checked and bounded: %s', async (_, give, code) => {
    const output = { type: 'object', properties: { sum: { type: 'integer' } } } as const;
    const run = () => give() as { sum: number };
    const gives = tool({ name: 'gives', description: 'Gives.', input: EMPTY, output, run });
    const { connection } = await attached({ tools: [gives], limits: { maxOutputBytes: 2_048 } });
    const { callId } = connection.call(ID('gives'), {});
    expect((await connection.result(callId)).payload).toMatchObject({
      status: 'failed',
      error: { code },
    });
  });
  it('seed 004 §2.2: an output larger than a frame may be ends as a structured error', async () => {
    const gives = running('gives', () => ({ all: 'x'.repeat(20_000) }));
    const { connection } = await attached({ tools: [gives] }, { max_frame_bytes: 10_000 });
    const { callId } = connection.call(ID('gives'), {});
    const { payload } = await connection.result(callId);
    expect(payload).toMatchObject({ error: { code: 'tool.output_too_large' } });
  });
  it('seed 004 §7.4: what a ToolError says is sent; of any other error only its name', async () => {
    const says = running('says', () => {
      const details = { id: 7 };
      throw new ToolError('notebook.not_found', 'No such note.', { retryable: true, details });
    });
    const leaks = running('leaks', () => {
      throw new TypeError(`cannot open /home/me with ${TOKEN}`);
    });
    const { connection } = await attached({ tools: [says, leaks] });
    const said = connection.call(ID('says'), {});
    expect((await connection.result(said.callId)).payload.error).toEqual({
      ...{ code: 'notebook.not_found', message: 'No such note.', where: 'agent.tool' },
      ...{ retryable: true, details: { id: 7 } },
    });
    const leaked = connection.call(ID('leaks'), {});
    expect((await connection.result(leaked.callId)).payload.error).toEqual({
      ...{ code: 'tool.failed', message: 'The tool failed.', where: 'agent.tool' },
      ...{ retryable: false, details: { error: 'TypeError' } },
    });
  });
  it('what is as deep as a frame may be is sent', async () => {
    const gives = running('gives', ({ stream }) => {
      stream.partial(nested(61));
      stream.partial(nested(62));
      return nested(62);
    });
    const says = running('says', () => {
      throw new ToolError('notebook.deep', 'Deep.', { details: nested(61) as JsonMap });
    });
    const { connection } = await attached({ tools: [gives, says] });
    const given = connection.call(ID('gives'), {});
    expect((await connection.result(given.callId)).payload.output).toEqual(nested(62));
    const said = connection.call(ID('says'), {});
    expect((await connection.result(said.callId)).payload.error.details).toEqual(nested(61));
    const chunks = connection.received.filter(({ type }) => type === 'agent.tool.stream');
    expect(chunks.map(({ payload }) => payload.data)).toEqual([
      { json: nested(61) },
      { text: expect.stringContaining('more than 61 levels') as unknown },
    ]);
  });
  it.each<[string, unknown]>([
    ['a BigInt', { id: 7n }],
    ['a cycle', cycle()],
    ['no finite number', { share: NaN }],
    ['a whole number that may have been another', { id: 2 ** 60 }],
    ['a list', [1]],
    ['a date', new Date(0)],
    ['more than a frame may hold', { all: 'x'.repeat(20_000) }],
    ['more levels than a frame may have', nested(62)],
  ])('seed 004 §3.3: details that cannot be sent do not cost the error: %s', async (_, details) => {
    const says = running('says', () => {
      const options = { retryable: true, details: details as JsonMap };
      throw new ToolError('notebook.not_found', 'No such note.', options);
    });
    const { connection } = await attached({ tools: [says] }, { max_frame_bytes: 10_000 });
    const { callId } = connection.call(ID('says'), {});
    const { payload } = await connection.result(callId);
    expect(payload).toMatchObject({ status: 'failed' });
    expect(payload.error).toEqual({
      ...{ code: 'notebook.not_found', message: 'No such note.', where: 'agent.tool' },
      retryable: true,
    });
    // The author finds out why.
    const [chunk] = connection.received.filter(({ type }) => type === 'agent.tool.stream');
    expect(chunk?.payload).toMatchObject({
      ...{ call_id: callId, channel: 'log' },
      data: {
        text: expect.stringMatching(/^The details of notebook\.not_found are left out/) as string,
      },
    });
  });
  it('the code of a ToolError is namespaced', () => {
    expect(() => new ToolError('Oops', 'x')).toThrow(TypeError);
  });
  it('a tool that is not there, another agent’s, and too many at once', async () => {
    const { connection } = await attached({ tools: [waits], limits: { maxInflightCalls: 1 } });
    const codes: string[] = [];
    const code = async (toolId: string) => {
      const { payload } = await connection.result(connection.call(toolId, {}).callId);
      codes.push(payload.error.code);
    };
    await code(ID('nothing'));
    await code('com.example.other/waits');
    connection.call(ID('waits'), {});
    await code(ID('waits'));
    expect(codes).toEqual(['tool.not_found', 'tool.not_found', 'tool.overloaded']);
  });
  it('seed 004 §4.3.1: a repeated call_id is refused without a second result', async () => {
    const { connection } = await attached({ tools: [finishes] });
    const { callId } = connection.call(ID('finishes'), {});
    const again = { payload: { call_id: callId } };
    connection.call(ID('finishes'), {}, again);
    const refused = await connection.next('agent.error');
    expect(refused).toMatchObject({ error: { code: 'protocol.unexpected_message' } });
    connection.send('core.tool.cancel', { call_id: callId });
    await connection.result(callId);
    connection.call(ID('finishes'), {}, again);
    await connection.next('agent.error');
    const results = connection.received.filter(({ type }) => type === 'agent.tool.result');
    expect(results).toHaveLength(1);
  });
  it('seed 004 §3.3: a call without call_id is answered by a structured error', async () => {
    const { connection } = await attached({ tools: [waits] });
    const sent = connection.send('core.tool.call', { tool_id: ID('waits') }, { request_id: 'r' });
    await expect(connection.next('agent.error')).resolves.toMatchObject({
      ...{ in_reply_to: sent.id, request_id: 'r' },
      error: { code: 'protocol.invalid_message' },
    });
  });
  it('seed 004 §2.3: many calls at once, each with its own result', async () => {
    const { connection } = await attached({ tools: [counted] });
    const asked = Array.from({ length: 256 }, (_, to) =>
      connection.call(ID('counted'), { to: to + 1 }),
    );
    const results = await Promise.all(
      asked.map(async ({ callId }) => {
        const isOurs = ({ type, payload }: Message) =>
          type === 'agent.tool.result' && payload.call_id === callId;
        await expect.poll(() => connection.received.filter(isOurs).length).toBe(1);
        return (connection.received.find(isOurs) as Message).payload.output.sum;
      }),
    );
    expect(results).toEqual(asked.map((_, to) => to + 2));
  });
});

describe('a stream', () => {
  it('seed 004 §4.3.2: seq from 1 by one, over all channels, each with its form', async () => {
    const speaks = running('speaks', ({ stream }) => {
      stream.stdout('a');
      stream.stderr('b');
      stream.log('c');
      stream.status('d');
      stream.partial({ page: 1 });
      stream.partial({ page: NaN });
    });
    const { connection } = await attached({ tools: [speaks] });
    const { callId } = connection.call(ID('speaks'), {});
    await connection.result(callId);
    const chunks = connection.received.filter(({ type }) => type === 'agent.tool.stream');
    expect(chunks.map(({ payload }) => payload)).toEqual([
      { call_id: callId, seq: 1, channel: 'stdout', data: { text: 'a' } },
      { call_id: callId, seq: 2, channel: 'stderr', data: { text: 'b' } },
      { call_id: callId, seq: 3, channel: 'log', data: { text: 'c' } },
      { call_id: callId, seq: 4, channel: 'status', data: { text: 'd' } },
      { call_id: callId, seq: 5, channel: 'partial_result', data: { json: { page: 1 } } },
      {
        call_id: callId,
        seq: 6,
        channel: 'log',
        data: { text: expect.stringContaining('a number that is not finite') as unknown },
      },
    ]);
  });
  it('seed 004 §7.3: a stream is bounded; its last message says so and is `done`', async () => {
    const speaks = running('speaks', ({ stream }) => {
      for (let n = 0; n < 100; n += 1) stream.stdout(`line ${n}`);
    });
    const { connection } = await attached({ tools: [speaks], limits: { maxStreamMessages: 4 } });
    const { callId } = connection.call(ID('speaks'), {});
    expect((await connection.result(callId)).payload.status).toBe('succeeded');
    const chunks = connection.received.filter(({ type }) => type === 'agent.tool.stream');
    expect(chunks.map(({ payload }) => [payload.seq, payload.channel, payload.done])).toEqual([
      [1, 'stdout', undefined],
      [2, 'stdout', undefined],
      [3, 'stdout', undefined],
      [4, 'log', true],
    ]);
  });
  it('long text is split between characters, and what a frame cannot hold is dropped', async () => {
    const speaks = running('speaks', ({ stream }) => {
      stream.stdout('ab😀cd😀');
      stream.partial({ all: 'x'.repeat(20_000) });
    });
    const limits = { maxTextChars: 3 };
    const { connection } = await attached({ tools: [speaks], limits }, { max_frame_bytes: 10_000 });
    const { callId } = connection.call(ID('speaks'), {});
    await connection.result(callId);
    const chunks = connection.received.filter(({ type }) => type === 'agent.tool.stream');
    const texts = chunks.map(({ payload }) => payload.data.text);
    expect(texts).toEqual(['ab', '😀c', 'd😀', 'Further output of this call was dropped.']);
  });
  it('seed 004 §4.3.3: nothing is streamed behind the result', async () => {
    let late: (() => void) | undefined;
    const speaks = running('speaks', ({ stream }) => {
      late = () => stream.stdout('late');
    });
    const { connection } = await attached({ tools: [speaks] });
    await connection.result(connection.call(ID('speaks'), {}).callId);
    late?.();
    connection.send('core.ping', {});
    await connection.next('agent.pong');
    expect(connection.received.some(({ type }) => type === 'agent.tool.stream')).toBe(false);
  });
});

describe('an end before the end', () => {
  it('seed 004 §4.4: cancel is acknowledged, then the result is canceled', async () => {
    const { connection } = await attached({ tools: [waits] });
    const { callId } = connection.call(ID('waits'), {});
    connection.send('core.tool.cancel', { call_id: callId, reason: 'enough' });
    const acknowledged = await connection.next('agent.tool.cancel_ack');
    expect(acknowledged.payload).toEqual({ call_id: callId, accepted: true });
    expect((await connection.result(callId)).payload).toMatchObject({
      status: 'canceled',
      error: { code: 'tool.canceled' },
    });
  });
  it('seed 004 §4.4.2: a cancel for a call that is not in flight is not accepted', async () => {
    const { connection } = await attached({ tools: [waits] });
    connection.send('core.tool.cancel', { call_id: 'unknown' }, { request_id: 'r-9' });
    const { payload, request_id } = await connection.next('agent.tool.cancel_ack');
    expect({ payload, request_id }).toMatchObject({
      payload: { call_id: 'unknown', accepted: false },
      request_id: 'r-9',
    });
  });
  it('seed 004 §4.4.1: a tool that ends in spite of its cancellation has succeeded', async () => {
    const { connection } = await attached({ tools: [finishes] });
    const { callId } = connection.call(ID('finishes'), {});
    connection.send('core.tool.cancel', { call_id: callId });
    const { payload } = await connection.result(callId);
    expect(payload).toMatchObject({ status: 'succeeded', output: { finished: true } });
  });
  it('seed 004 §4.4.1: a tool that does not end by the deadline is abandoned', async () => {
    const { connection } = await attached({ tools: [deaf] });
    const { callId } = connection.call(ID('deaf'), {});
    connection.send('core.tool.cancel', { call_id: callId, deadline_ms: 40 });
    expect((await connection.result(callId)).payload).toMatchObject({
      status: 'canceled',
      error: { code: 'tool.canceled', details: { stopped: false } },
    });
  });
  it('seed 004 §4.3.3: a canceled tool may give a more specific code', async () => {
    const specific = running('specific', async ({ signal }) => {
      await once(signal, 'abort');
      throw new ToolError('report.half_done', 'Half of the report is written.');
    });
    const { connection } = await attached({ tools: [specific] });
    const { callId } = connection.call(ID('specific'), {});
    connection.send('core.tool.cancel', { call_id: callId });
    expect((await connection.result(callId)).payload).toMatchObject({
      status: 'canceled',
      error: { code: 'report.half_done' },
    });
  });
  it('seed 004 §4.3.1: timeout_ms ends the call as failed, retryable', async () => {
    const { connection } = await attached({ tools: [waits] });
    const { callId } = connection.call(ID('waits'), {}, { payload: { timeout_ms: 20 } });
    expect((await connection.result(callId)).payload).toMatchObject({
      status: 'failed',
      error: { code: 'tool.timeout', retryable: true },
    });
  });
});

function cycle(): object {
  const one: { self?: object } = {};
  one.self = one;
  return one;
}

function nested(levels: number): object {
  return levels === 1 ? {} : { in: nested(levels - 1) };
}
