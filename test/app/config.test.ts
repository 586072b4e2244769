// The configuration by environment: every fault at once, one sentence each, no secret in any.
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readConfig, requireShared, type Environment } from '../../src/app/config.ts';
import type { HostError } from '../../src/rules/errors.ts';
import { EDITORS, NO_TEXT } from '../support/editor-files.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'openwop-config-'));
  writeFileSync(join(folder, 'cert.pem'), 'x');
});
afterAll(() => rmSync(folder, { recursive: true }));

const KEY = Buffer.alloc(32, 1).toString('base64');

function faultsOf(env: Environment): readonly string[] {
  try {
    readConfig(env);
    return [];
  } catch (error) {
    expect((error as HostError).code).toBe('config_invalid');
    return (error as HostError).details?.faults as string[];
  }
}

describe('defaults and values', () => {
  it('an empty environment is a whole configuration', () => {
    const config = readConfig({});
    expect(config.http).toEqual({ host: '127.0.0.1', port: 8787, trustedProxies: [] });
    expect(config.temporal).toEqual({ kind: 'dev' });
    expect(config.database.kind).toBe('pglite');
    expect(config).toMatchObject({ testMode: false, encryptionKeys: [], secrets: [] });
    // RFC 0002 §F: a human is asked unless the operator says otherwise.
    expect(config).toMatchObject({ escalation: true, models: { openai: undefined } });
    expect(config.dataDir.endsWith('.data')).toBe(true);
  });

  it('test seams are off, and open in test mode alone', () => {
    const on = { OPENWOP_TEST_SEAM_ENABLED: 'true' };
    expect(readConfig({ OPENWOP_TEST_MODE: 'true' }).testSeams).toBe(false);
    expect(readConfig({ OPENWOP_TEST_MODE: 'true', ...on }).testSeams).toBe(true);
    expect(faultsOf(on)).toMatchObject([expect.stringMatching(/needs OPENWOP_TEST_MODE/)]);
  });

  it('any compatible endpoint: a base URL alone is a provider', () => {
    const env = { OPENAI_BASE_URL: 'http://127.0.0.1:11434/v1', OPENAI_MODEL: 'm' };
    const openai = { baseUrl: env.OPENAI_BASE_URL, model: 'm', modelByClass: {} };
    expect(readConfig(env).models).toEqual({ openai });
  });

  it('models by the class of the agent, above the one for all', () => {
    const { openai } = readConfig({
      OPENAI_API_KEY: 'k',
      OPENAI_MODEL: 'm',
      OPENAI_MODEL_CODING: 'c',
    }).models;
    expect(openai).toMatchObject({ model: 'm', modelByClass: { coding: 'c' } });
    expect(faultsOf({ OPENAI_API_KEY: 'k', OPENAI_MODEL_POETRY: 'p' })).toMatchObject([
      expect.stringMatching(/^OPENAI_MODEL_POETRY names no class of models/),
    ]);
  });

  it('scripted alone: no endpoint is asked, though keys are in the environment', () => {
    const env = { OPENAI_API_KEY: 'k', OPENWOP_MODEL_PROVIDER: 'scripted' };
    expect(readConfig(env).models).toEqual({ provider: 'scripted' });
    expect(faultsOf({ OPENWOP_MODEL_PROVIDER: 'openai' })[0]).toMatch(
      /^OPENWOP_MODEL_PROVIDER is openai, which is not configured/,
    );
  });

  // [I59]
  it('a key in a file that its user alone may read, known to the redactor', () => {
    const file = join(folder, 'key');
    writeFileSync(file, 'sk-in-a-file\n', { mode: 0o600 });
    const config = readConfig({ OPENAI_API_KEY_FILE: file });
    expect(config.models.openai?.apiKey).toBe('sk-in-a-file');
    expect(config.secrets).toContainEqual({ id: 'OPENAI_API_KEY_FILE', value: 'sk-in-a-file' });
    const both = faultsOf({ OPENAI_API_KEY_FILE: file, OPENAI_API_KEY: 'k' });
    expect(both).toMatchObject([expect.stringMatching(/^OPENAI_API_KEY_FILE is set beside/)]);
    chmodSync(file, 0o640);
    const open = faultsOf({ OPENAI_API_KEY_FILE: file });
    expect(open).toMatchObject([expect.stringMatching(/^OPENAI_API_KEY_FILE .*chmod 600/)]);
    expect(faultsOf({ OPENAI_API_KEY_FILE: folder })[0]).toMatch(/must name a file/);
    expect(faultsOf({ OPENAI_API_KEY_FILE: join(folder, 'none') })[0]).toMatch(/can read/);
  });

  it.each(Object.entries(EDITORS))(
    '[I59] a key in a file as an editor saved it: %s',
    (_, saved) => {
      const file = join(folder, 'saved-key');
      writeFileSync(file, saved('sk-in-a-file\n'), { mode: 0o600 });
      const { models, secrets } = readConfig({ OPENAI_API_KEY_FILE: file });
      expect(models.openai?.apiKey).toBe('sk-in-a-file');
      expect(secrets).toContainEqual({ id: 'OPENAI_API_KEY_FILE', value: 'sk-in-a-file' });
    },
  );

  it.each(Object.entries(NO_TEXT))('a file of a key that is no text is refused: %s', (_, bytes) => {
    const file = join(folder, 'no-key');
    writeFileSync(file, bytes, { mode: 0o600 });
    expect(faultsOf({ OPENAI_API_KEY_FILE: file })).toEqual([
      `OPENAI_API_KEY_FILE must name a text file, saved as UTF-8 ("${file}").`,
    ]);
  });

  it('a file of a key that is text, and no key, is refused for what it says', () => {
    const file = join(folder, 'two-keys');
    writeFileSync(file, Buffer.from('\ufeffsk-one\r\nsk-two', 'utf16le'), { mode: 0o600 });
    expect(faultsOf({ OPENAI_API_KEY_FILE: file })).toEqual([
      `OPENAI_API_KEY_FILE must name a file with one line of visible ASCII characters ("${file}").`,
    ]);
  });

  it("the download of Temporal's CLI goes to a mirror, or nowhere", () => {
    const of = (OPENWOP_TEMPORAL_DOWNLOAD: string) =>
      readConfig({ OPENWOP_TEMPORAL_DOWNLOAD }).temporalDownload;
    expect([of(''), of('off'), of('https://mirror.example/t/')]).toEqual([
      undefined,
      'off',
      'https://mirror.example/t',
    ]);
    expect(faultsOf({ OPENWOP_TEMPORAL_DOWNLOAD: 'maybe' })).toHaveLength(1);
  });

  it('the operator switches escalation off', () => {
    expect(readConfig({ OPENWOP_ESCALATION: 'off' }).escalation).toBe(false);
  });

  it('a question to a human stands for as long as the operator says, else as the host does', () => {
    const { interruptTimeoutMs } = readConfig({ OPENWOP_INTERRUPT_TIMEOUT_HOURS: '12' });
    expect(interruptTimeoutMs).toBe(12 * 3_600_000);
    expect(readConfig({}).interruptTimeoutMs).toBe(undefined);
    for (const hours of ['0', '8761', '-1', '1.5', 'a week'])
      expect(faultsOf({ OPENWOP_INTERRUPT_TIMEOUT_HOURS: hours })).toHaveLength(1);
  });

  it('empty variables are absent ones', () => {
    expect(faultsOf({ OPENWOP_PORT: '', TEMPORAL_NAMESPACE: ' ', DATABASE_URL: '' })).toEqual([]);
  });

  it('Temporal Cloud: namespace, API key, and TLS switched on by it', () => {
    const { temporal } = readConfig({
      TEMPORAL_ADDRESS: 'x.tmprl.cloud:7233',
      TEMPORAL_NAMESPACE: 'ns.acc',
      TEMPORAL_API_KEY: 'k',
    });
    expect(temporal).toMatchObject({
      address: 'x.tmprl.cloud:7233',
      namespace: 'ns.acc',
      apiKey: 'k',
    });
    expect(temporal.kind === 'external' && temporal.tls).toBeTruthy();
  });

  it('no TLS without a reason for it', () => {
    const { temporal } = readConfig({ TEMPORAL_ADDRESS: '127.0.0.1:7233' });
    expect(temporal.kind === 'external' && temporal.tls).toBe(undefined);
  });

  it('what must never leave the host is known: keys, and the password within the database URL', () => {
    const { secrets } = readConfig({
      OPENWOP_API_KEY: 'a-key-that-is-long-enough',
      DATABASE_URL: 'postgres://user:p%40ss%20word@db/x',
      OPENWOP_ENCRYPTION_KEYS: `a:${KEY}`,
    });
    expect(secrets.map(({ value }) => value)).toEqual(
      expect.arrayContaining(['a-key-that-is-long-enough', 'p@ss word', KEY]),
    );
  });

  it('encryption keys in order, the first encrypts', () => {
    const { encryptionKeys } = readConfig({ OPENWOP_ENCRYPTION_KEYS: `b:${KEY}, a:${KEY}` });
    expect(encryptionKeys.map(({ id }) => id)).toEqual(['b', 'a']);
  });

  it('agents as processes: a folder, and where asked for TCP and another frame limit', () => {
    expect(readConfig({}).opensentience).toBe(undefined);
    expect(
      readConfig({
        OPENWOP_OPENSENTIENCE_DIR: folder,
        OPENWOP_OPENSENTIENCE_TCP_PORT: '0',
        OPENWOP_OPENSENTIENCE_MAX_FRAME_BYTES: '1048576',
      }).opensentience,
    ).toEqual({ dir: folder, tcpPort: 0, maxFrameBytes: 1_048_576 });
  });

  it('how many runs a worker keeps in memory', () => {
    expect(readConfig({}).cachedRuns).toBe(undefined);
    expect(readConfig({ OPENWOP_CACHED_RUNS: '500' }).cachedRuns).toBe(500);
  });

  it('behind a proxy: the origin that users see, and whose forwarding headers are believed', () => {
    const { http } = readConfig({
      OPENWOP_PUBLIC_URL: 'HTTPS://OpenWOP.example:443/',
      OPENWOP_TRUSTED_PROXIES: '10.0.0.0/8, ::1,192.168.1.7',
    });
    expect(http).toMatchObject({
      publicUrl: 'https://openwop.example',
      trustedProxies: ['10.0.0.0/8', '::1', '192.168.1.7'],
    });
  });

  it('a key allows an address that is not loopback', () => {
    expect(
      faultsOf({ OPENWOP_HOST: '0.0.0.0', OPENWOP_API_KEY: 'a-key-that-is-long-enough' }),
    ).toEqual([]);
  });
});

