// Finds or obtains the `temporal` command line tool, which holds the dev server (design §7): on PATH, in the cache
// folder, by Temporal's download service (the one its SDKs use), by `go install`. One clear line per step tried.
import { execFile, spawn } from 'node:child_process';
import { access, chmod, constants, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { HostError } from '../../core/errors.ts';

/** Version that is obtained. Its dev server is Temporal 1.29. */
const OBTAINED_VERSION = 'v1.5.1';
const MINIMUM_CLI: Version = [1, 5, 0];
const MINIMUM_SERVER: Version = [1, 29, 0];
/** A build without a release number names its server version only. */
const UNRELEASED = '0.0.0';
const VERSION_LIMIT_MS = 10_000;
const DOWNLOAD_LIMIT_MS = 20_000;
const GO_INSTALL_LIMIT_MS = 20 * 60_000;
const DOWNLOAD_BYTES = 256 * 1024 * 1024;
const DOWNLOAD_SERVICE = 'https://temporal.download';
const GO_PACKAGE = `github.com/temporalio/cli/cmd/temporal@${OBTAINED_VERSION}`;

type Version = readonly [number, number, number];

export interface BinaryOptions {
  /** Folder for obtained binaries, shared by all data folders of the user. */
  readonly cacheDir: string;
  /** Environment of the commands run; its PATH is searched. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Gets one line per step. */
  readonly report: (line: string) => void;
  /** Another download service, for mirrors and tests. */
  readonly downloadService?: string;
  readonly downloadLimitMs?: number;
  readonly signal?: AbortSignal;
}

/** Absolute path of a usable `temporal`. Throws HostError temporal_not_found with all that was tried. */
export async function obtainBinary(options: BinaryOptions): Promise<string> {
  const tried: string[] = [];
  for (const step of [fromPath, fromCache, byDownload, byGo]) {
    try {
      return await step(options);
    } catch (error) {
      if (options.signal?.aborted) throw error;
      const line = (error as Error).message;
      tried.push(line);
      options.report(`Temporal: ${line}`);
    }
  }
  throw new HostError('temporal_not_found', {
    reason:
      `Temporal's dev server could not be obtained (${tried.join('; ')}). ` +
      'Install the Temporal CLI 1.5.0 or newer (https://docs.temporal.io/cli) so that `temporal` is on PATH, ' +
      'or set TEMPORAL_ADDRESS to a running server.',
  });
}

async function fromPath({ env, report }: BinaryOptions): Promise<string> {
  const path = await findOnPath('temporal', env.PATH);
  if (path === undefined) throw new Error('no `temporal` on PATH');
  const version = await checkVersion(path);
  report(`Temporal: using ${path} (${version})`);
  return path;
}

async function fromCache({ cacheDir, report }: BinaryOptions): Promise<string> {
  const path = cachedPath(cacheDir);
  if (!(await isExecutable(path))) throw new Error(`none cached in ${cacheDir}`);
  const version = await checkVersion(path);
  report(`Temporal: using ${path} (${version})`);
  return path;
}

function cachedPath(cacheDir: string): string {
  return join(cacheDir, `temporal-${OBTAINED_VERSION}`);
}

/** Throws when the version is too old or cannot be read. Returns it in readable form. */
async function checkVersion(path: string): Promise<string> {
  const output = await run(path, ['--version'], VERSION_LIMIT_MS).catch((error: unknown) => {
    throw new Error(`${path} does not run`, { cause: error });
  });
  const cli = /temporal version v?(\d+\.\d+\.\d+)/.exec(output)?.[1];
  const server = /Server v?(\d+\.\d+\.\d+)/.exec(output)?.[1];
  const released = cli !== undefined && cli !== UNRELEASED;
  const found = released ? cli : server;
  if (found === undefined) throw new Error(`${path} does not tell its version`);
  if (isBelow(parseVersion(found), released ? MINIMUM_CLI : MINIMUM_SERVER)) {
    const wanted = (released ? MINIMUM_CLI : MINIMUM_SERVER).join('.');
    throw new Error(
      `${path} is too old (${released ? 'version' : 'server'} ${found}, ${wanted} is needed)`,
    );
  }
  return released ? `version ${cli}` : `server ${server}`;
}

function parseVersion(text: string): Version {
  const [major = 0, minor = 0, patch = 0] = text.split('.').map(Number);
  return [major, minor, patch];
}

function isBelow(version: Version, minimum: Version): boolean {
  for (const [at, part] of version.entries()) {
    const wanted = minimum[at] as number;
    if (part !== wanted) return part < wanted;
  }
  return false;
}

async function byDownload(options: BinaryOptions): Promise<string> {
  const limitMs = options.downloadLimitMs ?? DOWNLOAD_LIMIT_MS;
  const signals = [AbortSignal.timeout(limitMs), ...(options.signal ? [options.signal] : [])];
  options.report(`Temporal: downloading the CLI ${OBTAINED_VERSION} (up to ${limitMs / 1000} s)`);
  try {
    return await download(options, AbortSignal.any(signals));
  } catch (error) {
    const why =
      (error as Error).name === 'TimeoutError'
        ? `no answer in ${limitMs / 1000} s`
        : reasonOf(error);
    throw new Error(`download failed (${why})`, { cause: error });
  }
}

function reasonOf(error: unknown): string {
  const { message, cause } = error as Error;
  return cause instanceof Error && cause.message ? cause.message : message;
}

async function download(
  { cacheDir, downloadService }: BinaryOptions,
  signal: AbortSignal,
): Promise<string> {
  const service = downloadService ?? DOWNLOAD_SERVICE;
  const arch = process.arch === 'x64' ? 'amd64' : process.arch;
  const query = new URLSearchParams({ arch, platform: process.platform, format: 'tar.gz' });
  const info = await fetch(`${service}/cli/${OBTAINED_VERSION}?${query.toString()}`, { signal });
  if (!info.ok) throw new Error(`${service} answered ${info.status}`);
  const { archiveUrl, fileToExtract } = (await info.json()) as {
    archiveUrl?: string;
    fileToExtract?: string;
  };
  if (!archiveUrl || !fileToExtract) throw new Error(`${service} gave no archive`);
  if (new URL(archiveUrl).protocol !== new URL(service).protocol)
    throw new Error('the archive is not served securely');
  const archive = await fetch(archiveUrl, { signal });
  if (!archive.ok) throw new Error(`the archive's server answered ${archive.status}`);
  if (Number(archive.headers.get('content-length') ?? 0) > DOWNLOAD_BYTES)
    throw new Error('the archive is too large');
  const bytes = Buffer.from(await archive.arrayBuffer());
  await mkdir(cacheDir, { recursive: true });
  const folder = await mkdtemp(join(cacheDir, 'download-'));
  try {
    await writeFile(join(folder, 'archive.tar.gz'), bytes);
    await run(
      'tar',
      ['-xzf', join(folder, 'archive.tar.gz'), '-C', folder, '--', fileToExtract],
      DOWNLOAD_LIMIT_MS,
    );
    return await keep(join(folder, fileToExtract), cacheDir);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Checks an obtained binary and moves it into its place at once: a cached one is always whole. */
async function keep(path: string, cacheDir: string): Promise<string> {
  await chmod(path, 0o755);
  await checkVersion(path);
  const target = cachedPath(cacheDir);
  await rename(path, target);
  return target;
}

async function byGo({ cacheDir, env, report, signal }: BinaryOptions): Promise<string> {
  const go = await findOnPath('go', env.PATH);
  if (go === undefined) throw new Error('no `go` on PATH to build it with');
  report('Temporal: building it with `go install` (about 3 to 5 minutes, once)');
  await mkdir(cacheDir, { recursive: true });
  const folder = await mkdtemp(join(cacheDir, 'build-'));
  try {
    await install(go, { ...env, GOBIN: folder }, signal);
    return await keep(join(folder, 'temporal'), cacheDir);
  } catch (error) {
    throw new Error(`go install failed (${reasonOf(error)})`, { cause: error });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Last characters of the build's errors that are shown. */
const SHOWN_ERROR_CHARS = 300;

function install(go: string, env: BinaryOptions['env'], signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(go, ['install', GO_PACKAGE], {
      env: env,
      stdio: ['ignore', 'ignore', 'pipe'],
      timeout: GO_INSTALL_LIMIT_MS,
      signal,
    });
    let errors = '';
    child.stderr.on('data', (piece: Buffer) => {
      errors = (errors + piece.toString()).slice(-SHOWN_ERROR_CHARS);
    });
    child.once('error', reject);
    child.once('exit', (code, killedBy) => {
      if (code === 0) resolve();
      else
        reject(new Error(killedBy ? `ended by ${killedBy}` : errors.trim() || `exit code ${code}`));
    });
  });
}

function run(file: string, args: readonly string[], timeoutMs: number): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(file, [...args], { timeout: timeoutMs }, (error, stdout) => {
      if (error) reject(new Error(error.message, { cause: error }));
      else resolve(stdout);
    });
  });
}

async function findOnPath(name: string, path = ''): Promise<string | undefined> {
  for (const folder of path.split(delimiter)) {
    if (folder && (await isExecutable(join(folder, name)))) return join(folder, name);
  }
  return undefined;
}

async function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}
