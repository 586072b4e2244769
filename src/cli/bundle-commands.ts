// `openwop export` and `openwop import`: a run as one file, and its replay without the host that it is of.
import { randomBytes } from 'node:crypto';
import { link, open, rename, rm } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { RunBundle } from '../../schemas/types.generated.ts';
import type { Difference, ReplayReport, Side } from '../rules/replayed.ts';
import { printable } from '../words/printable.js';
import type { Cli, JsonFlag } from './cli.ts';
import { CliFault, EXIT, usageFault } from './faults.ts';
import { command } from './run-commands.ts';
import { namedRun, OVERVIEW } from './run-reads.ts';
import { statusText } from './run-tables.ts';

/** Time in ms that the host may take to put a long run together. */
const EXPORT_LIMIT_MS = 120_000;
/** Longest payload of a difference that is shown, in characters; `--json` has it whole. */
const SHOWN_PAYLOAD = 2_000;
/** An id that is a plain name in any folder. */
const PLAIN_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

interface ExportFlags extends JsonFlag {
  readonly force?: true;
}

export function addBundleCommands(program: Command, cli: Cli): void {
  command(program, 'export <runId> [file]', 'Write a run into one file, to be replayed elsewhere.')
    .option('--force', 'replace a file that is there')
    .action((runId: string, file: string | undefined, flags: ExportFlags) =>
      exportRun(cli, { runId, file, flags }),
    );
  command(
    program,
    'import <file>',
    'Replay the run of such a file: no host, model or tool is asked.',
  )
    // Beside --json, which every command has.
    .action(async (file: string, flags: JsonFlag) => {
      const report = await cli.replay(resolve(file));
      if (report.kind === 'refused') throw new CliFault(report.message, { code: report.code });
      cli.tell(flags, report, () => replayText(report));
      cli.ends(report.compared.difference ? EXIT.refused : EXIT.done);
    });
}

async function exportRun(
  cli: Cli,
  { runId, file, flags }: { runId: string; file: string | undefined; flags: ExportFlags },
): Promise<void> {
  if (file === undefined && !PLAIN_NAME.test(runId))
    throw usageFault('Say into which file: such an id is no name of one.');
  const path = resolve(file ?? `${runId}.openwop-run.json`);
  const address = `${OVERVIEW}/${encodeURIComponent(runId)}/bundle`;
  const bundle = await cli.client.get<RunBundle>(address, EXPORT_LIMIT_MS).catch(namedRun(runId));
  const text = JSON.stringify(bundle);
  await writeWhole(path, text, flags.force === true);
  const events = bundle.recording.entries.length;
  const document = { runId, file: path, bytes: Buffer.byteLength(text), events };
  cli.tell(
    flags,
    document,
    () => `Run ${runId}: ${events} events in ${printable(path)}. It holds prompts and values.`,
  );
}

/** Whole or not at all, for its owner alone, and not over a file that is there. */
async function writeWhole(path: string, text: string, replaces: boolean): Promise<void> {
  const draft = `${path}.${randomBytes(4).toString('hex')}.part`;
  try {
    const file = await open(draft, 'wx', 0o600);
    await file.writeFile(text).finally(() => file.close());
    await (replaces ? rename(draft, path) : link(draft, path));
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'EEXIST')
      throw new CliFault(`There is a file already: ${path}. --force replaces it.`, {
        ...{ code: 'file_exists', cause },
      });
    throw new CliFault(`The file cannot be written: ${path} (${(cause as Error).message}).`, {
      ...{ code: 'file_not_written', cause },
    });
  } finally {
    await rm(draft, { force: true });
  }
}

type Replayed = Extract<ReplayReport, { kind: 'replayed' }>;

function replayText({ compared, events, withheld, ...of }: Replayed): string {
  const { difference, equal, pieces, outside } = compared;
  const run = `Run ${printable(of.runId)} of ${printable(of.workflowId)} (${statusText(of.status)})`;
  const versions =
    of.madeBy === of.replayedBy
      ? []
      : [`It was made by version ${printable(of.madeBy)}; this is ${of.replayedBy}.`];
  if (difference)
    return [
      `${run}: replayed ${equal} of ${events} events, then a difference.`,
      ...differenceLines(difference),
      ...versions,
      ...(withheld.length > 0
        ? [`Withheld from the file, and so from the replay: ${withheld.map(printable).join(', ')}.`]
        : []),
    ].join('\n');
  return [
    `${run}: replayed ${events} events: equal.`,
    ...(pieces > 0 ? [`${pieces} of them are live text, which comes with the record.`] : []),
    ...(outside > 0 ? [`${outside} of them no workflow code stated: the host ended the run.`] : []),
    ...versions,
  ].join('\n');
}

const KINDS: Readonly<Record<Difference['kind'], string>> = {
  output: 'says something else',
  missing: 'is not stated',
  extra: 'was not recorded',
  'type-mismatch': 'is of another type',
  order: 'stands elsewhere',
};

function differenceLines({ kind, atSequence, recorded, replayed }: Difference): string[] {
  return [
    `  event ${atSequence} ${KINDS[kind]}`,
    `  recorded: ${sideText(recorded)}`,
    `  replayed: ${sideText(replayed)}`,
  ];
}

function sideText(side: Side | undefined): string {
  if (!side) return 'nothing';
  const { type, nodeId, payload } = side;
  const told = JSON.stringify(payload);
  const shown = told.length > SHOWN_PAYLOAD ? `${told.slice(0, SHOWN_PAYLOAD)}…` : told;
  return printable([type, ...(nodeId === undefined ? [] : [nodeId]), shown].join(' '));
}
