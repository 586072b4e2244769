// What a caller may ask of agents, and what discovery says of it: a model for each, escalation as the operator set it,
// keys of `configurable` that nobody reads (RFC 0077 §A, §B; RFC 0002 §D, §F; run-options.md).
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createModels } from '../../src/adapters/models/index.ts';
import { discoveryDocument } from '../../src/facade/routes/discovery.ts';
import type { FacadeConfig } from '../../src/facade/deps.ts';
import type { CatalogAgent } from '../../src/ports/catalog.ts';
import type { Models } from '../../src/ports/models.ts';
import type { RunCreateResponse } from '../../schemas/types.generated.ts';
import { validate } from '../../src/wire/validators.ts';
import { agentNode, chain, node, pinned } from '../support/definitions.ts';
import {
  catalogOf,
  DEFINITIONS,
  KNOWN_SECRET,
  refusals,
  startFaultHost,
  type FaultHost,
} from './fault-host.ts';

const LONELY = 'local.test.desk.lonely';
const SCRIPTED = 'local.test.desk.scripted';
const SCRIPTS = { [SCRIPTED]: { turns: [{ final: { decision: 'done', confidence: 1 } }] } };

const agentOf = (agentId: string): CatalogAgent => ({
  manifest: { agentId, persona: 'Clerk', modelClass: 'general', systemPrompt: 'Decide.' },
  packName: 'local.test.desk',
  packVersion: '0.0.0',
  pinned: pinned(agentId),
  degraded: [],
});
const CATALOG = catalogOf(
  [
    ...DEFINITIONS,
    chain('lonely', [agentNode('desk', LONELY)]),
    chain('resting', [agentNode('desk', LONELY, { disabled: true }), node('end', 'core.noop')]),
    chain('played', [agentNode('desk', SCRIPTED)]),
    chain('seed-ref', [
      node('desk', 'core.agent', {
        agent: { agentId: SCRIPTED, modelClass: 'writing', agentSharing: 'isolated' },
      }),
    ]),
    chain('own-keys', [node('only', 'core.noop')], {
      configurableSchema: { type: 'object', properties: { region: { type: 'string' } } },
    }),
    chain('ordered', [node('only', 'core.noop')], {
      variables: [{ name: 'order', type: 'object' }],
    }),
    chain('own-temperature', [node('only', 'core.noop')], {
      configurableSchema: { type: 'object', properties: { temperature: { type: 'number' } } },
    }),
  ],
  [agentOf(LONELY), agentOf(SCRIPTED)],
);

let host: FaultHost;
/** What the one host of this file is made of in this test: read anew with each request. */
let models: Models;
const config: { -readonly [Name in keyof FacadeConfig]?: FacadeConfig[Name] } = {};

beforeAll(async () => {
  host = await startFaultHost({}, (deps) => {
    Object.assign(config, deps.config);
    return {
      catalog: CATALOG,
      config: config as FacadeConfig,
      models: {
        providers: (agentIds) => models.providers(agentIds),
        untaken: (provider) => models.untaken(provider),
        isLive: () => models.isLive(),
        choose: (agent, asked) => models.choose(agent, asked),
      },
    };
  });
});
afterAll(() => host.stop());

const given = (
  has: Parameters<typeof createModels>[0] = {},
  set: Partial<FacadeConfig> = {},
): void => {
  models = createModels(has);
  Object.assign(config, { testMode: false, escalation: true }, set);
  host.temporal.started.length = 0;
  host.lines.length = 0;
};

const refused = refusals(() => host);
const create = (body: Record<string, unknown>) => host.api<RunCreateResponse>('/v1/runs', { body });
const warningsOf = async (workflowId: string, configurable: object) => {
  const answer = await create({ workflowId, configurable });
  expect(answer.status).toBe(201);
  expect(validate.runCreateResponse(answer.body)).toMatchObject({ ok: true });
  return answer.body.warnings;
};

