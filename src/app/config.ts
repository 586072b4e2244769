// The configuration: environment variables, read and checked once at start, every fault reported. README.md holds the
// same table for users.
import { isIP } from 'node:net';
import { join, resolve } from 'node:path';
import type { DatabaseOptions } from '../adapters/postgres/index.ts';
import { parseEncryptionKeys } from '../adapters/temporal/codec.ts';
import type { TemporalTarget } from '../adapters/temporal/connection.ts';
import type { HostKey } from '../ports/keys.ts';
import { isBuildId, RUN_VERSIONING, type RunVersioning } from '../rules/builds.ts';
import { HostError, codeOf } from '../rules/errors.ts';
import { cacheFolder } from './cache-folder.js';
import { Reader, type Environment } from './environment.ts';
import { DEFAULT_DATA_DIR, DEFAULT_PORT } from './defaults.ts';
import { isLogLevel, type LogLevel } from './logger.ts';
import { readModels, type ModelSettings } from './model-settings.ts';

export type { Environment } from './environment.ts';

export interface ExternalTemporal extends TemporalTarget {
  readonly kind: 'external';
}

export interface Config {
  readonly http: {
    readonly host: string;
    readonly port: number;
    /** Port for /healthz and /readyz of a worker alone, which has no API. Absent: none. */
    readonly healthPort?: number | undefined;
    /** Origin as users see it; absent: what each request names. */
    readonly publicUrl?: string;
    /** Addresses and CIDR blocks whose X-Forwarded headers are believed. */
    readonly trustedProxies: readonly string[];
  };
  /** Absent: a key is made and kept in the data folder. */
  readonly apiKey?: string;
  readonly dataDir: string;
  /** For obtained binaries and the workflow bundle; shared by all data folders of the user. */
  readonly cacheDir: string;
  /** Temporal's CLI is downloaded there; `off`: not at all. Absent: from Temporal's own service. */
  readonly temporalDownload?: string;
  readonly fixturesDir?: string;
  readonly agentsDir?: string;
  /** Agents as processes (seed 004): on when the folder of their manifests is named. */
  readonly opensentience?: {
    readonly dir: string;
    /** Loopback TCP besides the Unix socket; absent: none. */
    readonly tcpPort?: number;
    readonly maxFrameBytes?: number;
  };
  readonly testMode: boolean;
  /** In test mode: what conformance suites drive the host by is served. */
  readonly testSeams: boolean;
  /** Temporal's `__stack_trace` queries are answered: workflow code then costs nearly twice as much. */
  readonly workflowStackTraces: boolean;
  /** Of a worker: runs that it keeps as they stand between two tasks. */
  readonly cachedRuns?: number;
  /** Time that a question to a human stands; absent: the host's default. */
  readonly interruptTimeoutMs?: number;
  /** Runs are kept for so many days behind their end; absent: for ever. */
  readonly retentionDays?: number;
  /** The first one encrypts once every process knows it, all decrypt; none: no encryption. */
  readonly encryptionKeys: readonly HostKey[];
  readonly database: DatabaseOptions;
  readonly temporal: { readonly kind: 'dev' } | ExternalTemporal;
  /** Of the worker, where it names its build (docs/upgrades.md); absent: it does not, and takes what comes. */
  readonly build?: BuildSettings;
  readonly models: ModelSettings;
  /** RFC 0002 §F: false goes on with a decision below its threshold, and notes it, where true asks a human. */
  readonly escalation: boolean;
  /** Absent: each command has its own default. */
  readonly logLevel?: LogLevel;
  /** What is set for nothing, one sentence each. */
  readonly warnings: readonly string[];
  /** Values that must never leave the host, by name: for redaction. */
  readonly secrets: readonly { readonly id: string; readonly value: string }[];
  /** For the commands that obtain the dev server. */
  readonly env: Environment;
}

export interface BuildSettings {
  /** `auto`: made of the release and the workflow code. */
  readonly id: string;
  /** Absent: pinned, but where one process serves all runs. */
  readonly runs?: RunVersioning;
}

