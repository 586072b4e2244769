// Finds or obtains a Temporal server to run beside the host (architecture §7), in a fixed order: `temporal` on PATH;
// the cache; the download; our own dev server, built with Go; the CLI by `go install`; Java's test server, in memory.
// One line per step: how long it took, or why it did not do.
import { HostError } from '../../../rules/errors.ts';
import { findOnPath } from '../../../system/programs.ts';
import { byDownload } from './download.ts';
import { byDevServerBuild, byGoInstall, cachedDevServer } from './go.ts';
import { byJava } from './java.ts';
import {
  cachedCli,
  checkVersion,
  CLI_VERSIONS,
  NoWay,
  usable,
  type Found,
  type ProgramOptions,
  type ServerProgram,
} from './steps.ts';

export { byJava as obtainTestServer };
export type { ProgramOptions, ServerProgram };

/** Below this a step's time says nothing, in ms. */
const SAID_FROM_MS = 100;
const ADVICE = [
  'Linux: install Go 1.25 or newer (https://go.dev/dl), or put the Temporal CLI 1.5 or newer on PATH (https://docs.temporal.io/cli).',
  'macOS: `brew install temporal`.',
  'Windows: in WSL, as on Linux.',
  'Anywhere: set TEMPORAL_ADDRESS to a running server.',
].join(' ');

/** Throws HostError temporal_not_found with all that was tried and what to install. */
export async function obtainProgram(options: ProgramOptions): Promise<ServerProgram> {
  const ways = [fromPath, fromCache, byDownload, byDevServerBuild, byGoInstall];
  const tried: string[] = [];
  for (const way of [...ways, ...(options.orInMemory ? [byJava] : [])]) {
    const startedAtMs = Date.now();
    const took = () => time(Date.now() - startedAtMs);
    try {
      const { kind, path, what } = await way(options);
      options.report(`Temporal: ${what}${took()}: ${path}`);
      return { kind, path };
    } catch (error) {
      if (options.signal?.aborted) throw error;
      const { message } = error as Error;
      tried.push(message);
      options.report(`Temporal: ${message}${took()}`);
    }
  }
  throw new HostError('temporal_not_found', {
    reason: `No Temporal server could be had (${tried.join('; ')}). ${ADVICE}`,
  });
}

async function fromPath({ env }: ProgramOptions): Promise<Found> {
  const path = await findOnPath('temporal', env.PATH);
  if (path === undefined) throw new NoWay('no `temporal` on PATH');
  return {
    kind: 'dev',
    path,
    what: `using the CLI, ${await checkVersion(path, { PATH: env.PATH, HOME: env.HOME })}`,
  };
}

async function fromCache(options: ProgramOptions): Promise<Found> {
  const { cacheDir } = options;
  const own = await cachedDevServer(options);
  const kept = [...(own ? [own] : []), ...CLI_VERSIONS.map((it) => cachedCli(cacheDir, it))];
  let fault: string | undefined;
  for (const path of kept) {
    try {
      const version = await usable(path);
      if (version !== undefined) return { kind: 'dev', path, what: `using the cached ${version}` };
    } catch (error) {
      // One that does not run, or was replaced: the others may do, and the ways that follow.
      fault = (error as Error).message;
    }
  }
  throw new NoWay(fault ?? `none cached in ${cacheDir}`);
}

function time(ms: number): string {
  if (ms < SAID_FROM_MS) return '';
  const seconds = ms / 1000;
  if (seconds < 60) return ` (${seconds.toFixed(1)} s)`;
  return ` (${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s)`;
}