describe('silence is never consent: an agent without a model', () => {
  const noModel = { status: 422, code: 'model_unavailable' };

  it.each([
    ['of a workflow', { workflowId: 'lonely' }],
    ['by its id', { agentId: LONELY }],
  ])('%s is refused when the run is asked for, by name', async (_what, body) => {
    given({ scripts: SCRIPTS });
    const { body: answer } = await refused('/v1/runs', { body }, noModel);
    expect(answer.details).toMatchObject({ agentId: LONELY });
    expect(host.temporal.started).toEqual([]);
  });

  it('is no matter where its node is disabled, where it has a script, where a provider is there', async () => {
    given({ scripts: SCRIPTS });
    for (const workflowId of ['resting', 'played'])
      expect((await create({ workflowId })).status).toBe(201);
    given({ openai: { apiKey: 'k' } });
    expect((await create({ workflowId: 'lonely' })).status).toBe(201);
  });

  it('a caller cannot name the scripted provider instead of the live one', async () => {
    given({ scripts: SCRIPTS, openai: { apiKey: 'k' } });
    for (const configurable of [{ ai: { provider: 'scripted' } }, { 'ai.provider': 'scripted' }]) {
      const body = { workflowId: 'played', configurable };
      const expected = { status: 400, code: 'validation_error' };
      const { body: answer } = await refused('/v1/runs', { body }, expected);
      expect(answer.details).toMatchObject({ key: 'ai.provider', supported: ['openai'] });
    }
  });
});

it('RFC 0002 §A: a ref in the words of the RFC is taken, and shown in the published ones', async () => {
  given({ scripts: SCRIPTS });
  expect((await create({ workflowId: 'seed-ref' })).status).toBe(201);
  const [desk] = host.temporal.started[0]?.definition.nodes ?? [];
  expect(desk?.agent).toEqual({ agentId: SCRIPTED, modelClass: 'chat' });
});

describe('RFC 0077 §A, RFC 0002 §D: discovery says what is so', () => {
  const discovered = async () =>
    (await host.api<{ agents: Record<string, unknown> }>('/.well-known/openwop')).body;

  it('scripts are no live runtime; refs of prompts are not resolved; handoffs are told', async () => {
    given({ scripts: SCRIPTS });
    expect(await discovered()).toMatchObject({
      agents: { supported: true, liveRuntime: { supported: false }, handoffEvents: true },
      aiProviders: { supported: [] },
      prompts: { supported: false, observability: 'hashed' },
    });
  });

  it('a live provider is, and so is test mode', async () => {
    given({ openai: { apiKey: 'k' } });
    const live = { supported: true, confidenceEscalation: true };
    expect((await discovered()).agents.liveRuntime).toMatchObject(live);
    given({}, { testMode: true });
    expect((await discovered()).agents.liveRuntime).toMatchObject(live);
  });

  it('the rounds of agents are told where there is one; gates ask once, and every host has them', async () => {
    given();
    const { catalog } = host.deps;
    const told = (of: Pick<FaultHost['deps'], 'catalog'>) =>
      discoveryDocument({ ...host.deps, ...of });
    expect(told({ catalog })).toMatchObject({
      supportedEnvelopes: ['clarification.request'],
      limits: { clarificationRounds: 3, schemaRounds: 2, envelopesPerTurn: 1 },
    });
    const alone = told({ catalog: catalogOf(DEFINITIONS) });
    expect(alone).toMatchObject({
      supportedEnvelopes: ['clarification.request'],
      limits: { clarificationRounds: 1, schemaRounds: 0, envelopesPerTurn: 0 },
    });
    expect(validate.capabilities(alone)).toMatchObject({ ok: true });
  });

  it('a provider for the demo’s agents alone is none that a caller may name for any', async () => {
    given({ openai: { apiKey: 'k' }, scriptedByCaller: new Set([SCRIPTED]) });
    expect(await discovered()).toMatchObject({ aiProviders: { supported: ['openai'] } });
    given({ scriptedByCaller: 'all' });
    expect(await discovered()).toMatchObject({ aiProviders: { supported: ['scripted'] } });
  });

  it('escalation follows the operator, and no caller sets it', async () => {
    given({ scripts: SCRIPTS }, { testMode: true, escalation: false });
    expect(await discovered()).toMatchObject({
      agents: { liveRuntime: { confidenceEscalation: false } },
    });
    for (const escalation of [true, false])
      await create({ workflowId: 'played', configurable: { escalation, policy: { escalation } } });
    const policies = host.temporal.started.map(({ policy }) => policy.escalation);
    expect(policies).toEqual([false, false]);
  });
});

