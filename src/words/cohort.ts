// What became of the members of a cohort, in the words of pages and terminal.
import type { Cohort, CohortMemberResult } from '../../schemas/types.generated.ts';
import { causeText } from './diff.ts';
import { printable } from './printable.js';
import { unreadableText } from './unreadable.ts';

export type Outcome = NonNullable<CohortMemberResult['outcome']>;

/** In the order in which they are told. */
export const OUTCOME_WORDS: Readonly<Record<Outcome, string>> = {
  same: 'The same',
  diverged: 'Another way',
  'outcome-changed': 'Another outcome',
  asks: 'Asks',
  failed: 'Failed',
  'source-missing': 'Source missing',
  'not-compared': 'Not compared',
  'not-finished': 'Not finished',
};

export const STATE_WORDS: Readonly<Record<Cohort['state'], string>> = {
  running: 'under way',
  cancelling: 'being cancelled',
  completed: 'done',
  cancelled: 'cancelled',
};

/** What all members went by. */
export function changeText({
  mode,
  change,
  unreadable,
}: Pick<Cohort, 'mode' | 'change' | 'unreadable'>): string {
  if (unreadable) return unreadableText(unreadable);
  if (mode === 'replay')
    return `replayed by the code of ${change.build === undefined ? 'this build' : `build ${change.build}`}`;
  const agents = Object.entries(change.agents ?? {}).map(([name, { packVersion }]) =>
    packVersion === undefined ? `another prompt of ${name}` : `version ${packVersion} of ${name}`,
  );
  const options =
    Object.keys(change.configurable ?? {}).length > 0 ? ['another configuration'] : [];
  return `forked by ${[...agents, ...options].join(', ')}`;
}

/** Without its full stop. */
export function leftOutText({ runs, runIds }: NonNullable<Cohort['leftOut']>): string {
  const more = runs > runIds.length ? ', …' : '';
  const are = runs === 1 ? 'run cannot be read, and is' : 'runs cannot be read, and are';
  return printable(`${runs} ${are} not among these: ${runIds.join(', ')}${more}`);
}

/** Why a member is not the same, a line for each thing. */
export function memberLines(member: CohortMemberResult): string[] {
  const { changes = [], asks, error, divergence, unreadable } = member;
  const lines = changes.map(
    ({ nodeId = 'the run', visit = 1, pointer, before = 'nothing', after = 'nothing' }) =>
      `${nodeId}${visit === 1 ? '' : ` (visit ${visit})`} ${pointer}: ${before} → ${after}`,
  );
  if (asks) lines.push(`asks at ${asks.nodeId} (${asks.kind}): ${asks.data}`);
  if (error) lines.push(`${error.code}: ${error.message}`);
  if (divergence && (lines.length === 0 || divergence.build)) {
    const { seq, nodeId, cause, overlay, build } = divergence;
    const where = nodeId === undefined ? '' : ` at ${nodeId}`;
    const told = { cause, ...(overlay ? { overlay } : {}), ...(build ? { build } : {}) };
    lines.push(
      `from event ${seq}${where} on: ${causeText(told as Parameters<typeof causeText>[0])}`,
    );
  }
  const told = lines.map(printable);
  return unreadable ? [...told, unreadableText(unreadable)] : told;
}

/** What both sides took of models. */
export function useText({ before, after }: Pick<Cohort, 'before' | 'after'>): string {
  const side = ({ inputTokens, outputTokens, usd }: Cohort['before']): string =>
    `${inputTokens + outputTokens} tokens${usd === undefined ? '' : ` (${usd.toFixed(4)} USD)`}`;
  return `${side(before)} before, ${side(after)} after`;
}
