// `openwop deployments …` and `openwop upgrade-check` (docs/upgrades.md): builds of the worker beside each other, which
// takes new runs, which still hold some, and where runs are moved.
import type { Command } from 'commander';
import { printable } from '../words/printable.js';
import { CALLED, type Cli, type JsonFlag } from './cli.ts';
import { CliFault, codeOf, EXIT, usageFault } from './faults.ts';
import { command, DEFAULT_COMMAND, numberTo } from './run-commands.ts';
import { fields, table, type Cell } from './terminal.ts';

const BASE = '/v1/host/openwop-temporal/deployments';
/** Runs that one request names. */
const AT_ONCE = 100;
/** The server tells each queue, and what is moved is told run by run. */
const CHANGE_LIMIT_MS = 120_000;
/** Pages of a hundred runs. */
const MAX_PAGES = 10_000;
const MAX_ENDED = 999_999;

interface Build {
  readonly buildId: string;
  readonly state: string;
  readonly since?: string;
  readonly share: number;
  readonly openRuns: number;
  readonly heldRuns: number;
  readonly hasWorker: boolean;
}

interface BuildList {
  readonly builds: readonly Build[];
  readonly currentBuildId?: string;
  readonly runsWithoutWorker: number;
}

interface BuildRun {
  readonly runId: string;
  readonly held: boolean;
  readonly failing?: { readonly attempt: number; readonly reason?: string };
}

interface Moved {
  readonly moved: readonly string[];
  readonly failed: readonly { readonly runId: string; readonly reason: string }[];
  readonly nextCursor?: string;
}

interface MoveFlags extends JsonFlag {
  readonly allFrom?: string;
  readonly to?: string;
  readonly follow?: true;
}

interface CheckFlags {
  readonly ended?: number;
  readonly build?: string;
}

export function addDeploymentCommands(program: Command, cli: Cli): void {
  const builds = program
    .command('deployments')
    .description('Builds of the worker: which takes new runs, which still hold some.');
  command(builds, DEFAULT_COMMAND, 'All builds, newest first (the default).')
    .allowExcessArguments()
    .action(async (flags: JsonFlag, list: Command) => {
      const [unknown] = list.args;
      if (unknown !== undefined) list.error(`error: unknown command '${printable(unknown)}'`);
      tellBuilds(cli, flags, await cli.client.get<BuildList>(BASE));
    });
  command(builds, 'runs <build>', 'Open runs of a build, and why they do not go on.').action(
    (buildId: string, flags: JsonFlag) => tellRuns(cli, buildId, flags),
  );
  command(builds, 'promote <build>', 'New runs go to this build (unversioned: to none).')
    .option('--percent <n>', 'only this part of them', numberTo(0, 100))
    .action((buildId: string, flags: JsonFlag & { percent?: number }) =>
      promote(cli, buildId, flags),
    );
  command(builds, 'move [runIds...]', 'Open runs go on with another build: the current one.')
    .option('--all-from <build>', 'all that this build holds')
    .option('--to <build>', 'this build, in the place of the current one')
    .option('--follow', 'whatever build is current, now and later')
    .action((runIds: readonly string[], flags: MoveFlags) => move(cli, runIds, flags));
  program
    .command('upgrade-check')
    .description(
      "Replay open runs by this checkout's workflow code, with the environment of a worker: which would break.",
    )
    .option('--ended <n>', 'and this many that have ended', numberTo(0, MAX_ENDED))
    .option('--build <id>', 'only open runs of this build')
    .action(async ({ ended, build }: CheckFlags) => {
      const args = [
        ...(ended === undefined ? [] : ['--ended', String(ended)]),
        ...(build === undefined ? [] : ['--build', build]),
      ];
      cli.ends((await cli.upgradeCheck(args)) === 0 ? EXIT.done : EXIT.refused);
    });
}

function tellBuilds(cli: Cli, flags: JsonFlag, list: BuildList): void {
  const { builds, runsWithoutWorker } = list;
  cli.tell(flags, list, () =>
    builds.length === 0
      ? 'No worker names a build: each takes what comes.'
      : table(
          ['BUILD', 'STATE', 'SINCE', 'NEW RUNS', 'OPEN', 'HELD', 'WORKER'],
          builds.map(rowOf),
          { screen: cli.screen, colourOf: (row) => (isLost(builds[row]) ? 'red' : undefined) },
        ),
  );
  if (flags.json || runsWithoutWorker === 0) return;
  const lost = builds.filter(isLost).map((one) => printable(one.buildId));
  cli.note(`${count(runsWithoutWorker)} for a worker of their build, and none is there.`);
  for (const buildId of lost)
    cli.note(`Start one of ${buildId}, or: ${CALLED} deployments move --all-from ${buildId}`);
}

function count(runs: number): string {
  return runs === 1 ? '1 run waits' : `${runs} runs wait`;
}

