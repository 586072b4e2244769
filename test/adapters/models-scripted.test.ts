// The scripted model: deterministic turns, templates and faults.
import { describe, expect, test } from 'vitest';
import { createModels, SCRIPTED_MODEL } from '../../src/adapters/models/index.ts';
import { createScriptedModel } from '../../src/adapters/models/scripted.ts';
import { codeOf } from '../../src/rules/errors.ts';
import { wrapUntrusted } from '../../src/rules/untrusted.ts';
import type { ModelRequest, TranscriptItem } from '../../src/ports/models.ts';

const AGENT = 'local.test.desk.agent';
const CODING = { agentId: AGENT, modelClass: 'coding' };
const SCRIPT = { turns: [{ raw: 'said' }] };

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

  test('a turn has cases: the first that holds is played, else the turn itself', async () => {
    const when = (path: string, equals: unknown, raw: string) => ({ path, equals, turn: { raw } });
    const cases = [when('task.order.id', 'B', 'b'), when('task.order.id', 'A-1', 'a')];
    const { response } = await infer({ turns: [{ raw: 'none', cases }] }, [TASK]);
    expect(response.final).toBe('a');
    const missing = when('results.0.error', null, 'no error');
    expect((await infer({ turns: [{ raw: 'x', cases: [missing] }] }, [TASK])).response.final).toBe(
      'no error',
    );
    expect((await infer({ turns: [{ raw: 'x', cases: [cases[0]] }] }, [TASK])).response.final).toBe(
      'x',
    );
  });

  test('silence is never consent: an agent without a script decides nothing', async () => {
    const refusal = infer(undefined, [TASK]);
    await expect(refusal).rejects.toMatchObject({
      code: 'model_unavailable',
      details: { agentId: AGENT, retryable: false },
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
    expect(createModels({ scripts: { [AGENT]: SCRIPT } }).choose(CODING, {})).toEqual({
      provider: 'scripted',
      model: SCRIPTED_MODEL,
    });
    const models = createModels({
      openai: { apiKey: 'k', model: 'm', modelByClass: { coding: 'c' } },
    });
    expect(models.choose(CODING, {})).toEqual({ provider: 'openai', model: 'c' });
    expect(models.choose({ ...CODING, modelClass: 'general' }, {})).toMatchObject({ model: 'm' });
  });

  test.each([
    ['nothing', {}, false, []],
    ['scripts of the operator', { scripts: { [AGENT]: SCRIPT } }, false, []],
    ['a live provider', { openai: { apiKey: 'k' } }, true, ['openai']],
    ['test mode', { scriptedByCaller: 'all' as const }, false, ['scripted']],
    [
      'the demo beside a live provider',
      { openai: { apiKey: 'k' }, scriptedByCaller: new Set(['demo']) },
      ...([true, ['openai']] as const),
    ],
  ])('with %s: what is live, what a caller may name', (_name, config, isLive, providers) => {
    const models = createModels(config);
    expect([models.isLive(), models.providers()]).toEqual([isLive, providers]);
  });

  test('RFC 0077 §B step 1: an agent without a script has no model where none is configured', () => {
    const lonely = { agentId: 'local.test.desk.lonely', modelClass: 'general' };
    const models = createModels({ scripts: { [AGENT]: SCRIPT } });
    expect(codeOfThrow(() => models.choose(lonely, {}))).toBe('model_unavailable');
  });

  test('a caller names the scripted provider for the demo’s agents alone', () => {
    const scripts = { [AGENT]: SCRIPT, demo: SCRIPT };
    const models = createModels({ scripts, scriptedByCaller: new Set(['demo']) });
    const asked = { provider: 'scripted' };
    expect(models.choose({ agentId: 'demo', modelClass: 'general' }, asked)).toMatchObject(asked);
    expect(codeOfThrow(() => models.choose(CODING, asked))).toBe('model_not_configured');
    expect(models.providers(['demo'])).toEqual(['scripted']);
    expect(models.providers(['demo', AGENT])).toEqual([]);
    expect(models.providers()).toEqual([]);
  });

  test('an unknown provider is model_not_configured', () => {
    const models = createModels({});
    expect(codeOfThrow(() => models.choose(CODING, { provider: 'openai' }))).toBe(
      'model_not_configured',
    );
    expect(codeOfThrow(() => models.get('none'))).toBe('model_not_configured');
  });
});
