// The gate of `openwop replay`: what a cohort must not come to (--fail-on), and which runs were wrong and must come to
// something else (--wrong). Both together prove a fix: what was wrong comes out otherwise, and nothing else does. The result of
// every other run must be known: one that could not be compared to its end fails each gate, unless --permit names its outcome.
import { Option, type Command } from 'commander';
import type { Cohort, CohortMemberResult } from '../../schemas/types.generated.ts';
import { leftOutText, OUTCOME_WORDS, type Outcome } from '../words/cohort.ts';
import { printable } from '../words/printable.js';
import { unreadableText } from '../words/unreadable.ts';
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
/** Outcomes that are a result. A word of a later host is not among them. */
const KNOWN: ReadonlySet<string> = new Set<Outcome>([
  ...(['same', 'diverged', 'outcome-changed', 'failed'] as const),
]);
/** No outcome: runs that cannot be read, and are no members; or a cohort that cannot say whether it has any. */
const LEFT_OUT = 'unreadable';
/** Outcomes without a result. `diverged`: of a replay, which is ended there. */
const MAY_PERMIT = [
  ...(['asks', 'diverged', 'source-missing', 'not-compared', 'not-finished', LEFT_OUT] as const),
];
/** Of a replay that was ended where it said something else. */
const ENDED_REPLAY = 'replay_diverged';
/** Of a cohort that was cancelled meanwhile. */
const UNSETTLED: Outcome = 'not-finished';
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
  /** Others whose result is not known, unless `--permit` names what they came to. */
  readonly unknown: readonly GateHit[];
  /** Runs that cannot be read, and are no members, unless `--permit` lets them pass. */
  readonly leftOut?: NonNullable<Cohort['leftOut']>;
  /** Why nobody knows which runs are left out, unless `--permit` lets that pass. */
  readonly unreadable?: NonNullable<Cohort['unreadable']>;
  /** Runs whose result is known, those of --wrong and hits among them. */
  readonly known: number;
  /** Runs that were wrong, and are no better. */
  readonly stillWrong: readonly GateHit[];
  /** Runs that were wrong, and come out otherwise, as they should. */
  readonly righted: readonly string[];
}

interface GateHit {
  readonly sourceRunId: string;
  /** Absent: it is not among the runs of the cohort. */
  readonly outcome?: string;
  /** Though not all was compared, its end is known to differ. */
  readonly changed?: true;
}

export function addGateOptions(start: Command): Command {
  return start
    .addOption(
      new Option('--fail-on <what>', 'exit code 1 where any run comes to this (again for each)')
        .choices(Object.keys(FAILS_ON))
        .argParser(oneOf('--fail-on', Object.keys(FAILS_ON))),
    )
    .option(
      '--wrong <runId>',
      'this run was wrong: exit code 1 unless it comes to another outcome, or asks (again for each; @file: an id per line)',
      wrong,
    )
    .addOption(
      new Option(
        '--permit <outcome>',
        `let the gate pass although runs came to this, which leaves their result unknown (again for each; ${LEFT_OUT}: could not be read, and were not replayed)`,
      )
        .choices(MAY_PERMIT)
        .argParser(oneOf('--permit', MAY_PERMIT)),
    );
}

/** Before anything is asked for. `isChanged`: by more than the code. Throws CliFault `usage`. */
export function checkGate(
  { failOn: asked = [], wrong = [], permit: permitted = [] }: GateFlags,
  isChanged: boolean,
): void {
  if (permitted.length > 0 && asked.length + wrong.length === 0)
    throw usageFault('--permit says what a gate lets pass: ask for one, by --fail-on or --wrong.');
  if (wrong.length > 0 && !isChanged)
    throw usageFault(
      '--wrong needs a change: a replay is ended where it says something else, and rights no run.',
    );
  for (const name of asked) {
    const both = permitted.find((outcome) => FAILS_ON[name]?.includes(outcome as Outcome));
    if (both !== undefined)
      throw usageFault(`--fail-on ${name} and --permit ${both} contradict each other.`);
  }
}

