// `openwop subjects …` and `openwop verify`: erasing one subject's data by destroying its key, the receipts of that, and
// whether a run's log is still the one that a receipt names.
import type { Command } from 'commander';
import { printable } from '../words/printable.js';
import { CALLED, freshKey, type Cli, type JsonFlag } from './cli.ts';
import { CliFault, codeOf, EXIT, usageFault } from './faults.ts';
import { command, DEFAULT_COMMAND } from './run-commands.ts';
import { namedRun, OVERVIEW } from './run-reads.ts';
import { fields, table } from './terminal.ts';

const ERASURES = '/v1/host/openwop-temporal/erasures';
const ERASE = '/v1/host/openwop-temporal/subjects:erase';

interface ErasureView {
  readonly erasureId: string;
  readonly subject: string;
  readonly state: 'closing' | 'destroyed' | 'erased';
  readonly requestedAt: string;
  readonly destroyedAt?: string;
  readonly waitsFor?: { readonly reason: string };
  readonly receipt?: {
    readonly logs: { readonly runs: number; readonly events: number; readonly notKept?: number };
  };
}

interface IntegrityView {
  readonly events: number;
  readonly root: string;
  readonly erased?: { readonly erasureId: string; readonly root: string };
  readonly isIntact?: boolean;
}

interface EraseFlags extends JsonFlag {
  readonly yes?: true;
  readonly cancelOpen?: true;
  readonly reason?: string;
  readonly idempotencyKey?: string;
}

const STATES: Readonly<Record<ErasureView['state'], string>> = {
  closing: 'Waits for runs to end',
  destroyed: 'Key destroyed',
  erased: 'Erased',
};

export function addSubjectCommands(program: Command, cli: Cli): void {
  const subjects = program
    .command('subjects')
    .description('Whose data runs hold, and its erasure.');
  command(subjects, DEFAULT_COMMAND, 'Erasures, newest first (the default).')
    .allowExcessArguments()
    .action(async (flags: JsonFlag, list: Command) => {
      const [unknown] = list.args;
      if (unknown !== undefined) list.error(`error: unknown command '${printable(unknown)}'`);
      await listErasures(cli, flags);
    });
  command(subjects, 'erase <subject>', 'Destroy the key of all that its runs left: for ever.')
    .option('--yes', 'it is meant: nothing brings the data back')
    .option('--cancel-open', 'cancel its open runs first; without it they stand in the way')
    .option('--reason <text>', 'stands in the receipt')
    .option('--idempotency-key <key>', 'the same key asks once, for 24 hours')
    .action((subject: string, flags: EraseFlags) => erase(cli, subject, flags));
  command(
    subjects,
    'receipt <erasureId>',
    'What was erased, and when, signed by the host; or what the erasure waits for.',
  ).action(async (erasureId: string, flags: JsonFlag) => {
    const erasure = await cli.client
      .get<ErasureView>(`${ERASURES}/${encodeURIComponent(erasureId)}`)
      .catch(namedErasure(erasureId));
    cli.tell(flags, erasure, () => erasureText(erasure, cli));
  });
  command(
    program,
    'verify <runId>',
    'The digest of a run’s log; of an erased run, whether it is that of the receipt.',
  ).action((runId: string, flags: JsonFlag) => verify(cli, runId, flags));
}

async function listErasures(cli: Cli, flags: JsonFlag): Promise<void> {
  const answer = await cli.client.get<{ readonly erasures: readonly ErasureView[] }>(ERASURES);
  cli.tell(flags, answer, () =>
    answer.erasures.length === 0
      ? 'Nothing was erased yet.'
      : table(
          ['ERASURE', 'STATE', 'ASKED', 'RUNS'],
          answer.erasures.map(({ erasureId, state, requestedAt, receipt }) => [
            ...[erasureId, STATES[state], requestedAt, String(receipt?.logs.runs ?? '')],
          ]),
          { screen: cli.screen },
        ),
  );
}

/** Silence is no consent: what cannot be undone is asked for twice. */
async function erase(cli: Cli, subject: string, flags: EraseFlags): Promise<void> {
  if (!flags.yes)
    throw usageFault('What is erased comes back by nothing. Add --yes when it is meant.');
  const body = {
    dataSubject: subject,
    ...(flags.cancelOpen ? { cancelOpen: true } : {}),
    ...(flags.reason === undefined ? {} : { reason: flags.reason }),
  };
  const idempotencyKey = flags.idempotencyKey ?? freshKey();
  const erasure = await cli.client
    .post<ErasureView>(ERASE, { body, idempotencyKey })
    .catch(runsInTheWay);
  cli.tell(flags, erasure, () => erasureText(erasure, cli));
  if (erasure.state !== 'erased' && !flags.json)
    cli.note(`It goes on by itself: ${CALLED} subjects receipt ${erasure.erasureId}`);
}

function runsInTheWay(error: unknown): never {
  const open = error instanceof CliFault ? error.facts.details?.openRuns : undefined;
  if (!Array.isArray(open)) throw error;
  throw new CliFault(
    `Runs of the subject are open: ${open.map((runId) => printable(String(runId))).join(', ')}. Let them end, or add --cancel-open.`,
    { ...(error as CliFault).facts, cause: error },
  );
}

function logsText({ runs, events, notKept }: NonNullable<ErasureView['receipt']>['logs']): string {
  const lost = notKept === undefined ? '' : `; the logs of ${notKept} are not kept`;
  return `${runs} runs, ${events} events${lost}`;
}

function erasureText(erasure: ErasureView, { screen }: Cli): string {
  const { erasureId, subject, state, requestedAt, destroyedAt, waitsFor, receipt } = erasure;
  const logs = receipt && logsText(receipt.logs);
  return fields(
    [
      ['Erasure', erasureId],
      ['State', STATES[state]],
      ['Subject', subject],
      ['Asked', requestedAt],
      ['Destroyed', destroyedAt],
      ['Waits for', waitsFor?.reason],
      ['Sealed', logs],
    ],
    screen,
  );
}

async function verify(cli: Cli, runId: string, flags: JsonFlag): Promise<void> {
  const told = await cli.client
    .get<IntegrityView>(`${OVERVIEW}/${encodeURIComponent(runId)}/integrity`)
    .catch(namedRun(runId));
  const { events, root, erased, isIntact } = told;
  const receipt = isIntact
    ? 'the log is that of the receipt'
    : 'the log is NOT that of the receipt';
  cli.tell(flags, told, () =>
    fields(
      [
        ['Run', runId],
        ['Events', String(events)],
        ['Digest', root],
        ['Erased', erased && `${erased.erasureId}: ${receipt}`],
      ],
      cli.screen,
    ),
  );
  cli.ends(isIntact === false ? EXIT.refused : EXIT.done);
}

function namedErasure(erasureId: string): (error: unknown) => never {
  return (error) => {
    if (codeOf(error) !== 'not_found') throw error;
    throw new CliFault(
      `The host knows no erasure ${erasureId}. \`${CALLED} subjects\` lists them.`,
      { ...(error as CliFault).facts, cause: error },
    );
  };
}
