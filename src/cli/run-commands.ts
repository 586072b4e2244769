// `openwop runs …`: what runs do and did, and what may be done with one.
import { InvalidArgumentError, Option, type Command } from 'commander';
import type { RunOverview, RunOverviewList } from '../../schemas/types.generated.ts';
import { STATUS_WORDS } from '../words/status.ts';
import { answerRun, type AnswerFlags } from './answer-command.ts';
import { CALLED, collect, freshKey, type Cli, type JsonFlag } from './cli.ts';
import { followRun, type FollowFlags } from './follow.ts';
import { getAsking, getQuestions, getRun, namedRun, OVERVIEW, runPath } from './run-reads.ts';
import { runsTable, runText, statusText } from './run-tables.ts';

export const DEFAULT_COMMAND = 'list';
const DEFAULT_RUNS = 50;
/** Most runs that one command lists; more are read by the API, page by page. */
const MAX_RUNS = 10_000;
/** Runs that the host gives at once. */
const PAGE_RUNS = 200;

interface ListFlags extends JsonFlag {
  readonly status?: string;
  readonly workflow?: string;
  readonly waiting?: true;
  readonly limit: number;
}

/** Returns the command that holds them: others of runs stand beside them. */
export function addRunCommands(program: Command, cli: Cli): Command {
  const runs = program.command('runs').description('What runs do, and what may be done with them.');
  addReads(runs, cli);
  command(runs, 'answer <runId> [action]', 'Answer what a run asks; without ACTION the choices.')
    .option('--node <nodeId>', 'the question of this node')
    .option('--interrupt <id>', 'this question')
    .option('--answer <id=text>', 'the answer to one question of several (again for each)', collect)
    .option('--reason <text>', 'why, or what should change')
    .option(
      '--value <JSON>',
      'the changed value, with edit-accept; the outcome, with close; alone the whole answer',
    )
    .action(async (runId: string, action: string | undefined, flags: AnswerFlags) =>
      answerRun(cli, { runId, action, flags }),
    );
  const messages = [
    ['cancel', 'End a run. What it began is closed in order.', '/cancel'],
    ['pause', 'Hold a run: nothing new begins until it is resumed.', ':pause'],
    ['resume', 'Let a paused run go on.', ':resume'],
  ] as const;
  for (const [name, description, address] of messages)
    command(runs, `${name} <runId>`, description)
      .option('--reason <text>', 'why, for the log of the run')
      .action(async (runId: string, flags: JsonFlag & { reason?: string }) => {
        const body = flags.reason === undefined ? {} : { reason: flags.reason };
        const answer = await cli.client
          .post<{ status: string }>(runPath(runId) + address, { body, idempotencyKey: freshKey() })
          .catch(namedRun(runId));
        cli.tell(flags, answer, () => `Run ${runId}: ${statusText(answer.status)}.`);
      });
  return runs;
}

function addReads(runs: Command, cli: Cli): void {
  command(runs, DEFAULT_COMMAND, 'Runs, newest first (the default).')
    .addOption(new Option('--status <status>', 'only those').choices(Object.keys(STATUS_WORDS)))
    .option('--workflow <workflowId>', 'only of this workflow')
    .option('--waiting', 'only what waits for a human, the soonest deadline first')
    .option('--limit <n>', `runs, up to ${MAX_RUNS}`, numberTo(1, MAX_RUNS), DEFAULT_RUNS)
    // What follows `runs` and is no command arrives here: it is to be called by its name.
    .allowExcessArguments()
    .action(async (flags: ListFlags, list: Command) => {
      const [unknown] = list.args;
      if (unknown !== undefined)
        list.error(`error: unknown command '${unknown}' (a run is shown by: runs show RUN)`);
      await listRuns(cli, flags);
    });
  command(
    runs,
    'show <runId>',
    'One run: its values, its end, what it and the runs below it ask.',
  ).action(async (runId: string, flags: JsonFlag) => {
    const run = await getRun(cli.client, runId);
    const { views, open } = await getQuestions(cli.client, runId);
    const asking = await getAsking(cli.client, runId);
    cli.tell(flags, { ...run, questions: views, asking }, () =>
      runText(run, { open, asking }, { screen: cli.screen, nowMs: Date.now() }),
    );
  });
  command(runs, 'follow <runId>', 'Events as they come, until the run ends.')
    .option('--from <n>', 'begin with this sequence', numberTo(0, Number.MAX_SAFE_INTEGER), 0)
    .option('--until-question', 'end when a human is asked (exit code 3)')
    .action(async (runId: string, flags: FollowFlags) =>
      cli.ends(await followRun(cli, runId, flags)),
    );
}

async function listRuns(cli: Cli, flags: ListFlags): Promise<void> {
  const runs: RunOverview[] = [];
  let nextCursor: string | undefined;
  do {
    const query = new URLSearchParams({
      limit: String(Math.min(PAGE_RUNS, flags.limit - runs.length)),
      ...(flags.status === undefined ? {} : { status: flags.status }),
      ...(flags.workflow === undefined ? {} : { workflowId: flags.workflow }),
      ...(flags.waiting ? { waiting: 'true' } : {}),
      ...(nextCursor === undefined ? {} : { cursor: nextCursor }),
    });
    const page = await cli.client.get<RunOverviewList>(`${OVERVIEW}?${query.toString()}`);
    runs.push(...page.runs);
    ({ nextCursor } = page);
  } while (nextCursor !== undefined && runs.length < flags.limit);
  const document = { runs, ...(nextCursor === undefined ? {} : { nextCursor }) };
  cli.tell(flags, document, () => {
    if (runs.length === 0) return noRuns(flags);
    return runsTable(runs, { screen: cli.screen, nowMs: Date.now() });
  });
  if (nextCursor !== undefined && !flags.json) cli.note('There are more: --limit shows them.');
}

function noRuns({ status, workflow, waiting }: ListFlags): string {
  if (waiting) return 'Nothing waits for a human.';
  if (status !== undefined || workflow !== undefined) return 'No such runs.';
  return `No runs yet. \`${CALLED} workflows\` lists what can be started.`;
}

export function command(parent: Command, usage: string, description: string): Command {
  return parent
    .command(usage, { isDefault: usage === DEFAULT_COMMAND })
    .description(description)
    .option('--json', 'JSON, for programs');
}

export function numberTo(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,16}$/.test(text) ? Number(text) : NaN;
    if (value >= least && value <= most) return value;
    throw new InvalidArgumentError(`It must be a number from ${least} to ${most}.`);
  };
}