/** Bounds of a frame between Core and an agent: a registration must fit, and one message must not fill the memory. */
const MIN_FRAME_BYTES = 64 * 1024;
const MAX_FRAME_BYTES = 64 * 1024 * 1024;
const MIN_API_KEY_CHARS = 16;
/** A year: no run lasts longer. */
const MAX_INTERRUPT_TIMEOUT_HOURS = 365 * 24;
/** Fewer than are under way at once would be read from history again at each task; 3 GiB. */
const MIN_CACHED_RUNS = 10;
const MAX_CACHED_RUNS = 10_000;
/** storage-adapters.md §Retention: a week at least. */
const MIN_RETENTION_DAYS = 7;
/** A hundred years. */
const MAX_RETENTION_DAYS = 36_500;
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|::1|\[::1\])$/;
const SECRET_VARIABLES = [
  'OPENWOP_API_KEY',
  'OPENAI_API_KEY',
  'ANTHROPIC_API_KEY',
  'TEMPORAL_API_KEY',
  'DATABASE_URL',
] as const;

/** Throws HostError config_invalid whose `details.faults` has one sentence per fault. */
export function readConfig(env: Environment): Config {
  const reader = new Reader(env);
  const host = reader.text('OPENWOP_HOST') ?? '127.0.0.1';
  const apiKey = readApiKey(reader, host);
  const dataDir = resolve(reader.text('OPENWOP_DATA_DIR') ?? DEFAULT_DATA_DIR);
  const databaseUrl = readDatabaseUrl(reader);
  const config: Config = {
    http: {
      host,
      port: reader.port('OPENWOP_PORT') ?? DEFAULT_PORT,
      healthPort: reader.port('OPENWOP_HEALTH_PORT'),
      publicUrl: readPublicUrl(reader),
      trustedProxies: readTrustedProxies(reader),
    },
    apiKey,
    dataDir,
    cacheDir: cacheFolder((name) => reader.text(name)),
    temporalDownload: readDownload(reader),
    fixturesDir: reader.folder('OPENWOP_FIXTURES_DIR'),
    agentsDir: reader.folder('OPENWOP_AGENTS_DIR'),
    opensentience: readOpenSentience(reader),
    testMode: reader.flag('OPENWOP_TEST_MODE') ?? false,
    testSeams: readTestSeams(reader),
    workflowStackTraces: reader.flag('OPENWOP_WORKFLOW_STACK_TRACES') ?? false,
    cachedRuns: reader.count('OPENWOP_CACHED_RUNS', MIN_CACHED_RUNS, MAX_CACHED_RUNS),
    interruptTimeoutMs: readInterruptTimeout(reader),
    retentionDays: reader.count('OPENWOP_RETENTION_DAYS', MIN_RETENTION_DAYS, MAX_RETENTION_DAYS),
    encryptionKeys: readEncryption(reader),
    database: databaseUrl
      ? { kind: 'postgres', url: databaseUrl }
      : { kind: 'pglite', dir: join(dataDir, 'postgres') },
    temporal: readTemporal(reader),
    build: readBuild(reader),
    models: readModels(reader),
    escalation: reader.flag('OPENWOP_ESCALATION') ?? true,
    logLevel: readLogLevel(reader),
    warnings: reader.warnings,
    secrets: readSecrets(env),
    env,
  };
  if (reader.faults.length > 0) throw invalid(reader.faults);
  return { ...config, secrets: [...config.secrets, ...reader.fileSecrets] };
}

function invalid(faults: readonly string[]): HostError {
  return new HostError('config_invalid', { reason: faults.join('\n'), faults });
}

/**
 * What the halves need: they share an outer Temporal, an outer PostgreSQL, and facades one key, which is returned (''
 * for a worker without one). Throws HostError config_invalid.
 */
export function requireShared(config: Config, command: string, half: { facade: boolean }): string {
  const faults: string[] = [];
  const need = (name: string, why: string) =>
    faults.push(`${name} is needed by \`${command}\`: ${why}`);
  if (config.temporal.kind === 'dev')
    need('TEMPORAL_ADDRESS', 'the halves meet at one Temporal server.');
  if (config.database.kind === 'pglite') need('DATABASE_URL', 'the halves meet at one PostgreSQL.');
  if (half.facade && config.apiKey === undefined)
    need('OPENWOP_API_KEY', 'all facades take the same key.');
  if (faults.length > 0) throw invalid(faults);
  return config.apiKey ?? '';
}

/** One switch for tests does not open them: what they do must not be a slip away from production. */
function readTestSeams(reader: Reader): boolean {
  const name = 'OPENWOP_TEST_SEAM_ENABLED';
  const isOn = reader.flag(name) ?? false;
  if (isOn && !reader.flag('OPENWOP_TEST_MODE'))
    reader.fault(name, 'needs OPENWOP_TEST_MODE: it is for tests of the host alone.');
  return isOn;
}

