// Cohorts as a terminal shows them.
import type { Cohort } from '../../schemas/types.generated.ts';
import {
  changeText,
  leftOutText,
  memberLines,
  OUTCOME_WORDS,
  STATE_WORDS,
  useText,
  type Outcome,
} from '../words/cohort.ts';
import { printable } from '../words/printable.js';
import { table, wrapped, type Screen } from './terminal.ts';

/** Members that are told one by one: --json has all. */
const MAX_TOLD = 200;
/** Things that are told of each. */
const MAX_LINES = 5;

export function cohortsTable(cohorts: readonly Cohort[], screen: Screen): string {
  if (cohorts.length === 0) return 'No cohorts yet.';
  const rows = cohorts.map(({ cohortId, state, createdAt, settled, members, totals, ...asked }) => [
    ...[cohortId, STATE_WORDS[state] ?? state, createdAt, `${settled} of ${members}`],
    ...[`${totals.same}`, changeText(asked)],
  ]);
  return table(['COHORT', 'STATE', 'BEGAN', 'RUNS', 'THE SAME', 'BY'], rows, { screen });
}

/** `expected`: runs that came out otherwise as they should, which are counted alone. */
export function reportText(
  cohort: Cohort,
  screen: Screen,
  expected: readonly string[] = [],
): string {
  const { cohortId, state, members, settled, select, totals, results = [], leftOut } = cohort;
  const of = select.workflowId === undefined ? '' : ` of ${select.workflowId}`;
  const head = `Cohort ${cohortId}: ${settled} of ${members} runs${of} ${changeText(cohort)}, ${STATE_WORDS[state] ?? state}.`;
  const counted = (Object.keys(OUTCOME_WORDS) as Outcome[]).flatMap((outcome) =>
    totals[outcome] > 0 ? [[OUTCOME_WORDS[outcome], totals[outcome]] as const] : [],
  );
  const told = results.filter(
    ({ outcome = 'same', sourceRunId }) => outcome !== 'same' && !expected.includes(sourceRunId),
  );
  const blocks = told.slice(0, MAX_TOLD).map((member) => {
    const { outcome, sourceRunId, forkRunId } = member;
    const words = OUTCOME_WORDS[outcome as Outcome] ?? outcome;
    const fork = forkRunId === undefined ? '' : ` → ${forkRunId}`;
    const lines = memberLines(member);
    const more = lines.length > MAX_LINES ? [`and ${lines.length - MAX_LINES} more`] : [];
    return [
      printable(`${words}: ${sourceRunId}${fork}`),
      ...[...lines.slice(0, MAX_LINES), ...more].flatMap((line) => wrapped(line, '  ', screen)),
    ].join('\n');
  });
  const rest =
    told.length > MAX_TOLD ? [`And ${told.length - MAX_TOLD} more: --json has all.`] : [];
  return [
    wrapped(printable(head), '', screen).join('\n'),
    table(['CAME TO', 'RUNS'], counted, { screen }),
    `Models: ${useText(cohort)}.`,
    ...(leftOut ? [wrapped(`${leftOutText(leftOut)}.`, '', screen).join('\n')] : []),
    ...blocks,
    ...rest,
  ].join('\n\n');
}
