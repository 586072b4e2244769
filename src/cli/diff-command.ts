// `openwop diff A B`: what two runs did otherwise. Exit code 1 when they differ, as `diff` has it, or were not compared whole.
import type { Command } from 'commander';
import type {
  ComparedRun,
  ComparedStep,
  Divergence,
  PinnedDifference,
  RunComparison,
  StepSide,
  ValueDifference,
} from '../../schemas/types.generated.ts';
import { causeText, partialText, PINNED_WORDS, sameText, wordPieces } from '../words/diff.ts';
import { duration } from '../words/duration.js';
import { printable, printableJson } from '../words/printable.js';
import type { Cli, JsonFlag } from './cli.ts';
import { CliFault, codeOf, EXIT } from './faults.ts';
import { command } from './run-commands.ts';
import { expiryOf, getRun, OVERVIEW } from './run-reads.ts';
import { statusText } from './run-tables.ts';
import { table, wrapped, type Screen } from './terminal.ts';

/** Longest value that stands beside the other one, in characters; longer texts are told word by word. */
const SHORT_VALUE = 60;
/** Longest value that is printed, in characters: --json has more of it. */
const LONG_VALUE = 2_000;

export function addDiffCommand(program: Command, cli: Cli): void {
  command(
    program,
    'diff <runA> <runB>',
    'What two runs did otherwise (exit code 1 unless they were compared whole, and say the same).',
  ).action(async (runA: string, runB: string, flags: JsonFlag) => {
    const compared = await compare(cli, runA, runB);
    cli.tell(flags, compared, () => comparisonText(compared, cli.screen));
    cli.ends(compared.same ? EXIT.done : EXIT.refused);
  });
}

/** The host does not say which of the two it lacks. */
async function compare({ client }: Cli, runA: string, runB: string): Promise<RunComparison> {
  const query = new URLSearchParams({ against: runB });
  const path = `${OVERVIEW}/${encodeURIComponent(runA)}/diff?${query.toString()}`;
  try {
    return await client.get<RunComparison>(path);
  } catch (error) {
    switch (codeOf(error)) {
      case 'run_not_found':
        await getRun(client, runA);
        await getRun(client, runB);
        throw error;
      case 'not_found':
        if (expiryOf(error) !== undefined) {
          await getRun(client, runA);
          await getRun(client, runB);
        }
        throw new CliFault('The host does not compare runs: it is of another version.', {
          ...{ code: 'not_found', cause: error },
        });
      default:
        throw error;
    }
  }
}

function comparisonText(compared: RunComparison, screen: Screen): string {
  const { a, b, divergence, pinned, steps, end } = compared;
  const parts = [
    runsText(a, b, screen),
    sameText(compared) ?? '',
    divergence ? divergenceText(divergence, screen) : '',
    ...pinned.map((each) => pinnedText(each, screen)),
    steps.length === 0 ? '' : stepsTable(steps, screen),
    ...steps.map((step) => stepText(step, screen)),
    ...(end.length === 0 ? [] : [differencesText('End', end, screen)]),
    wrapped(partialText(compared) ?? '', '', screen).join('\n'),
  ];
  return parts.filter((part) => part !== '').join('\n\n');
}

function runsText(a: ComparedRun, b: ComparedRun, screen: Screen): string {
  const row = (name: string, run: ComparedRun) => [
    ...[name, run.runId, statusText(run.status), run.workflowId, run.version],
    ...[tookText(run.durationMs), tokensText(run), costText(run.usd)],
    run.forkOf === undefined
      ? undefined
      : `${run.forkOf} from ${run.fromSeq ?? 0}${overlayText(run)}`,
  ];
  const head = ['SIDE', 'RUN', 'STATUS', 'WORKFLOW', 'VERSION', 'TOOK', 'TOKENS', 'USD', 'FORK OF'];
  return table(head, [row('A', a), row('B', b)], { screen });
}

function overlayText({ overlay = [] }: ComparedRun): string {
  return overlay.length === 0 ? '' : ` with other ${overlay.join(', ')}`;
}

function divergenceText(divergence: Divergence, screen: Screen): string {
  const { seq, nodeName, aEvent, bEvent, differences } = divergence;
  const { type } = aEvent ?? bEvent ?? {};
  const what = typeof type === 'string' ? type : 'event';
  const where = nodeName === undefined ? '' : `, at ${nodeName}`;
  const side = aEvent ? (bEvent ? '' : ', which B lacks') : ', which A lacks';
  const head = `They went apart at event ${seq} (${what}${where}${side}): ${causeText(divergence)}.`;
  const lines = differences.map((difference) => differenceText(difference, screen));
  return [...wrapped(printable(head), '', screen), ...lines].join('\n');
}

function pinnedText({ fact, differences }: PinnedDifference, screen: Screen): string {
  return differencesText(`${PINNED_WORDS[fact] ?? fact} differ`, differences, screen);
}

