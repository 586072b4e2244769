// Where a fork states something else than its source (replay.md §Divergence): it says so once, with both sides, and ends, or
// lives on from there (onDivergence). Code that breaks off while the record is played is such a difference, too: other code
// made that record, and a workflow task that fails for ever would show nothing.
import { ApplicationFailure, isCancellation } from '@temporalio/workflow';
import { closingsOf } from '../src/rules/endings.ts';
import { eventIdOf, TERMINAL_KEY, WENT_ON_KEY } from '../src/rules/ids.ts';
import { CANCELLATION_GRACE_MS } from '../src/rules/limits.ts';
import type { ForkOf, RunInput } from '../src/rules/run-input.ts';
import type { Comparison, Divergence, Stated } from './comparison.ts';
import { endOtherwise, endRun, type Run } from './context.ts';
import { takeFaultsBy } from './failures.ts';
import type { NodeError } from './frames.ts';
import { emit, endJournal, openItems } from './journal.ts';
import type { RecordedSteps } from './recorded-steps.ts';

/** A fork that plays a record, or has. */
export interface Played {
  readonly of: ForkOf;
  readonly steps: RecordedSteps;
  readonly comparison: Comparison;
}

/** From now on the run goes by what is found. */
export function watchRecord(run: Run, played: Played): void {
  played.comparison.onFound = (found) => goApart(run, played, found);
  takeFaultsBy((error) => breakOff(run, played, error));
}

function goApart(run: Run, { of, steps, comparison }: Played, found: Divergence): void {
  if (isToLive(of)) return stateGoingOn(run.input, comparison, { of, found });
  // Somebody cancelled the fork itself: that is why.
  if (!steps.isBroken()) endOtherwise(run, { kind: 'failed', error: divergedBy(found) });
}

/** It ends, since it has gone apart. */
function isApart({ of, comparison }: Played): boolean {
  return comparison.divergence !== undefined && !isToLive(of);
}

/** What goes wrong is no fault of a run that lives. */
function isPlayed(played: Played): boolean {
  return !played.steps.isLive() || isApart(played);
}

function isToLive({ overlay }: ForkOf): boolean {
  return overlay?.onDivergence === 'live';
}

/** False: the workflow task fails, as that of any run does, until the code is mended. */
export function breakOff(run: Run, played: Played, error: unknown): boolean {
  const { of, comparison } = played;
  if (!isPlayed(played) || isCancellation(error)) return false;
  comparison.breakOff();
  const ending = { kind: 'failed', error: faultOf(error) } as const;
  if (isToLive(of)) endOtherwise(run, ending);
  else endRun(run, ending);
  return true;
}

/** Said once, and before the end of the fork. */
export function stateApart({ input }: Run, { of, steps, comparison }: Played): void {
  const found = comparison.taken();
  if (!found || steps.isBroken() || isToLive(of)) return;
  stateDiverged(input, { of, found, key: comparison.freeKey(DIVERGED_KEY) });
}

/** What the run ends with must be what its source ended with; else the run has another end by now. */
export function compareEnd(run: Run, played: Played, end: Omit<Stated, 'key'>): void {
  played.comparison.compareEnd({ ...end, key: TERMINAL_KEY });
  stateApart(run, played);
}

/** Frames of other code may wait for what never comes. */
export async function frameRest({ active, steps }: Run, played: Played): Promise<void> {
  if (isApart(played)) await steps.until(() => active.size === 0, CANCELLATION_GRACE_MS);
  else await Promise.all(active.values());
}

/** There is no run that could end by itself. */
export function endBroken(input: RunInput, played: Played, error: unknown): never {
  const { of, comparison } = played;
  // Where nothing is but the record, who plays it is told.
  if (of.isWhole || !isPlayed(played) || isCancellation(error)) throw error;
  comparison.breakOff();
  const found = isToLive(of) ? undefined : comparison.divergence;
  const said = found && comparison.taken() && comparison.freeKey(DIVERGED_KEY);
  if (found && said) stateDiverged(input, { of, found, key: said });
  const { code, message, details = {} } = found ? divergedBy(found) : faultOf(error);
  emit('run.failed', { error: { code, message, details } }, { key: TERMINAL_KEY, causedBy: said });
  endJournal('failed');
  throw ApplicationFailure.create({ type: code, message: code, nonRetryable: true });
}

/** Engine and people see where it left its source, and why it ended. */
function divergedBy({ kind, atSequence }: Divergence): NodeError {
  const message = `The fork states something else than its source at ${atSequence}.`;
  return { code: 'replay_diverged', message, details: { atSequence, divergenceKind: kind } };
}

/** Its message may hold anything. */
function faultOf(error: unknown): NodeError {
  const message = 'Something went wrong inside the host.';
  return { code: 'internal_error', message, details: { fault: (error as Error).name } };
}

/** Before the first fact of its own: what its log has open from its source, and its own code does not know, is over. */
function stateGoingOn(
  input: RunInput,
  comparison: Comparison,
  { of, found }: { readonly of: ForkOf; readonly found: Divergence },
): void {
  stateDiverged(input, { of, found, key: WENT_ON_KEY });
  const reason = { code: 'replay_diverged', message: 'The fork lives on its own from before it.' };
  const closings = closingsOf(comparison.openBeside(openItems()), reason);
  // Its own code may come to these ends as well.
  for (const { type, payload, key, ...options } of closings)
    emit(type, payload, { ...options, key: `${key}|left`, because: WENT_ON_KEY });
}

const DIVERGED_KEY = 'replay.diverged';

function stateDiverged(
  { runId }: RunInput,
  {
    of,
    found,
    ...named
  }: { readonly of: ForkOf; readonly found: Divergence; readonly key: string },
): void {
  const { kind, atSequence, key, type } = found;
  const stated = kind !== 'missing';
  const recorded = kind !== 'extra';
  emit(
    'replay.diverged',
    {
      ...{ sourceRunId: of.sourceRunId, atSequence, divergenceKind: kind, divergencePoint: type },
      ...(recorded ? { originalEventId: eventIdOf(of.sourceRunId, key) } : {}),
      ...(stated ? { replayEventId: eventIdOf(runId, key) } : {}),
    },
    named,
  );
}
