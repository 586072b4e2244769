// A log as it is held against another one whole, however long it is: each fact and each step by its digest, row by row as it
// is read. Beside the digests it keeps what tells which decisions differ, and where the two logs go apart.
import { blockOfKey, sha256Hex } from './ids.ts';
import { canonicalJson, isJsonObject, type JsonObject, type JsonValue } from './json.ts';
import { isSameStream, saidText, streamPieceOf } from './log-differences.ts';
import { StepFold, type RunStep, type SteppedRow } from './run-steps.ts';

/** Facts of one log that are held; pieces of streams are none. */
export const MAX_DIGESTED_FACTS = 100_000;
/** UTF-16 units of those streams of a log that no fact states. */
const MAX_STREAM_CHARACTERS = 8 * 1024 * 1024;
/** Longest value that a step keeps, in UTF-16 units of JSON: a decision, and any other. Of a longer one a text stands there. */
const DECISION_CHARACTERS = 2_000;
const VALUE_CHARACTERS = 200;
/** Beginning of a longer one. */
const BEGINNING_CHARACTERS = 150;
/** Decisions of one log that are kept, in UTF-16 units of JSON: of those after them only the digests. */
const MAX_DECIDED_CHARACTERS = 8 * 1024 * 1024;

/** One visit of a node. */
export interface DigestedStep {
  readonly nodeId: string;
  readonly sequence: number;
  readonly status: string;
  /** Of its decisions, but for how sure somebody was. */
  readonly decided: string;
  /** Absent: those before took the room. */
  readonly decisions?: readonly JsonValue[];
  /** Of all that it did and decided, but for what a model was asked with. */
  readonly did: string;
  /** Of its error, and of those of its calls. */
  readonly errorCodes: readonly string[];
}

interface DigestedFact {
  readonly sequence: number;
  readonly digest: string;
}

export class DigestedLog {
  /** By key. */
  readonly facts = new Map<string, DigestedFact>();
  /** By node and visit. */
  readonly steps = new Map<string, DigestedStep>();
  readonly #streams = new Map<string, { readonly sequence: number; text: string }>();
  readonly #fold = new StepFold((step) => this.#takeStep(step), kept);
  #isWhole = true;
  #streamLeft = MAX_STREAM_CHARACTERS;
  #decidedLeft = MAX_DECIDED_CHARACTERS;

  /** There was no more of it than can be held. */
  get isWhole(): boolean {
    return this.#isWhole;
  }

  /** The next row; false: no more of it can be held, and none is read. Ids are those of the other log (`renamingBy`). */
  take(row: SteppedRow): boolean {
    if (blockOfKey(row.key) !== undefined) this.#takePiece(row);
    else if (this.facts.size < MAX_DIGESTED_FACTS) {
      this.facts.set(row.key, { sequence: row.sequence, digest: sha256Hex(saidText(row)) });
      this.#fold.take(row);
    } else this.#isWhole = false;
    return this.#isWhole;
  }

  /** After the last row. */
  end(): void {
    this.#fold.end();
  }

  #takePiece(row: SteppedRow): void {
    const piece = streamPieceOf(row);
    if (!piece) return;
    const stream = this.#streams.get(piece.name) ?? { sequence: row.sequence, text: '' };
    this.#streams.set(piece.name, stream);
    stream.text += piece.text;
    this.#streamLeft -= piece.text.length;
    if (this.#streamLeft < 0) this.#isWhole = false;
  }

  #takeStep({ nodeId, visit, sequence, status, did }: RunStep): void {
    const { decisions } = did;
    const done = without(did, ASKED_WITH);
    const decided = (Array.isArray(decisions) ? decisions : []).map((decision) =>
      // How sure somebody was is no decision.
      isJsonObject(decision) ? without(decision, ['confidence']) : decision,
    );
    const text = canonicalJson(decided);
    this.#decidedLeft -= text.length;
    this.steps.set(placeOf(nodeId, visit), {
      ...{ nodeId, sequence, status, decided: sha256Hex(text), errorCodes: errorCodesOf(done) },
      ...(this.#decidedLeft < 0 ? {} : { decisions: decided }),
      did: sha256Hex(canonicalJson(done)),
    });
  }

  /** Where the other one says something else first: a fact that differs, or one that only one of them has. */
  firstDifference(other: DigestedLog): FirstDifference | undefined {
    const found: FirstDifference[] = [];
    const note = (a: number | undefined, b: number | undefined): void => {
      const seq = a ?? b;
      if (seq !== undefined && seq < (found[0]?.seq ?? Infinity))
        found[0] = { seq, ...(a === undefined ? {} : { a }), ...(b === undefined ? {} : { b }) };
    };
    for (const [key, { sequence, digest }] of this.facts) {
      const there = other.facts.get(key);
      if (there?.digest !== digest) note(sequence, there?.sequence);
    }
    for (const [key, { sequence }] of other.facts)
      if (!this.facts.has(key)) note(undefined, sequence);
    for (const [name, { sequence, text }] of this.#streams) {
      const there = other.#streams.get(name);
      if (there && !isSameStream(text, there.text)) note(sequence, there.sequence);
    }
    return found[0];
  }
}

/** By sequences; absent: that log does not have it. */
export interface FirstDifference {
  /** As that of a difference of two logs. */
  readonly seq: number;
  readonly a?: number;
  readonly b?: number;
}

function placeOf(nodeId: string, visit: number): string {
  return JSON.stringify([nodeId, visit]);
}

/** Of a step, what a model was asked with: of another prompt that is another one before anything comes of it. */
const ASKED_WITH = ['prompts', 'models'];

function without(object: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)));
}

/** What a step keeps of a value: two that differ are kept as two that differ. */
function kept(value: JsonValue, name: string): JsonValue {
  if (value === null || typeof value === 'number' || typeof value === 'boolean') return value;
  const text = canonicalJson(value);
  const limit = name === 'decision' ? DECISION_CHARACTERS : VALUE_CHARACTERS;
  if (text.length <= limit) return value;
  const short = `${text.slice(0, BEGINNING_CHARACTERS)}… (SHA-256 ${sha256Hex(text)})`;
  if (!isJsonObject(value) || typeof value.code !== 'string') return short;
  return { code: value.code.slice(0, BEGINNING_CHARACTERS), short };
}

function errorCodesOf({ error, calls }: JsonObject): string[] {
  const faults = [error, ...(Array.isArray(calls) ? calls : []).map(errorOf)];
  return faults.flatMap((fault) =>
    isJsonObject(fault) && typeof fault.code === 'string' ? [fault.code] : [],
  );
}

function errorOf(call: JsonValue): JsonValue | undefined {
  return isJsonObject(call) ? call.error : undefined;
}
