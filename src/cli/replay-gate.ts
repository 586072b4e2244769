// The gate of `openwop replay`: what a cohort must not come to (--fail-on), and which runs were wrong and must come to
// something else (--wrong). Both together prove a fix: what was wrong comes out otherwise, and nothing else does.
import { Option, type Command } from 'commander';
import type { Cohort } from '../../schemas/types.generated.ts';
import { OUTCOME_WORDS, type Outcome } from '../words/cohort.ts';
import { printable } from '../words/printable.js';
import { usageFault } from './faults.ts';
import { wrapped, type Screen } from './terminal.ts';
import { textOfFile } from './text-file.ts';

/** What each `--fail-on` is hit by. */
const FAILS_ON: Readonly<Record<string, readonly Outcome[]>> = {
  outcome: ['outcome-changed', 'failed'],
  divergence: ['diverged', 'outcome-changed', 'failed'],
  asks: ['asks'],
  error: ['failed', 'source-missing', 'not-finished'],
};
/** What a run that was wrong may come to: another end, or a question to a human. */
const RIGHTED: ReadonlySet<string> = new Set<Outcome>(['outcome-changed', 'asks']);

export interface GateFlags {
  readonly failOn?: readonly string[];
  readonly wrong?: readonly string[];
}

export interface Gate {
  readonly passed: boolean;
  /** Runs that came to what `--fail-on` names, but for those that were wrong. */
  readonly hits: readonly GateHit[];
  /** Runs that were wrong, and are no better. */
  readonly stillWrong: readonly GateHit[];
  /** Runs that were wrong, and come out otherwise, as they should. */
  readonly righted: readonly string[];
}

interface GateHit {
  readonly sourceRunId: string;
  /** Absent: it is not among the runs of the cohort. */
  readonly outcome?: string;
}

export function addGateOptions(start: Command): Command {
  return start
    .addOption(
      new Option('--fail-on <what>', 'exit code 1 where any run comes to this (again for each)')
        .choices(Object.keys(FAILS_ON))
        .argParser(failOn),
    )
    .option(
      '--wrong <runId>',
      'this run was wrong: exit code 1 unless it comes to another outcome, or asks (again for each; @file: an id per line)',
      wrong,
    );
}

function failOn(text: string, before: readonly string[] = []): readonly string[] {
  if (!Object.hasOwn(FAILS_ON, text))
    throw usageFault(`--fail-on is one of ${Object.keys(FAILS_ON).join(', ')}, and not "${text}".`);
  return [...before, text];
}

/** An id, or a file of ids. */
function wrong(text: string, before: readonly string[] = []): readonly string[] {
  if (!text.startsWith('@')) return [...before, text];
  const lines = textOfFile(text.slice(1)).split('\n');
  const ids = lines.map((line) => line.trim()).filter((line) => line !== '');
  if (ids.length === 0) throw usageFault(`The file ${text.slice(1)} names no run.`);
  return [...before, ...ids];
}

/** Undefined where none was asked for. */
export function gateOf({ results = [] }: Cohort, flags: GateFlags): Gate | undefined {
  const { failOn: asked = [], wrong = [] } = flags;
  if (asked.length + wrong.length === 0) return undefined;
  const named = new Set(wrong);
  const failing = new Set<string>(asked.flatMap((name) => FAILS_ON[name] ?? []));
  const hits = results.flatMap(({ sourceRunId, outcome = '' }) =>
    failing.has(outcome) && !named.has(sourceRunId) ? [{ sourceRunId, outcome }] : [],
  );
  const stillWrong = [...named].flatMap((sourceRunId): GateHit[] => {
    const member = results.find((each) => each.sourceRunId === sourceRunId);
    if (!member) return [{ sourceRunId }];
    const { outcome = '' } = member;
    return RIGHTED.has(outcome) ? [] : [{ sourceRunId, outcome }];
  });
  const righted = [...named].filter((id) => stillWrong.every((each) => each.sourceRunId !== id));
  return { passed: hits.length + stillWrong.length === 0, hits, stillWrong, righted };
}

export function gateText({ passed, hits, stillWrong, righted }: Gate, screen: Screen): string {
  const otherwise =
    righted.length === 0 ? '' : `Runs that were wrong and come out otherwise: ${righted.length}. `;
  if (passed) return `${otherwise}The gate is passed.`;
  const lines = [
    ...hits.map(({ sourceRunId, outcome }) => `${sourceRunId} came to: ${words(outcome)}.`),
    ...stillWrong.map(({ sourceRunId, outcome }) =>
      outcome === undefined
        ? `${sourceRunId} was wrong, and is not among these runs.`
        : `${sourceRunId} was wrong, and came to: ${words(outcome)}.`,
    ),
  ];
  return [
    `${otherwise}The gate is not passed:`,
    ...lines.flatMap((line) => wrapped(printable(line), '  ', screen)),
  ].join('\n');
}

function words(outcome: string | undefined): string {
  return OUTCOME_WORDS[outcome as Outcome] ?? outcome;
}