function isLost(build: Build | undefined): boolean {
  return build !== undefined && !build.hasWorker && build.heldRuns > 0;
}

function rowOf({ buildId, state, since, share, openRuns, heldRuns, hasWorker }: Build): Cell[] {
  const part = share === 0 ? undefined : `${share} %`;
  return [buildId, state, since, part, openRuns, heldRuns, hasWorker ? 'yes' : 'none'];
}

async function tellRuns(cli: Cli, buildId: string, flags: JsonFlag): Promise<void> {
  const answer = await cli.client
    .get<{ readonly runs: readonly BuildRun[] }>(`${pathOf(buildId)}/runs`, CHANGE_LIMIT_MS)
    .catch(namedBuild(buildId));
  cli.tell(flags, answer, () =>
    answer.runs.length === 0
      ? 'No open run.'
      : answer.runs.map((run) => runText(run, cli)).join('\n\n'),
  );
}

function runText({ runId, held, failing }: BuildRun, { screen }: Cli): string {
  const why = failing && (failing.reason ?? 'the log of its worker and `upgrade-check` say why');
  return fields(
    [
      ['Run', runId],
      ['Held', held ? 'by this build' : 'no: goes with the current one'],
      ['Fails', failing && `its task, at try ${failing.attempt}`, 'red'],
      ['Why', why],
    ],
    screen,
  );
}

async function promote(
  cli: Cli,
  buildId: string,
  flags: JsonFlag & { readonly percent?: number },
): Promise<void> {
  const { percent } = flags;
  const body = percent === undefined ? {} : { percent };
  const list = await cli.client
    .post<BuildList>(`${pathOf(buildId)}/promote`, { body, limitMs: CHANGE_LIMIT_MS })
    .catch(namedBuild(buildId));
  tellBuilds(cli, flags, list);
}

async function move(cli: Cli, runIds: readonly string[], flags: MoveFlags): Promise<void> {
  const { allFrom } = flags;
  if ((allFrom === undefined) === (runIds.length === 0))
    throw usageFault('Say which runs, or --all-from a build.');
  const toBuild = await targetOf(cli, flags);
  const target = toBuild === undefined ? {} : { toBuild };
  const all: Required<Pick<Moved, 'moved' | 'failed'>> =
    allFrom === undefined
      ? await moveNamed(cli, runIds, target)
      : await moveAllFrom(cli, allFrom, target);
  const { moved, failed } = all;
  const where = toBuild === undefined ? 'go with the current build' : `go on with ${toBuild}`;
  cli.tell(flags, all, () =>
    [
      `${moved.length} of ${moved.length + failed.length} ${printable(where)}.`,
      ...failed.map(({ runId, reason }) => printable(`${runId}: ${reason}`)),
    ].join('\n'),
  );
  if (failed.length > 0) cli.ends(EXIT.refused);
}

/** Undefined: none is named. */
async function targetOf(cli: Cli, { to, follow }: MoveFlags): Promise<string | undefined> {
  if (follow && to !== undefined) throw usageFault('Say --to or --follow.');
  if (follow) return undefined;
  if (to !== undefined) return to;
  const { currentBuildId } = await cli.client.get<BuildList>(BASE);
  if (currentBuildId === undefined) throw usageFault('No build is current: say --to, or --follow.');
  return currentBuildId;
}

type Target = { readonly toBuild?: string };

async function moveNamed(cli: Cli, runIds: readonly string[], target: Target): Promise<Moved> {
  const all: Moved[] = [];
  for (let at = 0; at < runIds.length; at += AT_ONCE)
    all.push(await ask(cli, { runIds: runIds.slice(at, at + AT_ONCE), ...target }));
  return joined(all);
}

async function moveAllFrom(cli: Cli, fromBuild: string, target: Target): Promise<Moved> {
  const all: Moved[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES; page++) {
    const more = cursor === undefined ? {} : { cursor };
    const moved = await ask(cli, { fromBuild, ...target, ...more }).catch(namedBuild(fromBuild));
    all.push(moved);
    cursor = moved.nextCursor;
    if (cursor === undefined) break;
  }
  return joined(all);
}

function ask(cli: Cli, body: object): Promise<Moved> {
  return cli.client.post<Moved>(`${BASE}/move`, { body, limitMs: CHANGE_LIMIT_MS });
}

function joined(all: readonly Moved[]): Moved {
  return { moved: all.flatMap((one) => one.moved), failed: all.flatMap((one) => one.failed) };
}

function pathOf(buildId: string): string {
  return `${BASE}/${encodeURIComponent(buildId)}`;
}

/** The host does not repeat which build it lacks. */
function namedBuild(buildId: string): (error: unknown) => never {
  return (error) => {
    if (codeOf(error) !== 'build_not_found') throw error;
    throw new CliFault(
      `The host knows no build ${buildId}. \`${CALLED} deployments\` lists them.`,
      { ...(error as CliFault).facts, cause: error },
    );
  };
}
