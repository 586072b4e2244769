// `openwop fork`: a run made again from another one's record, by something else where that is asked for.
import { Option, type Command } from 'commander';
import type { RunForkOverlay, RunForkRequest, RunSnapshot } from '../../schemas/types.generated.ts';
import type { JsonObject } from '../rules/json.ts';
import { printable, printableJson } from '../words/printable.js';
import { CALLED, collect, freshKey, type Cli, type JsonFlag } from './cli.ts';
import { CliFault, usageFault } from './faults.ts';
import { followRun } from './follow.ts';
import { eachOnce, inputsOf } from './input-values.ts';
import { jsonOf } from './json-argument.ts';
import { command, numberTo } from './run-commands.ts';
import { getRun, namedRun, runPath } from './run-reads.ts';
import { statusText } from './run-tables.ts';
import { getWorkflow } from './start-command.ts';
import { textOfFile } from './text-file.ts';

/** What the host says of the fork. */
interface Made extends JsonObject {
  readonly runId: string;
  readonly status: RunSnapshot['status'];
}

interface ForkFlags extends JsonFlag {
  readonly from?: number;
  readonly replay?: true;
  readonly prompt?: readonly string[];
  readonly agentVersion?: readonly string[];
  readonly model?: string;
  readonly provider?: string;
  readonly input?: readonly string[];
  readonly answer?: string;
  readonly tools?: 'recorded';
  readonly onDivergence?: 'stop' | 'live';
  readonly answers?: 'recorded';
  readonly follow?: true;
}

export function addForkCommand(program: Command, cli: Cli): void {
  command(program, 'fork <runId>', 'Make a run again from what another one recorded.')
    .option(
      '--from <n>',
      'live from this event on; --replay: as it stands before it',
      numberTo(0, Number.MAX_SAFE_INTEGER),
    )
    .option('--replay', 'to its end as it was recorded: nothing is performed, nobody is asked')
    .option('--prompt <agent=file>', 'another prompt for this agent (again for each)', collect)
    .option(
      '--agent-version <agent=version>',
      'this version of an agent, which the host has (again for each)',
      collect,
    )
    .option('--model <name>', 'another model')
    .option('--provider <name>', 'another provider of models')
    .option('--input <name=value>', 'another input, with --from 0 (again for each)', collect)
    .option('--answer <JSON>', 'in the place of the answer that the event --from tells')
    .addOption(
      new Option(
        '--tools <which>',
        'recorded: calls and child runs come to what they came to, nothing is performed',
      ).choices(['recorded']),
    )
    .addOption(
      new Option(
        '--on-divergence <what>',
        'where the code of today states otherwise before --from: live goes on from there',
      ).choices(['stop', 'live']),
    )
    .addOption(
      new Option(
        '--answers <which>',
        'recorded: a question that was asked in the same words gets what people answered there',
      ).choices(['recorded']),
    )
    .option('--follow', 'follow the fork until it ends')
    .action((runId: string, flags: ForkFlags) => forkRun(cli, runId, flags));
}

async function forkRun(cli: Cli, runId: string, flags: ForkFlags): Promise<void> {
  const { from, replay } = flags;
  if (!replay && from === undefined)
    throw usageFault('Say where the fork is to live from (--from N), or --replay.');
  const overlay = await overlayOf(cli, runId, flags);
  const isPlain = Object.keys(overlay).length === 0;
  if (replay && !isPlain)
    throw usageFault('A replay goes by nothing else than its source did: leave --replay out.');
  const body: RunForkRequest = {
    mode: replay ? 'replay' : 'branch',
    fromSeq: from ?? 0,
    ...(isPlain ? {} : { runOptionsOverlay: overlay }),
  };
  const made = await cli.client
    .post<Made>(`${runPath(runId)}:fork`, { body, idempotencyKey: freshKey() })
    .catch(namedRun(runId));
  const { runId: forkId, status } = made;
  if (typeof forkId !== 'string')
    throw new CliFault('The host does not say which run it made.', { code: 'not_a_host' });
  const of = `${replay ? 'a replay' : 'a branch'} of ${runId} from ${from ?? 0}`;
  if (flags.json) cli.out(`${printableJson(made, flags.follow ? undefined : 2)}\n`);
  else cli.out(`Run ${printable(forkId)}, ${printable(of)}: ${statusText(status)}.\n`);
  if (flags.follow) cli.ends(await followRun(cli, forkId, { json: flags.json }));
  else if (!flags.json)
    cli.note(
      `Follow it: ${CALLED} runs follow ${forkId}\nCompare: ${CALLED} diff ${runId} ${forkId}`,
    );
}

async function overlayOf(cli: Cli, runId: string, flags: ForkFlags): Promise<RunForkOverlay> {
  const { model, provider, input = [], answer, from } = flags;
  const { tools, answers, onDivergence } = flags;
  const configurable: JsonObject = {
    ...(model === undefined ? {} : { 'ai.model': model }),
    ...(provider === undefined ? {} : { 'ai.provider': provider }),
  };
  const agents = agentsOf(flags);
  return {
    ...(Object.keys(configurable).length === 0 ? {} : { configurable }),
    ...(agents === undefined ? {} : { agents }),
    ...(input.length === 0 ? {} : { inputs: await inputsFor(cli, runId, input) }),
    ...(answer === undefined
      ? {}
      : { answer: { seq: from ?? 0, value: jsonOf(answer, '--answer') } }),
    ...(tools === undefined ? {} : { tools }),
    ...(onDivergence === undefined ? {} : { onDivergence }),
    ...(answers === undefined ? {} : { answers }),
  };
}

async function inputsFor({ client }: Cli, runId: string, given: readonly string[]) {
  const { workflowId } = await getRun(client, runId);
  const { variables } = await getWorkflow(client, workflowId);
  return inputsOf(given, variables);
}

/** What is another of each agent; undefined: nothing. */
export function agentsOf({
  prompt = [],
  agentVersion = [],
}: Pick<ForkFlags, 'prompt' | 'agentVersion'>): RunForkOverlay['agents'] {
  const prompts = eachOnce('--prompt', prompt, promptOf);
  const versions = eachOnce('--agent-version', agentVersion, versionOf);
  const names = [...new Set([...Object.keys(prompts), ...Object.keys(versions)])];
  if (names.length === 0) return undefined;
  return Object.fromEntries(names.map((name) => [name, { ...versions[name], ...prompts[name] }]));
}

function versionOf(given: string): [string, { packVersion: string }] {
  const at = given.indexOf('=');
  if (at < 1) throw usageFault(`--agent-version is agent=version, and not "${given}".`);
  return [given.slice(0, at), { packVersion: given.slice(at + 1) }];
}

function promptOf(given: string): [string, { systemPrompt: string }] {
  const at = given.indexOf('=');
  if (at < 1) throw usageFault(`--prompt is agent=file, and not "${given}".`);
  return [given.slice(0, at), { systemPrompt: textOfFile(given.slice(at + 1)) }];
}
