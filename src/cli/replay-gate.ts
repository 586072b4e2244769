// The gate of `openwop replay`: what a cohort must not come to (--fail-on), and which runs were wrong and must come to
// something else (--wrong). Both together prove a fix: what was wrong comes out otherwise, and nothing else does. A run of
// which nobody knows what it would come to passes no gate, unless that was permitted by name (--permit).
import { Option, type Command } from 'commander';
import type { Cohort, CohortMemberResult } from '../../schemas/types.generated.ts';
import { OUTCOME_WORDS, type Outcome } from '../words/cohort.ts';
import { printable } from '../words/printable.js';
import { usageFault } from './faults.ts';
import { wrapped, type Screen } from './terminal.ts';
import { textOfFile } from './text-file.ts';

/** What each `--fail-on` is hit by. */
const FAILS_ON: Readonly<Record<string, readonly Outcome[]>> = {
  outcome: ['outcome-changed', 'failed'],
  divergence: ['diverged', 'outcome-changed', 'failed'],
  asks: ['asks', 'failed'],
  error: ['failed'],
};
/** Where nobody knows what the run would come to. One that asks was ended there. */
const UNKNOWN = ['asks', 'source-missing', 'not-compared', 'not-finished'] as const;
type Unknown = (typeof UNKNOWN)[number];
/** A replay that states something else is ended there, too. */
const ENDED_REPLAY = 'replay_diverged';
/** What a run that was wrong may come to: another end, or a question to a human. */
const RIGHTED: ReadonlySet<string> = new Set<Outcome>(['outcome-changed', 'asks']);

export interface GateFlags {
  readonly failOn?: readonly string[];
  readonly wrong?: readonly string[];
  readonly permit?: readonly string[];
}

export interface Gate {
  readonly passed: boolean;
  /** Runs that came to what `--fail-on` names, but for those that were wrong. */
  readonly hits: readonly GateHit[];
  /** Others of which nobody knows what they would come to, unless `--permit` names it. */
  readonly unknown: readonly GateHit[];
  /** Runs of which something is known. */
  readonly judged: number;
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
    )
    .addOption(
      new Option(
        '--permit <outcome>',
        'a run may come to this, of which a gate fails otherwise: nobody knows what it would have come to (again for each)',
      )
        .choices(UNKNOWN)
        .argParser(permit),
    );
}

function permit(text: string, before: readonly string[] = []): readonly string[] {
  if (!UNKNOWN.includes(text as Unknown))
    throw usageFault(`--permit is one of ${UNKNOWN.join(', ')}, and not "${text}".`);
  return [...before, text];
}

/** Before anything is asked for. Throws CliFault `usage`. */
export function checkGate({ failOn: asked = [], wrong = [], permit: permitted = [] }: GateFlags) {
  if (permitted.length > 0 && asked.length + wrong.length === 0)
    throw usageFault('--permit says what a gate lets pass: name one, by --fail-on or --wrong.');
  const both = permitted.find((outcome) => asked.includes(outcome));
  if (both !== undefined) throw usageFault(`--fail-on ${both} and --permit ${both} contradict.`);
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
  const { failOn: asked = [], wrong = [], permit: permitted = [] } = flags;
  if (asked.length + wrong.length === 0) return undefined;
  const named = new Set(wrong);
  const others = results.filter(({ sourceRunId }) => !named.has(sourceRunId));
  const hits = others.filter(isHitBy(asked)).map(gateHit);
  const unknown = others
    .filter(isUnknown)
    .filter((member) => !isHitBy(asked)(member) && !permitted.includes(member.outcome ?? ''))
    .map(gateHit);
  const judged = results.filter((member) => !isUnknown(member)).length;
  const stillWrong = [...named].flatMap((sourceRunId): GateHit[] => {
    const member = results.find((each) => each.sourceRunId === sourceRunId);
    if (!member) return [{ sourceRunId }];
    const { outcome = '' } = member;
    return RIGHTED.has(outcome) ? [] : [{ sourceRunId, outcome }];
  });
  const righted = [...named].filter((id) => stillWrong.every((each) => each.sourceRunId !== id));
  const passed =
    hits.length + unknown.length + stillWrong.length === 0 && judged + righted.length > 0;
  return { passed, hits, unknown, judged, stillWrong, righted };
}

function gateHit({ sourceRunId, outcome = UNSETTLED }: CohortMemberResult): GateHit {
  return { sourceRunId, outcome };
}

/** Of a cohort that was cancelled meanwhile. */
const UNSETTLED: Unknown = 'not-finished';

function isUnknown({ outcome = UNSETTLED }: CohortMemberResult): boolean {
  return UNKNOWN.includes(outcome as Unknown);
}

function isHitBy(asked: readonly string[]): (member: CohortMemberResult) => boolean {
  const failing = new Set<string>(asked.flatMap((name) => FAILS_ON[name] ?? []));
  const isOfOutcome = asked.includes('outcome');
  return ({ outcome = UNSETTLED, error }) =>
    failing.has(outcome) || (isOfOutcome && error?.code === ENDED_REPLAY);
}

export function gateText(gate: Gate, screen: Screen): string {
  const { passed, hits, unknown, judged, stillWrong, righted } = gate;
  const otherwise =
    righted.length === 0 ? '' : `Runs that were wrong and come out otherwise: ${righted.length}. `;
  if (passed) return `${otherwise}The gate is passed.`;
  const lines = [
    ...(judged + righted.length > 0 ? [] : ['Of no run it is known what it would come to.']),
    ...hits.map(({ sourceRunId, outcome }) => `${sourceRunId} came to: ${words(outcome)}.`),
    ...unknown.map(
      ({ sourceRunId, outcome }) =>
        `${sourceRunId} came to: ${words(outcome)}, so that nobody knows its outcome (--permit ${outcome}).`,
    ),
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