describe('run-options.md: configurable is open: a key that nobody reads is accepted and told', () => {
  it('with the nearest known key, in the answer and in the log', async () => {
    given();
    const warnings = await warningsOf('noop', { escalationTreshold: 0.9, recursionLimit: 5 });
    expect(warnings).toEqual([
      {
        code: 'configurable_unknown_key',
        key: 'escalationTreshold',
        nearest: 'escalationThreshold',
        message: expect.stringContaining('Did you mean "escalationThreshold"?') as unknown,
      },
    ]);
    const line = host.lines.find(({ message }) => message.includes('no effect'));
    expect(line?.fields).toMatchObject({ warnings: [warnings?.[0]?.message] });
  });

  it('[I116] and where a secret was masked, by its place alone', async () => {
    given();
    const secret = 'sk-kosice-warehouse-02';
    const answer = await create({
      ...{ workflowId: 'ordered', inputs: { order: { by: ['me', secret] }, [secret]: 1 } },
      ...{ tags: ['night', secret], metadata: { why: secret }, sessionTitle: `of ${secret}` },
      configurable: { note: secret, ai: { credentialRef: secret } },
    });
    expect(answer.status).toBe(201);
    expect(validate.runCreateResponse(answer.body)).toMatchObject({ ok: true });
    const masked = answer.body.warnings?.filter(({ code }) => code === 'value_masked');
    expect(masked?.map(({ key }) => key)).toEqual([
      ...['inputs/order/by/1', 'configurable/note', 'tags/1', 'metadata/why', 'sessionTitle'],
    ]);
    expect(masked?.[0]?.message).toMatch(/^inputs\/order\/by\/1 looks like it holds a secret/);
    expect(JSON.stringify([answer.body, host.lines])).not.toContain('warehouse');
  });

  it('[I116] but nothing of an input that the workflow does not declare: it is dropped', async () => {
    given();
    const secret = 'sk-kosice-warehouse-02';
    const inputs = { other: secret, order: { at: 1, by: 'me' } };
    const answer = await create({ workflowId: 'ordered', inputs });
    expect(answer.status).toBe(201);
    expect(answer.body).not.toHaveProperty('warnings');
  });

  it.each([
    ['known keys', 'noop', { temperature: 1, ai: { model: 'm' }, 'ai.model': 'm' }, undefined],
    ['keys of the workflow’s schema', 'own-keys', { region: 'eu' }, undefined],
    ['a key like one of the workflow’s', 'own-keys', { regoin: 'eu' }, [['regoin', 'region']]],
    ['a key below ai', 'noop', { ai: { modle: 'm' } }, [['ai.modle', 'ai.model']]],
    ['a key like none', 'noop', { flavour: 'mint' }, [['flavour', undefined]]],
    ['a key of a capability that is not here', 'noop', { budget: {} }, [['budget', undefined]]],
  ])('%s', async (_name, workflowId, configurable, expected) => {
    given();
    const warnings = await warningsOf(workflowId, configurable);
    expect(warnings?.map(({ key, nearest }) => [key, nearest])).toEqual(expected);
  });

  it('the same answer comes again with the same Idempotency-Key', async () => {
    given();
    const request = {
      body: { workflowId: 'noop', configurable: { recursionLimits: 3 } },
      headers: { 'idempotency-key': 'warned' },
    };
    const [first, again] = [
      await host.api('/v1/runs', request),
      await host.api('/v1/runs', request),
    ];
    expect(first.body.warnings).toHaveLength(1);
    expect(again.body).toEqual(first.body);
  });

  it('bounded in number and length, and without secrets', async () => {
    given();
    const many = Object.fromEntries(Array.from({ length: 40 }, (_, at) => [`own${at}`, at]));
    const warnings = await warningsOf('noop', {
      [KNOWN_SECRET]: 1,
      ['x'.repeat(5000)]: 1,
      ...many,
    });
    expect(warnings).toHaveLength(16);
    // One of the masked key; 14 keys are named of 42.
    expect(warnings?.at(-1)?.message).toContain('And 28 more');
    const text = JSON.stringify(warnings);
    expect(text.length).toBeLessThan(8_000);
    expect(text + JSON.stringify(host.lines)).not.toContain(KNOWN_SECRET);
  });
});