function readDownload(reader: Reader): string | undefined {
  const name = 'OPENWOP_TEMPORAL_DOWNLOAD';
  if (reader.text(name) === 'off') return 'off';
  return reader.url(name, ['http:', 'https:'])?.replace(/\/+$/, '');
}

function isLoopback(host: string): boolean {
  return LOOPBACK.test(host.toLowerCase());
}

function readApiKey(reader: Reader, host: string): string | undefined {
  const key = reader.text('OPENWOP_API_KEY');
  if (key === undefined && !isLoopback(host)) {
    return reader.fault(
      'OPENWOP_API_KEY',
      `is needed when OPENWOP_HOST is not a loopback address ("${host}").`,
    );
  }
  if (key !== undefined && (key.length < MIN_API_KEY_CHARS || !/^[\x21-\x7e]+$/.test(key))) {
    return reader.fault(
      'OPENWOP_API_KEY',
      `must have at least ${MIN_API_KEY_CHARS} visible ASCII characters.`,
    );
  }
  return key;
}

/** Pages are served from the root, and the origin of a form is compared with this: an origin is all that it can be. */
function readPublicUrl(reader: Reader): string | undefined {
  const text = reader.url('OPENWOP_PUBLIC_URL', ['http:', 'https:']);
  if (text === undefined) return undefined;
  const { origin, href } = new URL(text);
  return href === `${origin}/`
    ? origin
    : reader.fault(
        'OPENWOP_PUBLIC_URL',
        'must be a scheme, a host and at most a port, as in https://openwop.example.',
      );
}

function readTrustedProxies(reader: Reader): readonly string[] {
  const listed = (reader.text('OPENWOP_TRUSTED_PROXIES') ?? '')
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');
  for (const entry of listed) {
    if (!isAddressBlock(entry))
      reader.fault(
        'OPENWOP_TRUSTED_PROXIES',
        `must be IP addresses or CIDR blocks between commas, "${entry}" is neither.`,
      );
  }
  return listed;
}

function isAddressBlock(text: string): boolean {
  const [, address = '', bits] = /^([^/]*)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const family = isIP(address);
  return family !== 0 && (bits === undefined || Number(bits) <= (family === 4 ? 32 : 128));
}

function readDatabaseUrl(reader: Reader): string | undefined {
  return reader.url('DATABASE_URL', ['postgres:', 'postgresql:']);
}

function readEncryption(reader: Reader): Config['encryptionKeys'] {
  const text = reader.text('OPENWOP_ENCRYPTION_KEYS');
  if (text === undefined) return [];
  try {
    return parseEncryptionKeys(text);
  } catch (error) {
    if (codeOf(error) !== 'config_invalid') throw error;
    reader.fault('OPENWOP_ENCRYPTION_KEYS', `is not valid: ${(error as Error).message}.`);
    return [];
  }
}

const TEMPORAL_VARIABLES = [
  'TEMPORAL_NAMESPACE',
  'TEMPORAL_API_KEY',
  'TEMPORAL_TLS',
  'TEMPORAL_TLS_SERVER_CA_CERT_PATH',
  'TEMPORAL_TLS_CLIENT_CERT_PATH',
  'TEMPORAL_TLS_CLIENT_KEY_PATH',
  'TEMPORAL_TLS_SERVER_NAME',
];

function readTemporal(reader: Reader): Config['temporal'] {
  const address = reader.text('TEMPORAL_ADDRESS');
  if (address === undefined) {
    for (const name of TEMPORAL_VARIABLES) {
      if (reader.text(name) !== undefined)
        reader.fault(name, 'has no effect without TEMPORAL_ADDRESS.');
    }
    return { kind: 'dev' };
  }
  if (!/^(\[[0-9a-fA-F:]+\]|[^\s:/]+):\d{1,5}$/.test(address)) {
    reader.fault('TEMPORAL_ADDRESS', `must be host:port, not "${address}".`);
  }
  const apiKey = reader.text('TEMPORAL_API_KEY');
  const tls = readTls(reader, apiKey !== undefined);
  if (apiKey !== undefined && !tls)
    reader.fault('TEMPORAL_API_KEY', 'needs TLS; remove TEMPORAL_TLS=false.');
  return {
    kind: 'external',
    address,
    namespace: reader.text('TEMPORAL_NAMESPACE') ?? 'default',
    apiKey,
    tls,
  };
}

