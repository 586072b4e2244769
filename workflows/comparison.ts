// What a fork states, held against what its source stated (architecture §6): by key, each once. The entries before
// `fromSeq` are the fork's own log already; those behind it are stated anew.
import { readDelta } from '../src/rules/deltas.ts';
import { cutOffItem, trackOpen, type CutOffStream, type OpenItem } from '../src/rules/endings.ts';
import { canonicalJson, type JsonObject, type JsonValue } from '../src/rules/json.ts';
import { blockOfKey, TERMINAL_KEY } from '../src/rules/ids.ts';
import type { CausedBy } from '../src/rules/journal.ts';
import type { RecordedEntry } from '../src/rules/recording.ts';
import type { ForkOf } from '../src/rules/run-input.ts';

/** A fact, as code states it. */
export interface Stated {
  readonly key: string;
  readonly type: string;
  readonly payload: object;
  readonly nodeId?: string | undefined;
  readonly causedBy?: CausedBy | undefined;
}

export interface Divergence {
  readonly kind: 'output' | 'missing' | 'extra' | 'type-mismatch';
  /** Sequence in the source, of the fact or of where it would stand. */
  readonly atSequence: number;
  readonly key: string;
  readonly type: string;
}

type Expected = RecordedEntry & { readonly sequence: number };

interface ComparedRecord {
  readonly fork: ForkOf;
  readonly entries: readonly RecordedEntry[];
}

/** When the source stated a fact. */
export type When = 'by-now' | 'later' | 'never';

export class Comparison {
  readonly #entries: readonly RecordedEntry[];
  readonly #expected: ReadonlyMap<string, Expected>;
  readonly #seen = new Set<string>();
  readonly #fork: ForkOf;
  readonly #runId: string;
  /** What each node stated, in its order, and how much of that has come. No node has an empty id. */
  readonly #ofNode = new Map<string, { readonly sequences: number[]; come: number }>();
  #position = 0;
  #isOver = false;
  /** What the fork states from now on is its own, whatever its log has from its source. */
  #isOwn = false;
  #found: Divergence | undefined;
  #isTaken = false;

  /** Is told of the first difference before anything else is stated. */
  onFound: ((found: Divergence) => void) | undefined;

  constructor(runId: string, { fork, entries }: ComparedRecord) {
    this.#runId = runId;
    this.#fork = fork;
    this.#entries = entries;
    this.#expected = new Map(entries.map((entry, sequence) => [entry.key, { ...entry, sequence }]));
    entries.forEach((entry, sequence) => {
      const { nodeId = '' } = entry;
      const ofNode = this.#ofNode.get(nodeId) ?? { sequences: [], come: 0 };
      if (isStated(entry)) ofNode.sequences.push(sequence);
      this.#ofNode.set(nodeId, ofNode);
    });
  }

  /** Of the source's log. */
  get length(): number {
    return this.#entries.length;
  }

  /** `next`: sequence of the first entry that is not stated yet. A source that has not ended itself may still state more. */
  whenStated(key: string, next: number): When {
    const sequence = this.#sequenceByCode(key);
    if (sequence !== undefined) return sequence < next ? 'by-now' : 'later';
    return this.#sequenceByCode(TERMINAL_KEY) === undefined ? 'later' : 'never';
  }