describe('run-options.md: options that a provider takes, and those that it does not', () => {
  const openai = { apiKey: 'k' };
  const anthropic = { apiKey: 'k' };
  const advertised = () => {
    const { configurable } = discoveryDocument(host.deps) as { configurable: object };
    expect(validate.capabilities(discoveryDocument(host.deps))).toMatchObject({ ok: true });
    return Object.keys(configurable);
  };

  it('advertised where some provider takes it, and nowhere else', () => {
    given({ anthropic });
    expect(advertised()).not.toContain('temperature');
    expect(advertised()).toContain('maxTokens');
    for (const has of [{ openai }, { openai, anthropic }, { scripts: SCRIPTS }]) {
      given(has);
      expect(advertised()).toContain('temperature');
    }
  });

  it('refused of a run whose provider does not take it, with those that do', async () => {
    const body = (more: object = {}) => ({
      workflowId: 'lonely',
      configurable: { temperature: 1, ...more },
    });
    const field = '/configurable/temperature';
    const expected = { status: 400, code: 'validation_error' };
    given({ anthropic });
    for (const asked of [body(), { ...body(), workflowId: undefined, agentId: LONELY }]) {
      const { body: answer } = await refused('/v1/runs', { body: asked }, expected);
      expect(answer.details).toEqual({
        ...{ field, key: 'temperature', provider: 'anthropic' },
        reason: 'is taken by no model of the provider anthropic',
      });
    }
    given({ openai, anthropic });
    const named = body({ 'ai.provider': 'anthropic' });
    const { body: answer } = await refused('/v1/runs', { body: named }, expected);
    expect(answer.details).toMatchObject({ field, provider: 'anthropic', supported: ['openai'] });
    expect(host.temporal.started).toEqual([]);
    expect((await create(body())).status).toBe(201);
    given({ anthropic, openai, provider: 'anthropic' });
    await refused('/v1/runs', { body: body() }, expected);
    expect((await create(body({ ai: { provider: 'openai' } }))).status).toBe(201);
  });

  it('of a run without an agent of its own: warned of, unless the workflow has the key itself', async () => {
    given({ anthropic });
    const [warning, ...others] = (await warningsOf('noop', { temperature: 1, maxTokens: 5 })) ?? [];
    expect(others).toEqual([]);
    expect(warning).toMatchObject({ code: 'configurable_without_effect', key: 'temperature' });
    expect(warning?.message).toContain('no model of the provider anthropic takes it');
    expect(await warningsOf('own-temperature', { temperature: 1 })).toBeUndefined();
  });
});

describe('run-options.md: types and ranges', () => {
  it('a key that only the host knows is refused in its words', async () => {
    given();
    const body = { workflowId: 'noop', configurable: { maxLoopIterations: 2.5 } };
    const expected = { status: 400, code: 'validation_error' };
    const { body: answer } = await refused('/v1/runs', { body }, expected);
    expect(answer.details).toEqual({
      ...{ field: '/configurable/maxLoopIterations', key: 'maxLoopIterations' },
      ...{ reason: 'must be a whole number', value: 2.5, min: 1, max: 1000 },
    });
  });

  it('advertised as they are checked', () => {
    given();
    expect(discoveryDocument(host.deps)).toMatchObject({
      configurable: {
        recursionLimit: { type: 'integer', min: 1 },
        runTimeoutMs: { type: 'integer' },
        maxTokens: { type: 'integer', max: 1_000_000 },
        temperature: { type: 'number' },
      },
    });
  });
});
