// Temporal's server built with Go: our own dev server out of the server's packages (dev-server/), else the CLI.
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { findOnPath, runProgram, type Environment } from '../../../system/programs.ts';
import {
  againIfPassing,
  cachedCli,
  CLI_VERSIONS,
  digestOf,
  fetchFault,
  inFreshFolder,
  isBelow,
  keep,
  NoWay,
  parseVersion,
  sourcesOf,
  type Found,
  type ProgramOptions,
} from './steps.ts';

const BUILD_LIMIT_MS = 20 * 60_000;
const GO_LIMIT_MS = 10_000;
/** Older ones cannot read the go.mod files, newer ones fetch the toolchain that these ask for. */
const MINIMUM_GO = [1, 21, 0] as const;
/**
 * Of the dev server. What an archive in Google's cloud would take over gRPC, and what debuggers read, is a fifth of the
 * work, and neither is used here.
 */
const BUILD_FLAGS = [
  '-trimpath',
  '-mod=readonly',
  '-tags=disable_grpc_modules',
  '-gcflags=all=-dwarf=false',
  '-ldflags=-s -w',
];
const CLI_PACKAGE = 'github.com/temporalio/cli/cmd/temporal';

/** Builds dev-server/ into the cache. Throws NoWay. */
export async function byDevServerBuild(options: ProgramOptions): Promise<Found> {
  const { cacheDir, report, signal } = options;
  const target = await cachedDevServer(options);
  if (target === undefined) throw new NoWay('the sources of the dev server are not here');
  const go = await findGo(options.env, 'to build the dev server with');
  report('Temporal: building its dev server with Go, once (3 to 5 minutes)');
  return inFreshFolder(cacheDir, 'build', async (folder) => {
    const built = join(folder, 'dev-server');
    const build = ['build', ...BUILD_FLAGS, '-o', built, '.'];
    await runGo(go, build, { options, folder, cwd: sourcesOf(options), what: 'the build', signal });
    const { path, version } = await keep(built, target);
    return { kind: 'dev', path, what: `built the dev server, ${version}` };
  });
}

/** `go install` of the CLI, from a short list of versions. Throws NoWay. */
export async function byGoInstall(options: ProgramOptions): Promise<Found> {
  const { cacheDir, env, report, signal } = options;
  const go = await findGo(env, 'to install the CLI with');
  report('Temporal: building the CLI with `go install` (3 to 5 minutes)');
  const refusals: string[] = [];
  for (const version of CLI_VERSIONS) {
    try {
      return await inFreshFolder(cacheDir, 'build', async (folder) => {
        const install = ['install', `${CLI_PACKAGE}@${version}`];
        await runGo(go, install, { options, folder, cwd: folder, what: version, signal });
        const kept = await keep(join(folder, 'temporal'), cachedCli(cacheDir, version));
        return { kind: 'dev', path: kept.path, what: `built the CLI, ${kept.version}` };
      });
    } catch (error) {
      if (!(error instanceof NoWay) || signal?.aborted) throw error;
      refusals.push(error.message);
    }
  }
  throw new NoWay(`\`go install\` of the CLI: ${refusals.join('; ')}`);
}

/**
 * Where a dev server of these very sources is kept; undefined without sources. The name holds their digest, so that
 * an upgrade of this host builds its own.
 */
export async function cachedDevServer(options: ProgramOptions): Promise<string | undefined> {
  const folder = sourcesOf(options);
  const names = await readdir(folder).catch(() => [] as string[]);
  const sources = names
    .filter((name) => /^go\.(mod|sum)$|\.go$/.test(name) && !name.endsWith('_test.go'))
    .sort();
  if (!sources.includes('go.mod')) return undefined;
  return join(options.cacheDir, `dev-server-${await digestOf(folder, sources)}`);
}

async function findGo(env: Environment, why: string): Promise<string> {
  const go = await findOnPath('go', env.PATH);
  if (go === undefined) throw new NoWay(`no \`go\` on PATH ${why}`);
  const said = await runProgram(go, ['version'], { env, limitMs: GO_LIMIT_MS }).catch(() => '');
  const version = /go(\d+\.\d+(\.\d+)?)/.exec(said)?.[1];
  if (version === undefined || isBelow(parseVersion(version), MINIMUM_GO)) {
    const wanted = MINIMUM_GO.slice(0, 2).join('.');
    throw new NoWay(`Go ${wanted} or newer is needed, and ${go} is ${version ?? 'something else'}`);
  }
  return go;
}

interface GoRun {
  readonly options: ProgramOptions;
  /** Deleted afterwards. */
  readonly folder: string;
  readonly cwd: string;
  readonly what: string;
  readonly signal?: AbortSignal;
}

function runGo(go: string, args: readonly string[], run: GoRun): Promise<void> {
  const { options, folder, cwd, what, signal } = run;
  const env: Environment = {
    ...options.env,
    // No C compiler is needed, and a workspace of the user's is none of ours.
    CGO_ENABLED: '0',
    GOWORK: 'off',
    GOBIN: folder,
    // Without a home Go does not know where to keep modules and objects.
    ...(options.env.HOME || options.env.GOCACHE
      ? {}
      : {
          GOCACHE: join(folder, 'objects'),
          GOPATH: join(folder, 'modules'),
          GOFLAGS: '-modcacherw',
        }),
  };
  return againIfPassing(signal, async () => {
    try {
      await runProgram(go, args, { env, cwd, limitMs: BUILD_LIMIT_MS, signal });
    } catch (error) {
      throw fetchFault(what, error);
    }
  });
}