it('a model of a provider that is not there is no fault, since other programs know the variable: it is said', () => {
  expect(readConfig({ OPENAI_MODEL: 'm' }).warnings).toEqual([
    'OPENAI_MODEL has no effect without OPENAI_API_KEY or OPENAI_BASE_URL.',
  ]);
  expect(readConfig({ OPENAI_MODEL: 'm', OPENAI_API_KEY: 'k' }).warnings).toEqual([]);
});

describe('faults', () => {
  type Case = [string, () => Environment, RegExp];
  const cases: readonly Case[] = [
    ['a port that is none', () => ({ OPENWOP_PORT: 'http' }), /^OPENWOP_PORT must be a port/],
    ['a port too high', () => ({ OPENWOP_PORT: '65536' }), /^OPENWOP_PORT must be a port/],
    // [I46]
    [
      'another host without key',
      () => ({ OPENWOP_HOST: '0.0.0.0' }),
      /^OPENWOP_API_KEY is needed when OPENWOP_HOST/,
    ],
    ...['ftp://x', 'openwop.example', '//openwop.example'].map((text): Case => [
      `a public address that is no URL: ${text}`,
      () => ({ OPENWOP_PUBLIC_URL: text }),
      /^OPENWOP_PUBLIC_URL must be a URL that begins with http:/,
    ]),
    ...['/base', '/?a=1', '/#top'].map((rest): Case => [
      `a public address with more than an origin: ${rest}`,
      () => ({ OPENWOP_PUBLIC_URL: `https://openwop.example${rest}` }),
      /^OPENWOP_PUBLIC_URL must be a scheme, a host/,
    ]),
    [
      'a public address with a password, which is not shown',
      () => ({ OPENWOP_PUBLIC_URL: 'https://me:hunter2@openwop.example' }),
      /^OPENWOP_PUBLIC_URL must be a scheme, a host(?!.*hunter2)/,
    ],
    ...['proxy.example', '10.0.0.0/33', '::1/129', '10.0.0/8', '10.0.0.1/', '*'].map(
      (text): Case => [
        `a trusted proxy that is no address: ${text}`,
        () => ({ OPENWOP_TRUSTED_PROXIES: `127.0.0.1, ${text}` }),
        /^OPENWOP_TRUSTED_PROXIES must be IP addresses or CIDR blocks/,
      ],
    ),
    ['a short key', () => ({ OPENWOP_API_KEY: 'short' }), /^OPENWOP_API_KEY must have at least 16/],
    [
      'a key with a blank',
      () => ({ OPENWOP_API_KEY: 'a key with blanks in it' }),
      /^OPENWOP_API_KEY must have/,
    ],
    [
      "a folder of agents' processes that is not there",
      () => ({ OPENWOP_OPENSENTIENCE_DIR: '/nowhere' }),
      /^OPENWOP_OPENSENTIENCE_DIR must be an existing/,
    ],
    [
      "a port for agents' processes without agents",
      () => ({ OPENWOP_OPENSENTIENCE_TCP_PORT: '7411' }),
      /^OPENWOP_OPENSENTIENCE_TCP_PORT has no effect without/,
    ],
    [
      'fewer cached runs than are under way at once',
      () => ({ OPENWOP_CACHED_RUNS: '9' }),
      /^OPENWOP_CACHED_RUNS must be a whole number from 10 to/,
    ],
    [
      'frames too short for a registration',
      () => ({ OPENWOP_OPENSENTIENCE_DIR: folder, OPENWOP_OPENSENTIENCE_MAX_FRAME_BYTES: '1024' }),
      /^OPENWOP_OPENSENTIENCE_MAX_FRAME_BYTES must be a whole number from 65536 to/,
    ],
    [
      'a build id that Temporal would not take, or that names no build',
      () => ({ OPENWOP_BUILD_ID: 'a:b' }),
      /^OPENWOP_BUILD_ID must be auto, or at most 100 letters/,
    ],
    [
      'the id that means no build',
      () => ({ OPENWOP_BUILD_ID: 'unversioned' }),
      /^OPENWOP_BUILD_ID must be auto/,
    ],
    [
      'runs that are kept for less than a week',
      () => ({ OPENWOP_RETENTION_DAYS: '6' }),
      /^OPENWOP_RETENTION_DAYS must be a whole number from 7 to/,
    ],
    [
      'what runs of a build do, without a build',
      () => ({ OPENWOP_RUN_VERSIONING: 'pinned' }),
      /^OPENWOP_RUN_VERSIONING has no effect without/,
    ],
    [
      'a folder that is not there',
      () => ({ OPENWOP_FIXTURES_DIR: '/nowhere' }),
      /^OPENWOP_FIXTURES_DIR must be an existing/,
    ],
    [
      'a folder that is a file',
      () => ({ OPENWOP_AGENTS_DIR: join(folder, 'cert.pem') }),
      /^OPENWOP_AGENTS_DIR must be/,
    ],
    [
      'a flag that is none',
      () => ({ OPENWOP_TEST_MODE: 'maybe' }),
      /^OPENWOP_TEST_MODE must be true or false/,
    ],
    [
      'an encryption key too short',
      () => ({ OPENWOP_ENCRYPTION_KEYS: 'a:AAAA' }),
      /^OPENWOP_ENCRYPTION_KEYS is not valid/,
    ],
    [
      'an encryption key id twice',
      () => ({ OPENWOP_ENCRYPTION_KEYS: `a:${KEY},a:${KEY}` }),
      /^OPENWOP_ENCRYPTION_KEYS is not/,
    ],
    [
      'a password in the address of models',
      () => ({ OPENAI_BASE_URL: 'http://user:hunter2@models.example/v1' }),
      /^OPENAI_BASE_URL must hold no user and no password\.$/,
    ],
    [
      'a key that no header can hold',
      () => ({ ANTHROPIC_API_KEY: 'sk-ant\u2019hunter2' }),
      /^ANTHROPIC_API_KEY must have visible ASCII characters alone\.$/,
    ],
    [
      'another database',
      () => ({ DATABASE_URL: 'mysql://x' }),
      /^DATABASE_URL must be a URL that begins with postgres:/,
    ],
    [
      'an address without port',
      () => ({ TEMPORAL_ADDRESS: 'localhost' }),
      /^TEMPORAL_ADDRESS must be host:port/,
    ],
    [
      'Temporal options without address',
      () => ({ TEMPORAL_NAMESPACE: 'x' }),
      /^TEMPORAL_NAMESPACE has no effect/,
    ],
    [
      'a certificate without key',
      () => ({ TEMPORAL_ADDRESS: 'a:1', TEMPORAL_TLS_CLIENT_CERT_PATH: join(folder, 'cert.pem') }),
      /^TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH go together/,
    ],
    [
      'a certificate that is not there',
      () => ({ TEMPORAL_ADDRESS: 'a:1', TEMPORAL_TLS_SERVER_CA_CERT_PATH: '/nowhere.pem' }),
      /^TEMPORAL_TLS_SERVER_CA_CERT_PATH must be a readable file/,
    ],
    [
      'an API key without TLS',
      () => ({ TEMPORAL_ADDRESS: 'a:1', TEMPORAL_API_KEY: 'k', TEMPORAL_TLS: 'false' }),
      /^TEMPORAL_API_KEY needs TLS/,
    ],
    [
      'an escalation that is neither on nor off',
      () => ({ OPENWOP_ESCALATION: 'sometimes' }),
      /^OPENWOP_ESCALATION must be true or false/,
    ],
    [
      'a log level that is none',
      () => ({ OPENWOP_LOG_LEVEL: 'loud' }),
      /^OPENWOP_LOG_LEVEL must be debug/,
    ],
  ];
  it.each(cases)('%s', (_name, env, sentence) => {
    const faults = faultsOf(env());
    expect(faults).toHaveLength(1);
    expect(faults[0]).toMatch(sentence);
  });

  it('all of them at once', () => {
    expect(faultsOf({ OPENWOP_PORT: 'x', OPENWOP_TEST_MODE: 'x', DATABASE_URL: 'x' })).toHaveLength(
      3,
    );
  });

  it('no fault shows a secret', () => {
    const faults = faultsOf({
      DATABASE_URL: 'mysql://user:hunter2@x',
      OPENWOP_API_KEY: 'hunter2 x',
      OPENWOP_ENCRYPTION_KEYS: 'a:hunter2',
    });
    expect(faults).toHaveLength(3);
    expect(faults.join()).not.toMatch(/hunter2/);
  });
});

describe('the halves', () => {
  it('need Temporal, PostgreSQL and, for a facade, the key; a worker needs no key', () => {
    const shared = { TEMPORAL_ADDRESS: 'a:1', DATABASE_URL: 'postgres://x/y' };
    expect(() => requireShared(readConfig({}), 'npm run serve', { facade: true })).toThrow(
      /TEMPORAL_ADDRESS is needed by `npm run serve`[^]*DATABASE_URL is needed[^]*OPENWOP_API_KEY is needed/,
    );
    expect(() => requireShared(readConfig(shared), 'npm run serve', { facade: true })).toThrow(
      /OPENWOP_API_KEY/,
    );
    expect(requireShared(readConfig(shared), 'npm run worker', { facade: false })).toBe('');
  });
});
