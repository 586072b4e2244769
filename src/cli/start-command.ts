// `openwop start` and `openwop workflows`: what can be started, and a run of it.
import type { Readable } from 'node:stream';
import type { Command } from 'commander';
import type {
  RunCreateResponse,
  WorkflowDefinition,
  WorkflowVariable,
} from '../../schemas/types.generated.ts';
import type { JsonObject } from '../rules/json.ts';
import { printable, printableJson } from '../words/printable.js';
import { CALLED, collect, freshKey, type Cli, type JsonFlag } from './cli.ts';
import { CliFault, codeOf, usageFault } from './faults.ts';
import { followRun } from './follow.ts';
import type { HostClient } from './host-client.ts';
import { inputsOf } from './input-values.ts';
import { INPUTS_SHAPE, jsonObjectOf } from './json-argument.ts';
import { command, DEFAULT_COMMAND } from './run-commands.ts';
import { RUNS } from './run-reads.ts';
import { statusText } from './run-tables.ts';
import { startMany } from './start-many.ts';
import { fields, table } from './terminal.ts';
import { textOf, textOfFile } from './text-file.ts';

const WORKFLOWS = '/v1/host/openwop-temporal/workflows';
/** Largest input of `--inputs -`, in bytes: what the host takes is less. */
const MAX_INPUT_BYTES = 1024 * 1024;

interface StartFlags extends JsonFlag {
  readonly input?: readonly string[];
  readonly inputs?: string;
  readonly each?: string;
  readonly tag?: readonly string[];
  readonly dataSubject?: string;
  readonly follow?: true;
  readonly rehearsal?: true;
  readonly idempotencyKey?: string;
}

export interface WorkflowView {
  readonly workflowId: string;
  readonly name: string;
  readonly version: string;
  readonly description?: string;
  readonly inputs: readonly WorkflowVariable[];
}

export function listWorkflows(client: HostClient, limitMs?: number) {
  return client.get<{ workflows: readonly WorkflowView[] }>(WORKFLOWS, limitMs);
}

export function addStartCommands(program: Command, cli: Cli): void {
  command(program, 'start <workflowId>', 'Start a run of a workflow.')
    .option(
      '--input <name=value>',
      'an input, typed as the workflow says; name:=JSON as it is',
      collect,
    )
    .option('--inputs <JSON>', 'all inputs as one object: JSON, @file, or - for the input')
    .option(
      '--each <file>',
      'a run for each line: a JSON object of inputs, over those said otherwise',
    )
    .option('--tag <tag>', 'a tag (again for each)', collect)
    .option('--data-subject <subject>', 'whose data the run holds: `subjects erase` erases it')
    .option('--follow', 'follow the run until it ends; --each: wait until each has, or asks')
    .option('--rehearsal', 'its clock stands until you skip time (npm start only)')
    .option('--idempotency-key <key>', 'the same key starts one run, for 24 hours')
    .action((workflowId: string, flags: StartFlags) => startRun(cli, workflowId, flags));
  const workflows = program.command('workflows').description('What can be started.');
  command(workflows, DEFAULT_COMMAND, 'All workflows (the default).')
    .allowExcessArguments()
    .action(async (flags: JsonFlag, list: Command) => {
      const [unknown] = list.args;
      if (unknown !== undefined) list.error(`error: unknown command '${unknown}'`);
      const answer = await listWorkflows(cli.client);
      cli.tell(flags, answer, () => workflowsTable(cli, answer.workflows));
    });
  command(workflows, 'show <workflowId>', 'One workflow: its inputs and its steps.').action(
    async (workflowId: string, flags: JsonFlag) => {
      const definition = await getWorkflow(cli.client, workflowId);
      cli.tell(flags, definition, () => workflowText(cli, definition));
    },
  );
}