function stepsTable(steps: readonly ComparedStep[], screen: Screen): string {
  const sides = (read: (side: StepSide) => string | undefined, { a, b }: ComparedStep) => {
    const [one, other] = [a && read(a), b && read(b)];
    return one === other ? one : `${one ?? '-'} | ${other ?? '-'}`;
  };
  const rows = steps.map((step) => [
    step.visit === 1 ? step.nodeName : `${step.nodeName} (${step.visit})`,
    isOther(step) ? 'yes' : undefined,
    sides(({ status }) => status, step),
    sides(({ confidence }) => confidence?.toString(), step),
    sides((side) => tokensText(side), step),
    sides(({ usd }) => costText(usd), step),
    sides(({ durationMs }) => tookText(durationMs), step),
  ]);
  const head = ['STEP', 'DIFFERS', 'STATUS A | B', 'CONFIDENCE', 'TOKENS', 'USD', 'TOOK'];
  return table(head, rows, {
    screen,
    colourOf: (row, column) => {
      const step = steps[row];
      return column <= 1 && step && isOther(step) ? 'yellow' : undefined;
    },
  });
}

function isOther({ a, b, differences }: ComparedStep): boolean {
  return !a || !b || differences.length > 0;
}

function stepText(step: ComparedStep, screen: Screen): string {
  const { nodeName, visit, a, b, differences } = step;
  if (!isOther(step)) return '';
  const name = visit === 1 ? nodeName : `${nodeName} (${visit})`;
  if (!a || !b) return `${printable(name)}\n  only ${a ? 'A' : 'B'} came to it`;
  const isSkipped = [a, b].some(({ status }) => status === 'skipped');
  const told = isSkipped
    ? differences.filter(({ pointer }) => TELLS_OF_SKIPPED.test(pointer))
    : differences;
  return differencesText(name, told, screen);
}

/** Of a step that one side skipped: what the other did there, and what came of it. --json has all. */
const TELLS_OF_SKIPPED = /^\/(?:status|calls|outputs|error)(?:\/|$)/;

function differencesText(
  name: string,
  differences: readonly ValueDifference[],
  screen: Screen,
): string {
  return [printable(name), ...differences.map((each) => differenceText(each, screen))].join('\n');
}

/** In one line what is short, below each other what is long; two texts word by word. */
function differenceText(difference: ValueDifference, screen: Screen): string {
  const { pointer, a, b, cut } = difference;
  const name = `  ${printable(pointer === '' ? '/' : pointer)}`;
  const [one, other] = [sideText(difference, 'a'), sideText(difference, 'b')];
  const line = `${name}  ${one} → ${other}`;
  const isShort = one.length + other.length <= SHORT_VALUE;
  if (isShort && line.length <= (screen.columns ?? Infinity)) return line;
  const isText = typeof a === 'string' && typeof b === 'string';
  const told = isText ? [wordsText(a, b)] : [`A: ${one}`, `B: ${other}`];
  const lines = told.flatMap((text) => wrapped(text, '    ', screen));
  return [name, ...lines, ...(cut ? ['    (cut)'] : [])].join('\n');
}

function sideText(difference: ValueDifference, side: 'a' | 'b'): string {
  if (!(side in difference)) return '(nothing)';
  return shortened(printableJson(difference[side]));
}

function shortened(text: string): string {
  return text.length <= LONG_VALUE ? text : `${text.slice(0, LONG_VALUE)}…`;
}

/** Words that both have, beside those that differ: a long prompt is told where it changed. */
const CONTEXT_WORDS = 12;

/** `[-only of A-]` and `{+only of B+}`, as tools for words have it. */
function wordsText(a: string, b: string): string {
  const pieces = wordPieces(a, b);
  const marked = pieces.map(({ in: side, text }, at) => {
    if (side === 'both') return nearText(text, at > 0, at < pieces.length - 1);
    return side === 'a' ? `[-${text.trimEnd()}-] ` : `{+${text.trimEnd()}+} `;
  });
  return printable(shortened(marked.join('').trim().replaceAll(/\s+/g, ' ')));
}

/** Of a stretch what stands behind the words before it, and before those behind it. */
function nearText(text: string, isBehind: boolean, isBefore: boolean): string {
  const words = text.trim().split(/\s+/);
  const [first, last] = [isBehind ? CONTEXT_WORDS : 0, isBefore ? CONTEXT_WORDS : 0];
  if (words.length <= first + last) return text;
  const kept = [...words.slice(0, first), '…', ...words.slice(words.length - last)];
  return `${kept.join(' ')} `;
}

function tookText(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : duration(ms);
}

function tokensText({ inputTokens, outputTokens }: StepSide | ComparedRun): string | undefined {
  if (inputTokens === undefined) return undefined;
  return String(inputTokens + (outputTokens ?? 0));
}

function costText(usd: number | undefined): string | undefined {
  return usd === undefined ? undefined : usd.toFixed(4);
}
