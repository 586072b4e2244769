// Children of a fork (architecture §6): for each child run that the recorded part began, a fork of it. One that had ended
// by then is replayed as a whole; one that was open lives on from where it was, by the source's clock.
import type { ChildStart } from './children.ts';
import { eventRow } from './events.ts';
import { childRunIdOf } from './ids.ts';
import { isJsonObject } from './json.ts';
import { givenOf, type Recording, type Stimulus } from './recording.ts';
import type { ForkOf, RunInput } from './run-input.ts';

/** The source, where its fork leaves it. */
export interface Leaving {
  readonly mode: ForkOf['mode'];
  /** By the source's clock: what happened later is not the fork's. Infinity: it leaves where its source ends. */
  readonly atMs: number;
  /** Keys of the facts that the fork's record holds. */
  readonly told: ReadonlySet<string>;
  /** Children that are named as begun. */
  readonly dispatched: readonly string[];
  /** Children that had told their end. */
  readonly ended: ReadonlySet<string>;
  /** Runs that lived the record, one after the other. */
  readonly lived: readonly string[];
}

export function leavingOf(of: ForkOf, recording: Recording): Leaving {
  const { mode, fromSeq } = of;
  const { batches } = givenOf(of, recording);
  // What goes on where its source is now has all that this has begun.
  const isWhole = mode === 'replay' || batches.length === recording.batches.length;
  const held = mode === 'replay' ? recording.entries : recording.entries.slice(0, fromSeq);
  const atMs = Math.max(batches.at(-1)?.atMs ?? 0, held.at(-1)?.timestampMs ?? 0);
  const stimuli = batches.flatMap((batch) => batch.stimuli);
  const ended = stimuli.flatMap((it) => (it.kind === 'child-ended' ? [it.childRunId] : []));
  // It has none of its own there.
  const recorded = new Set(stimuli.flatMap(recordedIn));
  return {
    mode,
    atMs: isWhole ? Infinity : atMs,
    told: new Set(held.map(({ key }) => key)),
    dispatched: held.flatMap(({ type, payload }) => {
      if (eventRow(type).part !== 'child') return [];
      const { childRunId = '' } = JSON.parse(payload) as { readonly childRunId?: string };
      return childRunId === '' || recorded.has(childRunId) ? [] : childRunId;
    }),
    ended: new Set(ended),
    lived: batches.flatMap(({ lived }) => lived ?? []),
  };
}

/** Children that the record of another run had: what startChildren came to in a branch by recorded tools. */
function recordedIn(stimulus: Stimulus): string[] {
  if (stimulus.kind !== 'step' || stimulus.outcome.kind !== 'completed') return [];
  const { output } = stimulus.outcome.result;
  if (!isJsonObject(output) || !Array.isArray(output.starts)) return [];
  return (output.starts as unknown as ChildStart[]).flatMap((start) =>
    start.kind === 'recorded' ? [start.childRunId] : [],
  );
}

/** A child of the source. */
export interface KnownChild {
  readonly runId: string;
  readonly input: Pick<RunInput, 'header'>;
}

/** What the record may call it: in a fork's, its source's children stand by their own names. */
export function namesOf({ lived }: Leaving, { runId, input: { header } }: KnownChild): string[] {
  const { causationId = '' } = header;
  return [runId, ...lived.map((parent) => childRunIdOf(parent, causationId, 0))];
}

/** As its own log tells it. */
export interface SourceChild extends KnownChild {
  readonly isClosed: boolean;
  /** Of its entries, in their order. */
  readonly timesMs: readonly number[];
}

/**
 * How it is forked. Undefined: the recorded part had not asked for it. Of one that was asked for and had not begun, all
 * that it did is another life.
 */
export function childForkOf(
  leaving: Leaving,
  child: SourceChild,
): Pick<ForkOf, 'mode' | 'fromSeq' | 'length'> | undefined {
  const { mode, atMs, told, ended } = leaving;
  const { isClosed, timesMs } = child;
  const { startedBy } = child.input.header;
  const key = typeof startedBy === 'object' ? startedBy.key : startedBy;
  if (key === undefined || !told.has(key)) return undefined;
  const { length } = timesMs;
  const hasTold = namesOf(leaving, child).some((name) => ended.has(name));
  const hasEnded = isClosed && (hasTold || (timesMs.at(-1) ?? 0) <= atMs);
  if (mode === 'replay' || hasEnded) return { mode: 'replay', fromSeq: length, length };
  const before = timesMs.filter((timeMs) => timeMs <= atMs).length;
  // Its end, where it has come, is none that its parent had seen.
  return { mode: 'branch', fromSeq: Math.min(before, isClosed ? length - 1 : length), length };
}
