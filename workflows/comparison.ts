// What a fork states, held against what its source stated (architecture §6): by key, each once. The entries before
// `fromSeq` are the fork's own log already; those behind it are stated anew.
import { readDelta } from '../src/rules/deltas.ts';
import { trackOpen, type OpenItem } from '../src/rules/endings.ts';
import { canonicalJson, type JsonObject, type JsonValue } from '../src/rules/json.ts';
import { blockOfKey } from '../src/rules/ids.ts';
import type { RecordedEntry } from '../src/rules/recording.ts';
import type { ForkOf } from '../src/rules/run-input.ts';

/** A fact, as code states it. */
export interface Stated {
  readonly key: string;
  readonly type: string;
  readonly payload: object;
}

export interface Divergence {
  readonly kind: 'output' | 'missing' | 'extra' | 'type-mismatch';
  /** Sequence in the source, of the fact or of where it would stand. */
  readonly atSequence: number;
  readonly key: string;
  readonly type: string;
}

interface Expected {
  readonly sequence: number;
  readonly type: string;
  readonly payload: string;
}

interface ComparedRecord {
  readonly fork: ForkOf;
  readonly entries: readonly RecordedEntry[];
  readonly goesOn?: ((found: Divergence) => void) | undefined;
}

export class Comparison {
  readonly #entries: readonly RecordedEntry[];
  readonly #expected: ReadonlyMap<string, Expected>;
  readonly #seen = new Set<string>();
  readonly #fork: ForkOf;
  readonly #runId: string;
  readonly #goesOn: ComparedRecord['goesOn'];
  #position = 0;
  #isOver = false;
  /** What the fork states from now on is its own, whatever its log has from its source. */
  #isOwn = false;
  #found: Divergence | undefined;

  /** `goesOn` is told of the first difference before anything else is stated: the fork lives from there. */
  constructor(runId: string, { fork, entries, goesOn }: ComparedRecord) {
    this.#goesOn = goesOn;
    this.#runId = runId;
    this.#fork = fork;
    this.#entries = entries;
    this.#expected = new Map(
      entries.map(({ key, type, payload }, sequence) => [key, { sequence, type, payload }]),
    );
  }

  /** Of the source's log. */
  get length(): number {
    return this.#entries.length;
  }

  sequenceOf(key: string): number | undefined {
    return this.#expected.get(key)?.sequence;
  }

  /** What streams say that are open before `sequence`, by activity. */
  openStreams(sequence: number): Map<string, string> {
    const open = new Map<string, string>();
    for (const { key, type, payload } of this.#entries.slice(0, sequence)) {
      const block = blockOfKey(key);
      if (block !== undefined)
        open.set(block, (open.get(block) ?? '') + readDelta(type, payload).piece.text);
      const closed = /^([^#]+?)(?:\.seal)?#[0-9]+$/.exec(key)?.[1];
      if (closed !== undefined) open.delete(closed);
    }
    return open;
  }

  /** The first one. */
  get divergence(): Divergence | undefined {
    return this.#found;
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
    return (this.sequenceOf(key) ?? Infinity) < this.#fork.fromSeq;
  }

  /** What is open in the fork's log, from its source, where its own code has these open. */
  openBeside(own: readonly OpenItem[]): readonly OpenItem[] {
    let open: readonly OpenItem[] = [];
    for (const { key, type, nodeId, payload } of this.#entries.slice(0, this.#fork.fromSeq))
      open = trackOpen(open, { key, type, nodeId, payload: JSON.parse(payload) as JsonObject });
    const keys = new Set(own.map(({ key }) => key));
    return open.filter(({ key }) => !keys.has(key));
  }

  /** Activities that the fork's log knows, where the fork does again what its source did. */
  performed(): ReadonlySet<string> {
    const before = this.#isOwn ? this.#entries.slice(0, this.#fork.fromSeq) : [];
    return new Set(
      before.flatMap(
        ({ key }) => blockOfKey(key) ?? /^([^#]+?)(?:\.seal)?#[0-9]+$/.exec(key)?.[1] ?? [],
      ),
    );
  }

  /** Everything that the source stated before `position` must have come by now. */
  reached(position: number): void {
    for (let sequence = this.#position; sequence < position; sequence++) {
      const { key = '', type = '', isDerived } = this.#entries[sequence] ?? {};
      // Streams come from activities, which are not performed here.
      if (this.#seen.has(key) || isDerived || blockOfKey(key) !== undefined) continue;
      this.#note({ kind: 'missing', atSequence: sequence, key, type });
    }
    this.#position = Math.max(this.#position, position);
  }

  /** What is stated from now on has nothing to be held against. */
  end(): void {
    this.#isOver = true;
  }

  #compare({ key, type, payload }: Stated, expected: Expected | undefined): void {
    const atSequence = expected?.sequence ?? this.#position;
    if (!expected) return this.#note({ kind: 'extra', atSequence, key, type });
    if (expected.type !== type) return this.#note({ kind: 'type-mismatch', atSequence, key, type });
    // As the log has it: without what JSON does not hold, and with the source's own name.
    const own = JSON.stringify(payload).replaceAll(this.#runId, this.#fork.sourceRunId);
    if (canonicalOf(own) !== canonicalOf(expected.payload))
      this.#note({ kind: 'output', atSequence, key, type });
  }

  #note(divergence: Divergence): void {
    if (this.#isOver || this.#found) return;
    this.#found = divergence;
    if (!this.#goesOn) return;
    this.#isOver = true;
    this.#isOwn = true;
    this.#goesOn(divergence);
  }
}

function canonicalOf(text: string): string {
  return canonicalJson(JSON.parse(text) as JsonValue);
}