async function startRun(cli: Cli, workflowId: string, flags: StartFlags): Promise<void> {
  const { variables } = await getWorkflow(cli.client, workflowId);
  const inputs = {
    ...(flags.inputs === undefined ? {} : await wholeInputs(cli, flags.inputs)),
    ...inputsOf(flags.input ?? [], variables),
  };
  const bodyOf = (more: JsonObject): object => ({
    ...{ workflowId, inputs: { ...inputs, ...more } },
    ...(flags.tag === undefined ? {} : { tags: flags.tag }),
    ...(flags.dataSubject === undefined ? {} : { dataSubject: flags.dataSubject }),
    ...(flags.rehearsal ? { rehearsal: true } : {}),
  });
  if (flags.each !== undefined)
    return startMany(cli, flags, { workflowId, file: flags.each, bodyOf });
  const body = bodyOf({});
  const idempotencyKey = flags.idempotencyKey ?? freshKey();
  const started = await cli.client.post<RunCreateResponse>(RUNS, { body, idempotencyKey });
  const { runId, status, warnings = [] } = started;
  if (typeof runId !== 'string')
    throw new CliFault('The host does not say which run it started.', { code: 'not_a_host' });
  for (const { message } of warnings) if (!flags.json) cli.note(`Warning: ${message}`);
  if (flags.json) cli.out(`${printableJson(started, flags.follow ? undefined : 2)}\n`);
  else cli.out(`Run ${printable(runId)}: ${statusText(status)}.\n`);
  if (flags.follow) cli.ends(await followRun(cli, runId, { json: flags.json }));
  else if (!flags.json) cli.note(`Follow it: ${CALLED} runs follow ${runId}`);
}

/** JSON, @file or - for the input: an object. */
async function wholeInputs({ input }: Cli, given: string): Promise<JsonObject> {
  const typed = given === '-' ? await readAll(input) : given;
  const text = given.startsWith('@') ? textOfFile(given.slice(1)) : typed;
  return jsonObjectOf(text, '--inputs', INPUTS_SHAPE);
}

async function readAll(input: Readable | undefined): Promise<string> {
  const pieces: Buffer[] = [];
  let length = 0;
  // A piece may end within a character.
  for await (const piece of (input ?? []) as AsyncIterable<Buffer | string>) {
    const bytes = typeof piece === 'string' ? Buffer.from(piece) : piece;
    pieces.push(bytes);
    length += bytes.length;
    if (length > MAX_INPUT_BYTES)
      throw usageFault(`--inputs are larger than ${MAX_INPUT_BYTES} bytes.`);
  }
  return textOf(Buffer.concat(pieces), 'The input of --inputs');
}

/** Throws CliFault. */
export function getWorkflow(client: HostClient, workflowId: string): Promise<WorkflowDefinition> {
  return client
    .get<WorkflowDefinition>(`/v1/workflows/${encodeURIComponent(workflowId)}`)
    .catch((error: unknown) => {
      if (codeOf(error) !== 'workflow_not_found') throw error;
      throw new CliFault(
        `The host knows no workflow ${workflowId}. \`${CALLED} workflows\` lists them.`,
        { ...(error as CliFault).facts, cause: error },
      );
    });
}

function workflowsTable({ screen }: Cli, workflows: readonly WorkflowView[]): string {
  if (workflows.length === 0) return 'No workflows.';
  return table(
    ['WORKFLOW', 'NAME', 'INPUTS'],
    workflows.map(({ workflowId, name, inputs }) => [
      ...[workflowId, name],
      inputs.map((each) => (each.required ? each.name : `[${each.name}]`)).join(' '),
    ]),
    { screen },
  );
}

function workflowText({ screen }: Cli, definition: WorkflowDefinition): string {
  const { id, name, version, description, variables, nodes } = definition;
  const head = fields(
    [
      ['Workflow', id],
      ['Name', name],
      ['Version', version],
      ['About', description],
    ],
    screen,
  );
  const inputs = table(
    ['INPUT', 'TYPE', 'REQUIRED', 'DEFAULT', 'ABOUT'],
    variables.map((each) => [
      ...[each.name, each.type, each.required ? 'yes' : 'no'],
      each.defaultValue === undefined ? undefined : JSON.stringify(each.defaultValue),
      each.description,
    ]),
    { screen },
  );
  const steps = table(
    ['STEP', 'NAME', 'KIND', 'AGENT'],
    nodes.map((node) => [node.id, node.name, node.typeId, node.agent?.agentId]),
    { screen },
  );
  return [head, ...(variables.length > 0 ? [`Inputs\n${inputs}`] : []), `Steps\n${steps}`].join(
    '\n\n',
  );
}