  /** What was derived of an end from outside no code stated. */
  #sequenceByCode(key: string): number | undefined {
    const expected = this.#expected.get(key);
    return expected?.isDerived ? undefined : expected?.sequence;
  }

  #sequenceOf(key: string): number | undefined {
    return this.#expected.get(key)?.sequence;
  }

  /** What streams say that are open before `sequence`, by activity. Those of a branch that went on by itself are closed. */
  openStreams(sequence: number): Map<string, string> {
    if (this.#isOwn) return new Map();
    return new Map([...this.#streams(sequence)].map(([block, { text }]) => [block, text]));
  }

  #streams(sequence: number): Map<string, CutOffStream> {
    const open = new Map<string, CutOffStream>();
    for (const { key, type, nodeId, payload } of this.#entries.slice(0, sequence)) {
      const block = blockOfKey(key);
      if (block !== undefined) {
        const { form, piece } = readDelta(type, payload);
        const text = (open.get(block)?.text ?? '') + piece.text;
        open.set(block, {
          type,
          base: form.base,
          text,
          ...(nodeId === undefined ? {} : { nodeId }),
        });
      }
      const closed = /^([^#]+?)(?:\.seal)?#[0-9]+$/.exec(key)?.[1];
      if (closed !== undefined) open.delete(closed);
    }
    return open;
  }

  /** The first one. */
  get divergence(): Divergence | undefined {
    return this.#found;
  }

  /** Given once. */
  taken(): Divergence | undefined {
    const isFirst = !this.#isTaken;
    this.#isTaken = this.#found !== undefined;
    return isFirst ? this.#found : undefined;
  }

  /** The source may have stated a fact of this name itself. */
  freeKey(key: string): string {
    return this.#expected.has(key) ? this.freeKey(`${key}|again`) : key;
  }

  /** True: it stands in the fork's log already, and is not stated again. */
  holds(stated: Stated): boolean {
    const expected = this.#expected.get(stated.key);
    if (expected) this.#seen.add(stated.key);
    if (!this.#isOver) this.#compare(stated, expected);
    return !this.#isOwn && this.#stands(stated.key);
  }

  /** A fact that the log has from the source otherwise has another name. */
  keyOf(key: string): string {
    return this.#isOwn && this.#stands(key) ? `${key}|again` : key;
  }

  #stands(key: string): boolean {
    return (this.#sequenceOf(key) ?? Infinity) < this.#fork.fromSeq;
  }

  /** What is open in the fork's log, from its source, where its own code has these open. */
  openBeside(own: readonly OpenItem[]): readonly OpenItem[] {
    let open: readonly OpenItem[] = [];
    for (const { key, type, nodeId, payload } of this.#entries.slice(0, this.#fork.fromSeq))
      if (blockOfKey(key) === undefined)
        open = trackOpen(open, { key, type, nodeId, payload: JSON.parse(payload) as JsonObject });
    const streams = [...this.#streams(this.#fork.fromSeq)];
    const cutOff = streams.flatMap(([activityId, stream]) => cutOffItem(activityId, stream) ?? []);
    const keys = new Set(own.map(({ key }) => key));
    return [...open, ...cutOff].filter(({ key }) => !keys.has(key));
  }

  /** Names of facts that the fork's log has of its source, and that its own code may state again: all but those it has. */
  standing(): string[] {
    const before = this.#isOwn ? this.#entries.slice(0, this.#fork.fromSeq) : [];
    return before.flatMap(({ key }) => (this.#seen.has(key) ? [] : [key]));
  }

  /** Everything that the source stated before `position` must have come by now. */
  reached(position: number): void {
    for (let sequence = this.#position; sequence < this.#heldTo(position); sequence++)
      if (this.#isMissing(sequence)) this.#noteMissing(sequence);
    this.#position = Math.max(this.#position, this.#heldTo(position));
  }

  /** A branch is held to nothing that it does again. */
  #heldTo(position: number): number {
    return this.#fork.mode === 'branch' ? Math.min(position, this.#fork.fromSeq) : position;
  }

  #isMissing(sequence: number): boolean {
    const entry = this.#entries[sequence];
    return entry !== undefined && isStated(entry) && !this.#seen.has(entry.key);
  }

  #noteMissing(atSequence: number): void {
    const { key = '', type = '' } = this.#entries[atSequence] ?? {};
    this.#note({ kind: 'missing', atSequence, key, type });
  }

  /** The code broke off: what would have come next is missing. */
  breakOff(): void {
    const end = this.#heldTo(this.length);
    for (let sequence = this.#position; sequence < end && !this.#found; sequence++)
      if (this.#isMissing(sequence)) this.#noteMissing(sequence);
  }

  /** Before the end is stated, all else must have come. */
  compareEnd(ending: Stated): void {
    const expected = this.#expected.get(ending.key);
    if (expected?.isDerived) return;
    if (expected) this.reached(expected.sequence);
    if (this.#isOver) return;
    this.#seen.add(ending.key);
    this.#compare(ending, expected);
    this.end();
  }

  /** What is stated from now on has nothing to be held against. */
  end(): void {
    this.#isOver = true;
  }

  #compare(stated: Stated, expected: Expected | undefined): void {
    const { key, type, payload } = stated;
    // What a branch does again is its own.
    if (this.#heldTo(Infinity) <= (expected?.sequence ?? this.#position)) return;
    const atSequence = expected?.sequence ?? this.#position;
    if (!expected) return this.#note({ kind: 'extra', atSequence, key, type });
    if (expected.type !== type) return this.#note({ kind: 'type-mismatch', atSequence, key, type });
    // As the log has it: without what JSON does not hold, and with the source's own name.
    const own = JSON.stringify(payload).replaceAll(this.#runId, this.#fork.sourceRunId);
    if (canonicalOf(own) !== canonicalOf(expected.payload) || !hasCauseOf(stated, expected))
      return this.#note({ kind: 'output', atSequence, key, type });
    this.#keepsOrder(expected);
  }

  /** What its node stated before it has come before it. */
  #keepsOrder({ nodeId = '', sequence }: Expected): void {
    const ofNode = this.#ofNode.get(nodeId);
    if (!ofNode) return;
    const { sequences } = ofNode;
    const next = () => sequences[ofNode.come] ?? Infinity;
    while (next() < this.#heldTo(sequence) && !this.#isMissing(next())) ofNode.come++;
    if (next() < this.#heldTo(sequence)) this.#noteMissing(next());
  }

  #note(divergence: Divergence): void {
    if (this.#isOver || this.#found) return;
    this.#found = divergence;
    this.#isOver = true;
    this.#isOwn = this.#fork.overlay?.onDivergence === 'live';
    this.onFound?.(divergence);
  }
}

/** In a later segment of a fork that went on from a difference: what its log has of its source has its name for good. */
export function namesBeside(standing: readonly string[]): Pick<Comparison, 'holds' | 'keyOf'> {
  const taken = new Set(standing);
  return { holds: () => false, keyOf: (key) => (taken.has(key) ? `${key}|again` : key) };
}

/** Activities that a log with these facts knows. */
export function performedBy(standing: readonly string[]): ReadonlySet<string> {
  return new Set(
    standing.flatMap(
      (key) => blockOfKey(key) ?? /^([^#]+?)(?:\.seal)?#[0-9]+$/.exec(key)?.[1] ?? [],
    ),
  );
}

/** By code: streams come from activities, which are not performed here. */
function isStated({ key, isDerived }: RecordedEntry): boolean {
  return !isDerived && blockOfKey(key) === undefined;
}

/** Facts of other runs have other names. */
function hasCauseOf({ causedBy: own }: Stated, { causedBy: recorded }: Expected): boolean {
  return typeof own !== 'string' || typeof recorded !== 'string' || own === recorded;
}

function canonicalOf(text: string): string {
  return canonicalJson(JSON.parse(text) as JsonValue);
}
