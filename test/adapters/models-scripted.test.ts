// The scripted model: deterministic turns, templates and faults.
import { describe, expect, test } from 'vitest';
import { createModels, SCRIPTED_MODEL } from '../../src/adapters/models/index.ts';
import { createScriptedModel } from '../../src/adapters/models/scripted.ts';
import { codeOf } from '../../src/core/errors.ts';
import { wrapUntrusted } from '../../src/core/untrusted.ts';
import type { ModelRequest, TranscriptItem } from '../../src/ports.ts';

const AGENT = 'local.test.desk.agent';

function codeOfThrow(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    return codeOf(error);
  }
  return 'nothing thrown';
}

function request(items: readonly TranscriptItem[], idempotencyKey = 'k'): ModelRequest {
  const base = { provider: 'scripted', model: SCRIPTED_MODEL, tools: [], outputSchema: {} };
  return { ...base, agentId: AGENT, items, idempotencyKey };
}

const TASK: TranscriptItem = {
  role: 'user',
  trusted: false,
  text: wrapUntrusted('{"order":{"id":"A-1"}}'),
};
const SAID: TranscriptItem = { role: 'assistant', text: 'said', calls: [] };

async function infer(script: unknown, items: readonly TranscriptItem[], key?: string) {
  const pieces: string[] = [];
  const model = createScriptedModel(script === undefined ? {} : { [AGENT]: script });
  const response = await model.infer(request(items, key), {
    signal: new AbortController().signal,
    onReasoning: (piece) => pieces.push(piece),
  });
  return { response, pieces };
}

describe('the provider scripted', () => {
  test('the turn is the number of assistant items; the last one stays', async () => {
    const script = { turns: [{ raw: 'a' }, { raw: 'b' }] };
    const finals = [[], [SAID], [SAID, SAID]].map(
      async (items) => (await infer(script, items)).response.final,
    );
    expect(await Promise.all(finals)).toEqual(['a', 'b', 'b']);
  });

  test('templates read task, results and answers; one alone gives the value itself', async () => {
    const items: TranscriptItem[] = [
      TASK,
      SAID,
      {
        role: 'tool',
        callId: 'c',
        toolId: 'demo:x',
        text: wrapUntrusted('{"total":12}', 'demo:x'),
      },
      SAID,
      { role: 'user', trusted: false, text: wrapUntrusted('{"q":"yes"}') },
    ];
    const decision = {
      whole: '{{task.order}}',
      total: '{{results.0.total}}',
      none: '{{task.nothing}}',
    };
    const script = {
      turns: [
        {
          reasoning: 'Order {{task.order.id}}: {{answers.q}}{{task.nothing}}',
          final: { decision },
        },
      ],
    };
    const { response } = await infer(script, items);
    expect(response.reasoning).toBe('Order A-1: yes');
    expect(JSON.parse(response.final)).toEqual({
      decision: { whole: { id: 'A-1' }, total: 12, none: null },
    });
  });

  test.each([
    [{ chunks: ['a', 'bc'] }, ['a', 'bc']],
    [{ reasoning: 'abcde', chunkSize: 2 }, ['ab', 'cd', 'e']],
    [{ reasoning: 'two words' }, ['two ', 'words']],
  ])('pieces of %j', async (turn, expected) => {
    expect((await infer({ turns: [turn] }, [])).pieces).toEqual(expected);
  });

  test('an agent without a script decides on its own task', async () => {
    const { response } = await infer(undefined, [TASK]);
    expect(JSON.parse(response.final)).toEqual({
      decision: { task: { order: { id: 'A-1' } } },
      confidence: 1,
    });
  });

  test('a fault counts by logical call', async () => {
    const script = { turns: [{ raw: 'fine', fault: { kind: 'http', times: 2 } }] };
    const model = createScriptedModel({ [AGENT]: script });
    const options = { signal: new AbortController().signal, onReasoning: () => undefined };
    const outcome = (key: string) =>
      model.infer(request([], key), options).then(({ final }) => final, codeOf);
    expect([
      await outcome('a'),
      await outcome('a'),
      await outcome('b'),
      await outcome('a'),
    ]).toEqual(['model_unavailable', 'model_unavailable', 'model_unavailable', 'fine']);
  });

  test.each([
    [{}],
    [{ turns: [] }],
    [{ turns: [{ surprise: 1 }] }],
    [{ turns: [{ fault: { kind: 'fire', times: 1 } }] }],
    [null],
  ])('script %j is refused when loaded', (script) => {
    expect(codeOfThrow(() => createScriptedModel({ [AGENT]: script }))).toBe('config_invalid');
  });
});

describe('which model', () => {
  test('scripted without configuration, openai with it, by class', () => {
    expect(createModels({}).choose('general', {})).toEqual({
      provider: 'scripted',
      model: SCRIPTED_MODEL,
    });
    const models = createModels({
      openai: { apiKey: 'k', model: 'm', modelByClass: { coding: 'c' } },
    });
    expect(models.choose('coding', {})).toEqual({ provider: 'openai', model: 'c' });
    expect(models.choose('general', {})).toEqual({ provider: 'openai', model: 'm' });
    expect(models.providers()).toEqual(['openai', 'scripted']);
  });

  test('an unknown provider is model_not_configured', () => {
    const models = createModels({});
    expect(codeOfThrow(() => models.choose('general', { provider: 'openai' }))).toBe(
      'model_not_configured',
    );
    expect(codeOfThrow(() => models.get('none'))).toBe('model_not_configured');
  });
});
