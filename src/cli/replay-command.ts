// `openwop replay …`: many past runs forked by one change, and what became of each: a look at a fix, and a gate for CI.
import { Option, type Command } from 'commander';
import type { Cohort, CohortCreateRequest } from '../../schemas/types.generated.ts';
import type { JsonObject } from '../rules/json.ts';
import { CALLED, collect, freshKey, type Cli, type JsonFlag } from './cli.ts';
import { cohortsTable, reportText } from './cohort-tables.ts';
import { CliFault, codeOf, EXIT, usageFault } from './faults.ts';
import { agentsOf } from './fork-command.ts';
import { jsonObjectOf } from './json-argument.ts';
import { lookUntil } from './looking.ts';
import { addGateOptions, checkGate, gateOf, gateText, type GateFlags } from './replay-gate.ts';
import { command, numberTo } from './run-commands.ts';

const COHORTS = '/v1/host/openwop-temporal/cohorts';
/** Members that the host gives at once. */
const PAGE_MEMBERS = 200;

interface ReplayFlags extends JsonFlag, GateFlags {
  readonly last: number;
  readonly workflow?: string;
  readonly status?: NonNullable<CohortCreateRequest['select']['status']>;
  readonly tag?: string;
  readonly session?: string;
  readonly from?: string;
  readonly until?: string;
  readonly prompt?: readonly string[];
  readonly agentVersion?: readonly string[];
  readonly model?: string;
  readonly provider?: string;
  readonly configurable?: string;
  readonly build?: string;
  readonly parallel?: number;
  readonly memberTimeout?: number;
  readonly cancelOnInterrupt?: true;
}

export function addReplayCommands(program: Command, cli: Cli): void {
  const replay = program
    .command('replay')
    .description('Many past runs again, by one change, and what becomes of each.');
  addStart(replay, cli);
  command(replay, 'show <cohortId>', 'The progress and the report of a cohort.').action(
    async (cohortId: string, flags: JsonFlag) => {
      const cohort = await wholeCohort(cli, cohortId);
      cli.tell(flags, cohort, () => reportText(cohort, cli.screen));
    },
  );
  command(replay, 'cohorts', 'Cohorts, newest first.')
    .alias('list')
    .action(async (flags: JsonFlag) => {
      const page = await cli.client.get<{ cohorts: Cohort[] }>(COHORTS);
      cli.tell(flags, page, () => cohortsTable(page.cohorts, cli.screen));
    });
  command(
    replay,
    'cancel <cohortId>',
    'Begin no more forks, and cancel those that are open.',
  ).action(async (cohortId: string, flags: JsonFlag) => {
    const cohort = await cancel(cli, cohortId);
    cli.tell(flags, cohort, () => `Cohort ${cohortId}: ${cohort.state}.`);
  });
}

function addStart(replay: Command, cli: Cli): void {
  const start = replay
    .command('start', { isDefault: true })
    .description('Begin one and wait for its report (the default).')
    .option('--json', 'JSON, for programs')
    .option('--last <n>', 'so many of the newest runs, up to 1000', numberTo(1, 1_000), 50)
    .option('--workflow <workflowId>', 'only of this workflow')
    .addOption(
      new Option('--status <status>', 'only those').choices(['completed', 'failed', 'cancelled']),
    )
    .option('--tag <tag>', 'only with this tag')
    .option('--session <sessionId>', 'only of this session')
    .option('--from <time>', 'only accepted at this time (ISO 8601) or later')
    .option('--until <time>', 'only accepted before this time')
    .option('--prompt <agent=file>', 'another prompt for this agent (again for each)', collect)
    .option(
      '--agent-version <agent=version>',
      'this version of an agent, which the host has',
      collect,
    )
    .option('--model <name>', 'another model')
    .option('--provider <name>', 'another provider of models')
    .option('--configurable <JSON>', 'other options of the runs')
    .option('--build <id>', 'the code of this build of the worker, which need not be current yet')
    .option('--parallel <n>', 'forks at once, up to 16', numberTo(1, 16))
    .option('--member-timeout <seconds>', 'longest time of one fork', numberTo(1, 3_600))
    .option('--cancel-on-interrupt', 'Ctrl-C cancels the cohort, which goes on otherwise');
  addGateOptions(start).action((flags: ReplayFlags) => replayRuns(cli, flags));
}

async function replayRuns(cli: Cli, flags: ReplayFlags): Promise<void> {
  const body = await requestOf(flags);
  const { agents, configurable } = body.change ?? {};
  checkGate(flags, agents !== undefined || configurable !== undefined);
  const { cohortId, members } = await cli.client.post<Cohort>(COHORTS, {
    ...{ body, idempotencyKey: freshKey() },
  });
  if (!flags.json) cli.note(`Cohort ${cohortId}: ${members} runs.`);
  try {
    await ended(cli, cohortId, flags);
    const cohort = await wholeCohort(cli, cohortId);
    const gate = gateOf(cohort, flags);
    const document = gate === undefined ? cohort : { ...cohort, gate };
    cli.tell(flags, document, () => {
      const report = reportText(cohort, cli.screen, gate?.righted);
      return gate === undefined ? report : `${report}\n\n${gateText(gate, cli.screen)}`;
    });
    if (cohort.state === 'cancelled') cli.ends(EXIT.cancelled);
    else cli.ends(gate?.passed === false ? EXIT.refused : EXIT.done);
  } catch (error) {
    if (!cli.signal.aborted) throw error;
    throw await interruptedFault(cli, cohortId, flags);
  }
}