/** An API key or any certificate switches TLS on, as in Temporal's own tools. */
function readTls(reader: Reader, byDefault: boolean): ExternalTemporal['tls'] {
  const caPath = reader.file('TEMPORAL_TLS_SERVER_CA_CERT_PATH');
  const certPath = reader.file('TEMPORAL_TLS_CLIENT_CERT_PATH');
  const keyPath = reader.file('TEMPORAL_TLS_CLIENT_KEY_PATH');
  const serverName = reader.text('TEMPORAL_TLS_SERVER_NAME');
  if ((certPath === undefined) !== (keyPath === undefined)) {
    reader.fault('TEMPORAL_TLS_CLIENT_CERT_PATH', 'and TEMPORAL_TLS_CLIENT_KEY_PATH go together.');
  }
  const implied = byDefault || [caPath, certPath, serverName].some((it) => it !== undefined);
  return (reader.flag('TEMPORAL_TLS') ?? implied)
    ? { caPath, certPath, keyPath, serverName }
    : undefined;
}

function readBuild(reader: Reader): BuildSettings | undefined {
  const id = reader.text('OPENWOP_BUILD_ID');
  const runs = reader.choice('OPENWOP_RUN_VERSIONING', RUN_VERSIONING);
  if (id === undefined) {
    if (runs !== undefined)
      reader.fault('OPENWOP_RUN_VERSIONING', 'has no effect without OPENWOP_BUILD_ID.');
    return undefined;
  }
  if (!isBuildId(id))
    return reader.fault(
      'OPENWOP_BUILD_ID',
      'must be auto, or at most 100 letters, digits, dots, dashes and underscores that begin with a letter or digit, and not "unversioned".',
    );
  return { id, runs };
}

const OPENSENTIENCE_VARIABLES = [
  'OPENWOP_OPENSENTIENCE_TCP_PORT',
  'OPENWOP_OPENSENTIENCE_MAX_FRAME_BYTES',
];

function readOpenSentience(reader: Reader): Config['opensentience'] {
  const dir = reader.folder('OPENWOP_OPENSENTIENCE_DIR');
  if (reader.text('OPENWOP_OPENSENTIENCE_DIR') === undefined) {
    for (const name of OPENSENTIENCE_VARIABLES) {
      if (reader.text(name) !== undefined)
        reader.fault(name, 'has no effect without OPENWOP_OPENSENTIENCE_DIR.');
    }
    return undefined;
  }
  const tcpPort = reader.port('OPENWOP_OPENSENTIENCE_TCP_PORT');
  const maxFrameBytes = reader.count(
    'OPENWOP_OPENSENTIENCE_MAX_FRAME_BYTES',
    MIN_FRAME_BYTES,
    MAX_FRAME_BYTES,
  );
  return dir === undefined ? undefined : { dir, tcpPort, maxFrameBytes };
}

function readInterruptTimeout(reader: Reader): number | undefined {
  const hours = reader.count('OPENWOP_INTERRUPT_TIMEOUT_HOURS', 1, MAX_INTERRUPT_TIMEOUT_HOURS);
  return hours === undefined ? undefined : hours * 3_600_000;
}

function readLogLevel(reader: Reader): LogLevel | undefined {
  const level = reader.text('OPENWOP_LOG_LEVEL');
  if (level === undefined || isLogLevel(level)) return level;
  return reader.fault('OPENWOP_LOG_LEVEL', `must be debug, info, warn or error, not "${level}".`);
}

function readSecrets(env: Environment): Config['secrets'] {
  const whole = SECRET_VARIABLES.map((id) => ({ id, value: env[id]?.trim() ?? '' }));
  const databaseUrl = env.DATABASE_URL?.trim() ?? '';
  const password = URL.canParse(databaseUrl) ? new URL(databaseUrl).password : '';
  const parts = [
    ...whole,
    { id: 'DATABASE_URL password', value: decoded(password) },
    ...(env.OPENWOP_ENCRYPTION_KEYS ?? '').split(',').map((part) => ({
      id: 'OPENWOP_ENCRYPTION_KEYS',
      value: part.slice(part.indexOf(':') + 1).trim(),
    })),
  ];
  return parts.filter(({ value }) => value !== '');
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // A stray percent sign: the password is what it is.
    return text;
  }
}
