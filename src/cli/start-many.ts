// `openwop start … --each FILE`: a run for each line of a file of JSON Lines, one after the other, so that they are listed
// in its order; and, with --follow, what became of them.
import type { RunCreateResponse, RunSnapshot } from '../../schemas/types.generated.ts';
import type { JsonObject } from '../rules/json.ts';
import { printable } from '../words/printable.js';
import { STATUS_WORDS } from '../words/status.ts';
import { CALLED, freshKey, type Cli, type JsonFlag } from './cli.ts';
import { CliFault, EXIT, usageFault, type ExitCode } from './faults.ts';
import { INPUTS_SHAPE, jsonObjectOf } from './json-argument.ts';
import { lookUntil } from './looking.ts';
import { getRun, RUNS } from './run-reads.ts';
import { statusText } from './run-tables.ts';
import { textOfFile } from './text-file.ts';

/** Most lines of one file. */
const MAX_LINES = 1_000;
/** Ids of one status that are told: `runs` lists all. */
const MAX_TOLD = 10;
/** What a run is not waited for any longer: it ended, or somebody outside has to do something. */
const RESTS: ReadonlySet<string> = new Set<RunSnapshot['status']>([
  ...(['completed', 'failed', 'cancelled', 'paused'] as const),
  ...(['waiting-approval', 'waiting-input', 'waiting-external'] as const),
]);

export interface ManyFlags extends JsonFlag {
  readonly follow?: true;
  readonly idempotencyKey?: string;
}

export interface Many {
  readonly workflowId: string;
  readonly file: string;
  /** The request, but for what the line says. */
  readonly bodyOf: (inputs: JsonObject) => object;
}

type Started = Pick<RunCreateResponse, 'runId'> & { readonly status: string };

export async function startMany(
  cli: Cli,
  flags: ManyFlags,
  { workflowId, file, bodyOf }: Many,
): Promise<void> {
  const lines = linesOf(textOfFile(file), file);
  const key = flags.idempotencyKey ?? freshKey();
  const runs: Started[] = [];
  for (const { line, inputs } of lines) {
    const asked = { body: bodyOf(inputs), idempotencyKey: `${key}-${line}` };
    const run = await cli.client
      .post<RunCreateResponse>(RUNS, asked)
      .catch(namedLine({ file, line, runs, key }));
    runs.push(run);
  }
  if (!flags.follow) {
    const words = `${runs.length} runs of ${workflowId} begun. \`${CALLED} runs --workflow ${workflowId}\` lists them.`;
    return cli.tell(flags, { runs }, () => printable(words));
  }
  if (!flags.json) cli.note(`${runs.length} runs of ${workflowId} begun.`);
  const rested: Started[] = [];
  for (const { runId } of runs) rested.push({ runId, status: await restOf(cli, runId) });
  cli.tell(flags, { runs: rested }, () => becameText(workflowId, rested));
  cli.ends(codeOf(rested));
}

/** What had begun before stays, and a repeat with the key finds it. */
function namedLine(at: {
  readonly file: string;
  readonly line: number;
  readonly runs: readonly Started[];
  readonly key: string;
}): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof CliFault)) throw error;
    const { file, line, runs, key } = at;
    const words = `Line ${line} of ${file}: ${error.message}\nRuns that began before it: ${runs.length}. With --idempotency-key ${key} it goes on from there.`;
    const more = { line, runs, idempotencyKey: key };
    throw new CliFault(words, { ...error.facts, more, cause: error });
  };
}

function restOf(cli: Cli, runId: string): Promise<string> {
  return lookUntil(cli, async () => {
    const { status } = await getRun(cli.client, runId);
    return RESTS.has(status) ? status : undefined;
  });
}

function codeOf(runs: readonly Started[]): ExitCode {
  const statuses = new Set(runs.map(({ status }) => status));
  if (statuses.has('failed') || statuses.has('cancelled')) return EXIT.refused;
  return [...statuses].every((status) => status === 'completed') ? EXIT.done : EXIT.waits;
}

function becameText(workflowId: string, runs: readonly Started[]): string {
  const groups = Object.keys(STATUS_WORDS)
    .map((status) => [status, runs.filter((run) => run.status === status)] as const)
    .filter(([, those]) => those.length > 0);
  const counts = groups.map(([status, { length }]) => `${length} ${statusText(status)}`);
  const told = groups
    .filter(([status]) => status !== 'completed')
    .map(([status, those]) => {
      const ids = those.slice(0, MAX_TOLD).map(({ runId }) => runId);
      const more = those.length > MAX_TOLD ? [`and ${those.length - MAX_TOLD} more`] : [];
      return `${statusText(status)}: ${[...ids, ...more].join(', ')}`;
    });
  const head = `${runs.length} runs of ${workflowId}: ${counts.join(', ')}.`;
  return [head, ...told].map(printable).join('\n');
}

interface Line {
  /** From 1. */
  readonly line: number;
  readonly inputs: JsonObject;
}

/** All are read before the first run begins. Throws a usage fault with the line that is no JSON object. */
function linesOf(text: string, file: string): readonly Line[] {
  const all = text.split('\n').map((said, at) => ({ said, line: at + 1 }));
  const lines = all.filter(({ said }) => said.trim() !== '');
  if (lines.length === 0) throw usageFault(`The file ${file} has no lines.`);
  if (lines.length > MAX_LINES)
    throw usageFault(`The file ${file} has ${lines.length} lines: ${MAX_LINES} are the most.`);
  return lines.map(({ said, line }) => {
    const inputs = jsonObjectOf(said, `Line ${line} of ${file}`, INPUTS_SHAPE);
    return { line, inputs };
  });
}