/** The cohort is the host's: it goes on without this program, unless that was asked for. */
async function interruptedFault(
  { afresh }: Cli,
  cohortId: string,
  { cancelOnInterrupt }: ReplayFlags,
): Promise<CliFault> {
  const isCancelled =
    cancelOnInterrupt &&
    (await afresh()
      .post(`${COHORTS}/${cohortId}/cancel`)
      .then(
        () => true,
        () => false,
      ));
  const words = isCancelled
    ? `Cohort ${cohortId} is cancelled.`
    : `The cohort goes on without you. \`${CALLED} replay show ${cohortId}\` shows it, \`${CALLED} replay cancel ${cohortId}\` ends it.`;
  return new CliFault(words, { code: 'interrupted', exitCode: EXIT.interrupted });
}

async function ended(cli: Cli, cohortId: string, { json }: ReplayFlags): Promise<void> {
  let told = 0;
  await lookUntil(cli, async () => {
    const cohort = await cli.client.get<Cohort>(`${COHORTS}/${cohortId}?limit=0`);
    if (cohort.endedAt !== undefined) return cohort;
    if (!json && cohort.settled > told) cli.note(`${cohort.settled} of ${cohort.members}`);
    told = cohort.settled;
    return undefined;
  });
}

async function wholeCohort(cli: Cli, cohortId: string): Promise<Cohort> {
  const results: NonNullable<Cohort['results']> = [];
  for (let from: number | undefined = 0; ;) {
    const query: string = new URLSearchParams({
      ...{ from: String(from), limit: String(PAGE_MEMBERS) },
    }).toString();
    const { nextFrom, ...page }: Cohort = await cli.client
      .get<Cohort>(`${COHORTS}/${encodeURIComponent(cohortId)}?${query}`)
      .catch(namedCohort(cohortId));
    results.push(...(page.results ?? []));
    if (nextFrom === undefined) return { ...page, results };
    from = nextFrom;
  }
}

function cancel({ client }: Cli, cohortId: string): Promise<Cohort> {
  return client
    .post<Cohort>(`${COHORTS}/${encodeURIComponent(cohortId)}/cancel`)
    .catch(namedCohort(cohortId));
}

/** The host does not repeat which one it lacks. */
function namedCohort(cohortId: string): (error: unknown) => never {
  return (error) => {
    if (codeOf(error) !== 'not_found') throw error;
    throw new CliFault(
      `The host knows no cohort ${cohortId}. \`${CALLED} replay list\` lists them.`,
      {
        ...(error as CliFault).facts,
        cause: error,
      },
    );
  };
}

async function requestOf(flags: ReplayFlags): Promise<CohortCreateRequest> {
  const { last, workflow, status, tag, session, from, until, parallel, memberTimeout } = flags;
  const change = changeOf(flags);
  return {
    select: {
      last,
      ...(workflow === undefined ? {} : { workflowId: workflow }),
      ...(status === undefined ? {} : { status }),
      ...(tag === undefined ? {} : { tag }),
      ...(session === undefined ? {} : { sessionId: session }),
      ...(from === undefined ? {} : { from: timeOf(from) }),
      ...(until === undefined ? {} : { until: timeOf(until) }),
    },
    ...(Object.keys(change).length === 0 ? {} : { change }),
    ...(parallel === undefined ? {} : { parallel }),
    ...(memberTimeout === undefined ? {} : { memberTimeoutMs: memberTimeout * 1_000 }),
  };
}

function timeOf(text: string): string {
  const atMs = Date.parse(text);
  if (Number.isNaN(atMs))
    throw usageFault(`"${text}" is no time: it is written as 2026-01-31T12:00:00Z.`);
  return new Date(atMs).toISOString();
}

function changeOf(flags: ReplayFlags): NonNullable<CohortCreateRequest['change']> {
  const { model, provider, configurable, build } = flags;
  const options: JsonObject = {
    ...optionsIn(configurable),
    ...(model === undefined ? {} : { 'ai.model': model }),
    ...(provider === undefined ? {} : { 'ai.provider': provider }),
  };
  const agents = agentsOf(flags);
  return {
    ...(build === undefined ? {} : { build }),
    ...(agents === undefined ? {} : { agents }),
    ...(Object.keys(options).length === 0 ? {} : { configurable: options }),
  };
}

function optionsIn(text: string | undefined): JsonObject {
  if (text === undefined) return {};
  return jsonObjectOf(text, '--configurable', 'a JSON object');
}
