// A log that was stated again, held against the one that was recorded (architecture §6): each fact by its key, each once,
// and in the order in which its node stated it. Across nodes the order is not compared: what one workflow task brought
// to several is stated in any.
import { blockOfKey } from './ids.ts';
import type { EmittedEntry } from './journal.ts';
import { canonicalJson, type JsonValue } from './json.ts';
import type { RecordedEntry } from './recording.ts';

/** A fact, as the replay stated it. */
export type StatedEntry = Pick<EmittedEntry, 'key' | 'type' | 'nodeId' | 'payload'>;

/** One side of a difference. */
export interface Side {
  readonly type: string;
  readonly nodeId?: string;
  readonly payload: JsonValue;
}

export interface Difference {
  /** In the words of `replay.diverged`; `order`: the same facts, told in another order by one node. */
  readonly kind: 'output' | 'missing' | 'extra' | 'type-mismatch' | 'order';
  /** Sequence of the recorded fact, or of where it would stand. */
  readonly atSequence: number;
  readonly key: string;
  readonly recorded?: Side;
  readonly replayed?: Side;
}

export interface Compared {
  /** Facts that were stated again, and equal. */
  readonly equal: number;
  /** Pieces of live text: activities told them, and none runs in a replay. */
  readonly pieces: number;
  /** What the host wrote where no workflow code ran: the end of a run that was ended from outside. */
  readonly outside: number;
  /** The first one. */
  readonly difference?: Difference;
}

export function compareReplayed(
  entries: readonly RecordedEntry[],
  stated: readonly StatedEntry[],
): Compared {
  const replayed = new Map(stated.map((entry) => [entry.key, entry]));
  const facts = entries.flatMap((entry, sequence) =>
    blockOfKey(entry.key) === undefined ? [{ ...entry, sequence }] : [],
  );
  const pieces = entries.length - facts.length;
  const own = facts.filter(({ isDerived }) => !isDerived);
  // What was stated in the place of a fact comes before that it was not.
  const differences = [
    ...extrasIn(own, stated, entries.length),
    ...own.flatMap((fact) => differenceOf(fact, replayed.get(fact.key))),
    ...misplacedIn(own, stated),
  ].sort((a, b) => a.atSequence - b.atSequence);
  const [difference] = differences;
  const equal = difference
    ? own.filter(({ sequence }) => sequence < difference.atSequence).length
    : own.length;
  const outside = facts.length - own.length;
  return { equal, pieces, outside, ...(difference ? { difference } : {}) };
}

type Fact = RecordedEntry & { readonly sequence: number };

function differenceOf(fact: Fact, replayed: StatedEntry | undefined): Difference[] {
  const { sequence: atSequence, key, type, nodeId } = fact;
  const recorded = recordedSide(fact);
  if (!replayed) return [{ kind: 'missing', atSequence, key, recorded }];
  const kind = replayed.type === type ? 'output' : 'type-mismatch';
  const isEqual =
    replayed.type === type &&
    replayed.nodeId === nodeId &&
    // As the log has it: without what JSON does not hold.
    canonicalJson(replayed.payload) === canonicalJson(recorded.payload);
  return isEqual ? [] : [{ kind, atSequence, key, recorded, replayed: replayedSide(replayed) }];
}

/** Facts that the record lacks: each stands behind the one that was stated before it. */
function extrasIn(
  own: readonly Fact[],
  stated: readonly StatedEntry[],
  length: number,
): Difference[] {
  const places = new Map(own.map(({ key, sequence }) => [key, sequence]));
  let atSequence = own.length === 0 ? length : 0;
  return stated.flatMap((entry): Difference[] => {
    const place = places.get(entry.key);
    if (place === undefined)
      return [{ kind: 'extra', atSequence, key: entry.key, replayed: replayedSide(entry) }];
    atSequence = Math.max(atSequence, place + 1);
    return [];
  });
}

/** The first fact of each node that stands where another was recorded. */
function misplacedIn(own: readonly Fact[], stated: readonly StatedEntry[]): Difference[] {
  const byKey = new Map(own.map((fact) => [fact.key, fact]));
  const inOrder = new Map<string, StatedEntry[]>();
  for (const entry of stated) {
    const { key, nodeId = '' } = entry;
    if (!byKey.has(key)) continue;
    const ofNode = inOrder.get(nodeId) ?? [];
    ofNode.push(entry);
    inOrder.set(nodeId, ofNode);
  }
  return [...inOrder.values()].flatMap((told): Difference[] => {
    const at = told.findIndex(
      ({ key }, index) => index > 0 && sequenceOf(byKey, key) < sequenceOf(byKey, told[index - 1]),
    );
    const entry = told[at];
    const fact = entry && byKey.get(entry.key);
    if (!entry || !fact) return [];
    const { key, sequence: atSequence } = fact;
    const sides = { recorded: recordedSide(fact), replayed: replayedSide(entry) };
    return [{ kind: 'order', atSequence, key, ...sides }];
  });
}

function sequenceOf(byKey: ReadonlyMap<string, Fact>, of: string | StatedEntry = ''): number {
  return byKey.get(typeof of === 'string' ? of : of.key)?.sequence ?? 0;
}

function recordedSide({ type, nodeId, payload }: RecordedEntry): Side {
  const told = JSON.parse(payload) as JsonValue;
  return { type, ...(nodeId === undefined ? {} : { nodeId }), payload: told };
}

function replayedSide({ type, nodeId, payload }: StatedEntry): Side {
  return { type, ...(nodeId === undefined ? {} : { nodeId }), payload };
}

/** What became of a file that was to be replayed. */
export type ReplayReport =
  | {
      readonly kind: 'replayed';
      readonly runId: string;
      readonly workflowId: string;
      readonly status: string;
      /** Of the log. */
      readonly events: number;
      readonly compared: Compared;
      /** Variables whose values are not in the file. */
      readonly withheld: readonly string[];
      /** Versions of the host that made the file, and of this one. */
      readonly madeBy: string;
      readonly replayedBy: string;
    }
  | { readonly kind: 'refused'; readonly code: string; readonly message: string };