function oneOf(flag: string, names: readonly string[]) {
  return (text: string, before: readonly string[] = []): readonly string[] => {
    if (names.includes(text)) return [...before, text];
    throw usageFault(`${flag} is one of ${names.join(', ')}, and not "${text}".`);
  };
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
export function gateOf(cohort: Cohort, flags: GateFlags): Gate | undefined {
  const { results = [] } = cohort;
  const { failOn: asked = [], wrong = [], permit: permitted = [] } = flags;
  if (asked.length + wrong.length === 0) return undefined;
  const named = new Set(wrong);
  const others = results.filter(({ sourceRunId }) => !named.has(sourceRunId));
  const hits = others.filter((member) => isHit(member, asked));
  const unknown = others.filter(
    (member) => !isKnown(member) && !hits.includes(member) && !permitted.includes(cameTo(member)),
  );
  const known = results.filter(isKnown).length;
  const stillWrong = [...named].flatMap((sourceRunId): GateHit[] => {
    const member = results.find((each) => each.sourceRunId === sourceRunId);
    if (!member) return [{ sourceRunId }];
    return RIGHTED.has(cameTo(member)) ? [] : [gateHit(member)];
  });
  const righted = [...named].filter((id) => stillWrong.every((each) => each.sourceRunId !== id));
  const unread = permitted.includes(LEFT_OUT) ? {} : unreadIn(cohort);
  const faults = [...hits, ...unknown, ...stillWrong, ...Object.keys(unread)];
  return {
    passed: faults.length === 0 && known + righted.length > 0,
    ...unread,
    ...{ hits: hits.map(gateHit), unknown: unknown.map(gateHit), known, stillWrong, righted },
  };
}

/** What a cohort was asked for says which runs it left out. */
function unreadIn({ leftOut, unreadable }: Cohort): Pick<Gate, 'leftOut' | 'unreadable'> {
  return { ...(leftOut ? { leftOut } : {}), ...(unreadable ? { unreadable } : {}) };
}

function cameTo({ outcome = UNSETTLED }: CohortMemberResult): Outcome {
  return outcome;
}

function gateHit(member: CohortMemberResult): GateHit {
  const { sourceRunId } = member;
  return {
    sourceRunId,
    outcome: cameTo(member),
    ...(endsOtherwise(member) ? { changed: true } : {}),
  };
}

/** Of a fork that could not be made, or be compared with its source, nothing is told of its end. */
function isKnown(member: CohortMemberResult): boolean {
  return (
    KNOWN.has(cameTo(member)) && member.after !== undefined && member.error?.code !== ENDED_REPLAY
  );
}

function isHit(member: CohortMemberResult, asked: readonly string[]): boolean {
  const outcome = endsOtherwise(member) ? 'outcome-changed' : cameTo(member);
  return asked.some((name) => FAILS_ON[name]?.includes(outcome));
}

/** Whatever else could not be compared. It rights no run: what its record lacked is not known. */
function endsOtherwise(member: CohortMemberResult): boolean {
  return cameTo(member) === 'not-compared' && (member.changes ?? []).length > 0;
}

export function gateText(gate: Gate, screen: Screen): string {
  const { passed, hits, unknown, leftOut, unreadable, known, stillWrong, righted } = gate;
  const otherwise =
    righted.length === 0 ? '' : `Runs that were wrong and come out otherwise: ${righted.length}. `;
  if (passed) return `${otherwise}The gate is passed.`;
  const lines = [
    ...(known + righted.length > 0 ? [] : ['No run was compared to its end.']),
    ...hits.map(
      ({ sourceRunId, outcome, changed }) =>
        `${sourceRunId} came to: ${words(outcome)}.${changed ? ' Its end differs.' : ''}`,
    ),
    ...unknown.map(
      ({ sourceRunId, outcome }) =>
        `${sourceRunId} came to: ${words(outcome)}. Its result is not known${permitHint(outcome)}.`,
    ),
    ...(leftOut ? [`${leftOutText(leftOut)}${permitHint(LEFT_OUT)}.`] : []),
    ...(unreadable
      ? [
          unreadableText(unreadable),
          `Which runs were left out is not known${permitHint(LEFT_OUT)}.`,
        ]
      : []),
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

function permitHint(outcome: string | undefined): string {
  const mayPermit: readonly string[] = MAY_PERMIT;
  return outcome !== undefined && mayPermit.includes(outcome) ? ` (--permit ${outcome})` : '';
}

function words(outcome: string | undefined): string {
  return OUTCOME_WORDS[outcome as Outcome] ?? outcome;
}
