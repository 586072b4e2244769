// The settings of the provider `anthropic` (README's table): what they make of it, and one sentence for each fault.
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { createModels } from '../../src/adapters/models/index.ts';
import { readConfig } from '../../src/app/config.ts';

const folder = mkdtempSync(join(tmpdir(), 'openwop-anthropic-'));
afterAll(() => rmSync(folder, { recursive: true }));

const KEY = 'sk-ant-hunter2-hunter2';

function keyFile(mode: number): string {
  const path = join(folder, `key-${mode}`);
  writeFileSync(path, `${KEY}\n`);
  chmodSync(path, mode);
  return path;
}

function faultsOf(env: Record<string, string>): readonly string[] {
  try {
    readConfig(env);
    return [];
  } catch (error) {
    return (error as { details: { faults: readonly string[] } }).details.faults;
  }
}

const AGENT = { agentId: 'local.test.desk.agent', modelClass: 'reasoning' };

describe('what is read', () => {
  it('a key makes the provider, with the default model; its value is a secret', () => {
    const { models, secrets } = readConfig({ ANTHROPIC_API_KEY: KEY });
    expect(models.anthropic).toEqual({ apiKey: KEY, modelByClass: {} });
    expect(secrets).toEqual([{ id: 'ANTHROPIC_API_KEY', value: KEY }]);
    expect(createModels(models).choose(AGENT, {})).toEqual({
      provider: 'anthropic',
      model: 'claude-sonnet-5-5',
    });
  });

  it('a key comes from a file that nobody else may read, and is a secret too', () => {
    const { models, secrets } = readConfig({ ANTHROPIC_API_KEY_FILE: keyFile(0o600) });
    expect(models.anthropic?.apiKey).toBe(KEY);
    expect(secrets.map(({ value }) => value)).toEqual([KEY]);
  });

  it.each(['http://127.0.0.1:4000', 'http://127.0.0.1:4000/', 'http://127.0.0.1:4000/v1/'])(
    'an address alone is a provider: %s',
    (url) => {
      const { anthropic } = readConfig({ ANTHROPIC_BASE_URL: url }).models;
      expect(anthropic).toMatchObject({ baseUrl: 'http://127.0.0.1:4000' });
      expect(anthropic?.apiKey).toBeUndefined();
    },
  );

  it('models by class, bounds and thinking', () => {
    const { models } = readConfig({
      ANTHROPIC_API_KEY: KEY,
      ANTHROPIC_MODEL: 'a',
      ANTHROPIC_MODEL_REASONING: 'b',
      ANTHROPIC_MAX_TOKENS: '900',
      ANTHROPIC_THINKING_TOKENS: '2048',
    });
    expect(models.anthropic).toMatchObject({ maxTokens: 900, thinking: 2048 });
    const made = createModels(models);
    expect(made.choose(AGENT, {}).model).toBe('b');
    expect(made.choose({ ...AGENT, modelClass: 'writing' }, {}).model).toBe('a');
    for (const thinking of ['adaptive', 'off']) {
      const env = { ANTHROPIC_API_KEY: KEY, ANTHROPIC_THINKING_TOKENS: thinking };
      expect(readConfig(env).models.anthropic).toMatchObject({ thinking });
    }
  });

  it('beside another provider it is there for who names it, or by OPENWOP_MODEL_PROVIDER for all', () => {
    const env = { OPENAI_API_KEY: 'sk-hunter2', ANTHROPIC_API_KEY: KEY };
    const both = createModels(readConfig(env).models);
    expect(both.providers()).toEqual(['anthropic', 'openai']);
    expect(both.choose(AGENT, {}).provider).toBe('openai');
    expect(both.choose(AGENT, { provider: 'anthropic' }).provider).toBe('anthropic');
    const first = createModels(readConfig({ ...env, OPENWOP_MODEL_PROVIDER: 'anthropic' }).models);
    expect(first.choose(AGENT, {}).provider).toBe('anthropic');
    expect(first.endpoints().map(({ provider }) => provider)).toEqual(['anthropic', 'openai']);
  });
});

it('what is set for a provider that is not there is no fault, since other programs know the variables: it is said', () => {
  const env = { ANTHROPIC_MODEL: 'm', ANTHROPIC_THINKING_TOKENS: 'off', ANTHROPIC_MAX_TOKENS: '9' };
  const { models, warnings } = readConfig(env);
  expect(models.anthropic).toBe(undefined);
  expect(warnings.map((one) => one.split(' ')[0]).sort()).toEqual(Object.keys(env).sort());
  expect(warnings[0]).toMatch(/has no effect without ANTHROPIC_API_KEY or ANTHROPIC_BASE_URL\.$/);
});

describe('faults', () => {
  it.each<[string, Record<string, string>, RegExp]>([
    [
      'a class that is none',
      { ANTHROPIC_API_KEY: KEY, ANTHROPIC_MODEL_POETRY: 'm' },
      /^ANTHROPIC_MODEL_POETRY names no class of models: there are ANTHROPIC_MODEL_REASONING/,
    ],
    [
      'a budget below what the API takes',
      { ANTHROPIC_API_KEY: KEY, ANTHROPIC_THINKING_TOKENS: '1023' },
      /^ANTHROPIC_THINKING_TOKENS must be adaptive, off or a whole number from 1024 to 1000000, not "1023"/,
    ],
    [
      'a budget in words',
      { ANTHROPIC_API_KEY: KEY, ANTHROPIC_THINKING_TOKENS: 'much' },
      /not "much"/,
    ],
    [
      'a bound of nothing',
      { ANTHROPIC_API_KEY: KEY, ANTHROPIC_MAX_TOKENS: '0' },
      /^ANTHROPIC_MAX_TOKENS must be a whole number/,
    ],
    [
      'an address that is none',
      { ANTHROPIC_BASE_URL: 'api.anthropic.com' },
      /^ANTHROPIC_BASE_URL must be a URL/,
    ],
    [
      'a key twice',
      { ANTHROPIC_API_KEY: KEY, ANTHROPIC_API_KEY_FILE: '/nowhere' },
      /^ANTHROPIC_API_KEY_FILE is set beside ANTHROPIC_API_KEY/,
    ],
    [
      'the default that is not configured',
      { OPENWOP_MODEL_PROVIDER: 'anthropic' },
      /^OPENWOP_MODEL_PROVIDER is anthropic, which is not configured/,
    ],
  ])('%s', (_name, env, sentence) => {
    const faults = faultsOf(env);
    expect(faults).toHaveLength(1);
    expect(faults[0]).toMatch(sentence);
    expect(faults[0]).not.toContain('hunter2');
  });

  it('a file of the key that others may read', () => {
    const faults = faultsOf({ ANTHROPIC_API_KEY_FILE: keyFile(0o644) });
    expect(faults).toHaveLength(1);
    expect(faults[0]).toMatch(/^ANTHROPIC_API_KEY_FILE must name a file that nobody else may read/);
    expect(faults[0]).not.toContain('hunter2');
  });
});
