// Runs as a human reads them: the same words as on the page.
import type { RunOverview, RunSnapshot, RunWait } from '../../schemas/types.generated.ts';
import type { RunStatus } from '../rules/status.ts';
import { duration } from '../words/duration.js';
import { printable, printableJson } from '../words/printable.js';
import { headOf, type OpenQuestion } from '../words/question.ts';
import { statusWords } from '../words/status.ts';
import { unreadableText } from '../words/unreadable.ts';
import { CALLED } from './cli.ts';
import { commandLines, questionHead, subjectLines } from './question-lines.ts';
import { openOf, type AskingRun } from './run-reads.ts';
import { fields, table, wrapped, type Colour, type Screen } from './terminal.ts';

const COLOURS: Partial<Readonly<Record<RunStatus, Colour>>> = {
  'waiting-approval': 'yellow',
  'waiting-input': 'yellow',
  completed: 'green',
  failed: 'red',
};
const STATUS_COLUMN = 1;

/** `nowMs`: of the reader's clock. */
export function runsTable(
  runs: readonly RunOverview[],
  { screen, nowMs }: { readonly screen: Screen; readonly nowMs: number },
): string {
  return table(
    ['RUN', 'STATUS', 'WORKFLOW', 'AGE', 'WAITS FOR'],
    runs.map(({ runId, status, workflowId, createdAt, rehearsal, unreadable, waiting }) => [
      ...[runId, rehearsal ? `${statusText(status)} (rehearsal)` : statusText(status), workflowId],
      duration(nowMs - Date.parse(createdAt)),
      [...waiting.map(waitText), ...(unreadable ? [unreadableText(unreadable)] : [])].join('; '),
    ]),
    {
      screen,
      colourOf: (row, column) =>
        column === STATUS_COLUMN ? COLOURS[runs[row]?.status ?? 'pending'] : undefined,
    },
  );
}

/** A status of a later host is shown as it is. */
export function statusText(status: string): string {
  return statusWords(status).text;
}

function waitText({ title, forPerson, deadline }: RunWait): string {
  const until =
    deadline === undefined ? '' : ` (until ${deadline.slice(0, 16).replace('T', ' ')} UTC)`;
  return `${forPerson ? 'you' : 'another system'}: ${title}${until}`;
}

export function runText(
  run: RunSnapshot,
  {
    open,
    asking,
  }: { readonly open: readonly OpenQuestion[]; readonly asking: readonly AskingRun[] },
  { screen, nowMs }: { readonly screen: Screen; readonly nowMs: number },
): string {
  const { status, createdAt, startedAt, endedAt, error, erasedAt } = run;
  const began = typeof startedAt === 'string' ? Date.parse(startedAt) : undefined;
  const until = endedAt === undefined ? nowMs : Date.parse(endedAt);
  const head = fields(
    [
      ['Run', run.runId],
      ['Status', statusText(status), COLOURS[status]],
      ['Workflow', run.workflowId],
      ['Created', typeof createdAt === 'string' ? createdAt : undefined],
      ['Started', startedAt],
      ['Ended', endedAt],
      [
        endedAt === undefined ? 'For' : 'Took',
        began === undefined ? undefined : duration(until - began),
      ],
      ['Rehearsal', run.rehearsal && clockText(run.rehearsal)],
      ['Erased', erasedAt],
      ['Tags', run.tags?.join(', ')],
      ['Error', error && `${error.code}: ${error.message}`, 'red'],
    ],
    screen,
  );
  const values = [
    ['Inputs', run.inputs],
    ['Outputs', run.outputs],
  ] as const;
  const shown = values
    .filter(([, value]) => value !== undefined && Object.keys(value).length > 0)
    .map(([name, value]) => `${name}\n${printableJson(value, 2)}`);
  const asked = open.map((each) => questionText(each, run.runId, screen));
  const below = asking.length === 0 ? [] : [askingText(asking, screen)];
  return [head, ...shown, ...asked, ...below].join('\n\n');
}

function clockText({ now, skippedMs }: NonNullable<RunSnapshot['rehearsal']>): string {
  if (now === undefined) return 'its clock has not begun';
  return `its clock stands at ${now}${skippedMs > 0 ? `, ${duration(skippedMs)} after it began` : ''}`;
}

/** Who waits for a run finds here whom it waits for. */
function askingText(asking: readonly AskingRun[], screen: Screen): string {
  const lines = asking.flatMap(({ runId, workflowId, questions, unreadable }) => {
    const titles = questions?.map(openOf).map((open) => headOf(open, open.nodeId).title);
    const said = (title: string) =>
      wrapped(printable(`${runId} (${workflowId}): ${title}`), '  ', screen);
    return [
      ...(titles ?? [unreadable ? unreadableText(unreadable) : 'may ask']).flatMap(said),
      `    ${CALLED} runs show ${printable(runId)}`,
    ];
  });
  return ['Runs below it ask:', ...lines].join('\n');
}

export function questionText(open: OpenQuestion, runId: string, screen: Screen): string {
  return [
    ...questionHead(open, screen),
    ...subjectLines(open),
    ...commandLines(open, runId, screen),
  ].join('\n');
}
