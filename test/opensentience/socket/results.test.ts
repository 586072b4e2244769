// Content that is no JSON, no object, or nested too deep: its call, or its piece, fails alone, and the session goes on (seed 004
// §2.2, §4.3.3).
import { afterEach, expect, it } from 'vitest';
import {
  AGENT,
  callOf,
  frameOf,
  message,
  resultText,
  startStage,
  toolOf,
  type RawAgent,
  type Stage,
} from '../../support/opensentience/wire.ts';

let stage: Stage;
afterEach(() => stage?.stop());

const ECHO = `${AGENT}/echo`;

async function joined(): Promise<RawAgent> {
  stage = await startStage();
  const agent = stage.agent();
  await agent.join();
  return agent;
}

/** The end of a call whose result has this text as its output. */
async function answering(agent: RawAgent, output: string): Promise<unknown> {
  const ending = stage.session().call(callOf(ECHO));
  agent.write(resultText(await agent.next('core.tool.call'), output));
  return ending;
}

/** JSON of so many levels. */
function nested(levels: number): string {
  return `${'{"in":'.repeat(levels - 1)}{}${'}'.repeat(levels - 1)}`;
}

async function isAlive(agent: RawAgent): Promise<void> {
  await expect(answering(agent, '{"text":"NaN"}')).resolves.toEqual({ text: 'NaN' });
  expect(stage.kinds()).not.toContain('session.closed');
}

const NO_NUMBER = 'is NaN or infinite';
it.each([
  ['NaN', '{"mean":NaN}', '/mean', NO_NUMBER],
  ['Infinity', '{"of":[1,{"max":Infinity}]}', '/of/1/max', NO_NUMBER],
  ['-Infinity', '{"text":"NaN, \\"NaN","min":-Infinity}', '/min', NO_NUMBER],
  ['a level too many', nested(63), '/in'.repeat(62), 'is nested too deep'],
  [
    '20,000 levels',
    `{"of":[${nested(20_000)},1]}`,
    `/of/0${'/in'.repeat(60)}`,
    'is nested too deep',
  ],
  ['NaN and too many levels', `{"of":NaN,"as":${nested(70)}}`, '/of', NO_NUMBER],
])(
  '[I103] an output with %s fails its call alone, with its place',
  async (_, output, pointer, why) => {
    const agent = await joined();
    await expect(answering(agent, output)).rejects.toMatchObject({
      code: 'tool_invalid_output',
      sent: true,
      details: { pointer, final: true, happened: true },
      message: expect.stringContaining(`${pointer} ${why}`) as unknown,
    });
    await isAlive(agent);
  },
);
it('an output as deep as a frame may be is taken', async () => {
  const agent = await joined();
  await expect(answering(agent, nested(62))).resolves.toEqual(JSON.parse(nested(62)));
});
it.each(['NaN', 'null', '[1]'])(
  'of a result that is %s it is known that it happened',
  async (output) => {
    const agent = await joined();
    await expect(answering(agent, output)).rejects.toMatchObject({
      code: 'tool_invalid_output',
      details: { pointer: '', final: true, happened: true },
    });
  },
);
it.each(['{"a":-NaN}', '{"a":NaN0}', '{"a":1Infinity}', '{NaN:1}', '{"a":nan}', '{"a":NaN'])(
  'seed 004 §2.2: a result of %s is no JSON in another way, and ends the session',
  async (output) => {
    const agent = await joined();
    await expect(answering(agent, output)).rejects.toMatchObject({
      ...{ code: 'agent_unavailable', sent: true },
    });
    expect(stage.kinds()).toContain('frame.not_json');
  },
);
it.each([
  ['NaN', '{"mean":NaN}'],
  ['too many levels', nested(70)],
])(
  'a piece of progress with %s is dropped, and its call and the next piece are not',
  async (_, text) => {
    const agent = await joined();
    const shown: unknown[] = [];
    const onProgress = (progress: unknown) => void shown.push(progress);
    const ending = stage.session().call(callOf(ECHO, { onProgress }));
    const call = await agent.next('core.tool.call');
    const piece = (seq: number, json: object) =>
      message('agent.tool.stream', {
        ...{ call_id: call.payload.call_id, seq, channel: 'partial_result' },
        data: { json },
      } as Parameters<typeof message<'agent.tool.stream'>>[1]);
    agent.write(frameOf(piece(1, {}), ['"json":{}', `"json":${text}`]));
    agent.send(piece(2, { mean: 1 }));
    agent.answer(call);
    await expect(ending).resolves.toEqual({});
    expect(shown).toEqual([{ channel: 'partial_result', text: '{"mean":1}' }]);
    expect(stage.kinds()).toContain('stream.inexact');
    await isAlive(agent);
  },
);
it.each([
  ['NaN', '{"load":NaN}'],
  ['too many levels', nested(70)],
])('a heartbeat whose details hold %s is a sign of life', async (_, text) => {
  const agent = await joined();
  const beat = { session_id: stage.session().sessionId, uptime_ms: 7, inflight_calls: 0 };
  const heartbeat = message('agent.heartbeat', { ...beat, status: 'degraded', details: {} });
  agent.write(frameOf(heartbeat, ['"details":{}', `"details":${text}`]));
  await isAlive(agent);
  expect(stage.session().view()).toMatchObject({ health: 'degraded', uptimeMs: 7 });
});
it.each([
  ['NaN', '{"load":NaN}'],
  ['too many levels', nested(70)],
])('an error whose details hold %s ends its call alone', async (_, text) => {
  const agent = await joined();
  const ending = stage.session().call(callOf(ECHO));
  const { id } = await agent.next('core.tool.call');
  const error = { code: 'tool.invalid_input', message: 'No.', details: {} };
  const said = message('agent.error', {}, { in_reply_to: id, error });
  agent.write(frameOf(said, ['"details":{}', `"details":${text}`]));
  await expect(ending).rejects.toMatchObject({
    code: 'tool_invalid_input',
    details: { final: true, reason: 'No.' },
  });
  await isAlive(agent);
});
it.each([
  ['NaN', '{"type":"object","maximum":NaN}', 'frame.not_json'],
  ['too many levels', nested(70), 'frame.too_deep'],
])('seed 004 §2.2: a registration with %s ends the session', async (_, schema, kind) => {
  const agent = await joined();
  const tools = [toolOf('other', { input_schema: {} })];
  const register = message('agent.tools.register', { tools });
  agent.write(frameOf(register, ['"input_schema":{}', `"input_schema":${schema}`]));
  await agent.ended;
  expect(stage.kinds()).toContain(kind);
});
