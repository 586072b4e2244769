// Results that are no JSON, or no object: the call fails alone, and the session goes on (seed 004 §2.2, §4.3.3).
import { afterEach, expect, it } from 'vitest';
import {
  AGENT,
  callOf,
  frameOf,
  message,
  resultText,
  startStage,
  type Stage,
} from '../../support/opensentience/wire.ts';

let stage: Stage;
afterEach(() => stage?.stop());

const ECHO = `${AGENT}/echo`;

it.each([
  ['{"mean":NaN}', '/mean'],
  ['{"of":[1,{"max":Infinity}]}', '/of/1/max'],
  ['{"text":"NaN, \\"NaN","min":-Infinity}', '/min'],
])('[I103] a result of %s fails its call alone, with its place', async (output, pointer) => {
  stage = await startStage();
  const agent = stage.agent();
  await agent.join();
  const ending = stage.session().call(callOf(ECHO));
  agent.write(resultText(await agent.next('core.tool.call'), output));
  await expect(ending).rejects.toMatchObject({
    code: 'tool_invalid_output',
    sent: true,
    details: { pointer, final: true, happened: true },
    message: expect.stringContaining(`${pointer} is NaN or infinite`) as unknown,
  });
  const next = stage.session().call(callOf(ECHO));
  agent.write(resultText(await agent.next('core.tool.call'), '{"text":"NaN"}'));
  await expect(next).resolves.toEqual({ text: 'NaN' });
  expect(stage.kinds()).not.toContain('session.closed');
});
it.each(['NaN', 'null', '[1]'])(
  'of a result that is %s it is known that it happened',
  async (output) => {
    stage = await startStage();
    const agent = stage.agent();
    await agent.join();
    const ending = stage.session().call(callOf(ECHO));
    agent.write(resultText(await agent.next('core.tool.call'), output));
    await expect(ending).rejects.toMatchObject({
      code: 'tool_invalid_output',
      details: { pointer: '', final: true, happened: true },
    });
  },
);
it.each(['{"a":-NaN}', '{"a":NaN0}', '{"a":1Infinity}', '{NaN:1}', '{"a":nan}', '{"a":NaN'])(
  'seed 004 §2.2: a result of %s is no JSON in another way, and ends the session',
  async (output) => {
    stage = await startStage();
    const agent = stage.agent();
    await agent.join();
    const ending = stage.session().call(callOf(ECHO));
    agent.write(resultText(await agent.next('core.tool.call'), output));
    await expect(ending).rejects.toMatchObject({ code: 'agent_unavailable', sent: true });
    expect(stage.kinds()).toContain('frame.not_json');
  },
);
it('seed 004 §2.2: what is no result ends the session where it holds NaN', async () => {
  stage = await startStage();
  const agent = stage.agent();
  await agent.join();
  const beat = { session_id: stage.session().sessionId, uptime_ms: 1, inflight_calls: 0 };
  const heartbeat = message('agent.heartbeat', { ...beat, status: 'ok' });
  agent.write(frameOf(heartbeat, ['"uptime_ms":1', '"uptime_ms":NaN']));
  await agent.ended;
  expect(stage.kinds()).toContain('frame.not_json');
});
