// A log as it is held against another one whole, within named limits: each fact and each step by its digest, row by row as it
// is read. Beside the digests it keeps what tells which decisions differ, and where the two logs go apart.
import { createHash } from 'node:crypto';
import { blockOfKey } from '../rules/ids.ts';
import { canonicalJson, isJsonObject, type JsonObject, type JsonValue } from '../rules/json.ts';
import { isSameStream, saidText, streamPieceOf, type Renaming } from '../rules/log-differences.ts';
import { StepFold, type RunStep, type SteppedRow } from '../rules/run-steps.ts';
import type { DigestedStep } from '../rules/cohort.ts';

/** Facts of one log that are held; pieces of streams are none. */
export const MAX_DIGESTED_FACTS = 100_000;
/** UTF-16 units of those streams of a log that no fact states. */
export const MAX_STREAM_CHARACTERS = 8 * 1024 * 1024;
/** Longest value that a step keeps, in UTF-16 units of JSON: a decision, and any other. Of a longer one a text stands there. */
const DECISION_CHARACTERS = 2_000;
const VALUE_CHARACTERS = 200;
/** Beginning of a longer one. */
const BEGINNING_CHARACTERS = 150;
/** Decisions of one log that are kept, in UTF-16 units of JSON: of those after them only the digests. */
const MAX_DECIDED_CHARACTERS = 8 * 1024 * 1024;

interface DigestedFact {
  readonly sequence: number;
  readonly digest: string;
}

interface Stream {
  readonly sequence: number;
  text: string;
}

export class DigestedLog {
  /** By key. */
  readonly facts = new Map<string, DigestedFact>();
  /** By node and visit. */
  readonly steps = new Map<string, DigestedStep>();
  readonly #streams = new Map<string, Stream>();
  readonly #fold = new StepFold(
    (step) => this.#takeStep(step),
    (value, name) => this.#kept(value, name),
  );
  readonly #rename: Renaming;
  #streamLeft = MAX_STREAM_CHARACTERS;
  #decidedLeft = MAX_DECIDED_CHARACTERS;

  /** `rename` says its ids in those of the log that it is held against. */
  constructor(rename: Renaming = (text) => text) {
    this.#rename = rename;
  }

  /** The next row; false: there is more of it than can be held. */
  take(row: SteppedRow): boolean {
    if (blockOfKey(row.key) !== undefined) this.#takePiece(row);
    else if (this.facts.size < MAX_DIGESTED_FACTS) this.#takeFact(row);
    else return false;
    return this.#streamLeft >= 0;
  }

  /** After the last row. */
  end(): void {
    this.#fold.end();
    // An id may have been cut between two pieces.
    for (const stream of this.#streams.values()) stream.text = this.#rename(stream.text);
  }

  #takeFact(row: SteppedRow): void {
    const renamed = { ...row, payload: this.#rename(row.payload) };
    this.facts.set(row.key, { sequence: row.sequence, digest: hashOf(saidText(renamed)) });
    this.#fold.take(renamed);
  }

  #takePiece(row: SteppedRow): void {
    const piece = streamPieceOf(row);
    if (!piece) return;
    const stream = this.#streams.get(piece.name) ?? { sequence: row.sequence, text: '' };
    this.#streams.set(piece.name, stream);
    stream.text += piece.text;
    this.#streamLeft -= piece.text.length;
  }

  #takeStep({ nodeId, visit, sequence, status, did }: RunStep): void {
    const { decisions = [] } = did;
    const done = without(did, ASKED_WITH);
    const made = Array.isArray(decisions) ? decisions.filter(isJsonObject) : [];
    // How sure somebody was is no decision.
    const decided = made.map((decision) => without(decision, ['confidence']));
    const shown = decided.map(({ decision, ...rest }) => ({ ...rest, ...shownDecision(decision) }));
    const isShown = shown.every((each) => Object.hasOwn(each, 'decision'));
    const plain = (each: JsonObject): JsonObject => ({
      ...each,
      decision: digestIn(each.decision),
    });
    this.steps.set(JSON.stringify([nodeId, visit]), {
      ...{ nodeId, visit, sequence, status, errorCodes: errorCodesOf(done) },
      decided: hashOf(canonicalJson(decided.map(plain))),
      ...(isShown ? { decisions: shown } : {}),
      did: hashOf(canonicalJson({ ...done, decisions: made.map(plain) })),
    });
  }

  /** What a step keeps of a value: of two that differ two that differ. */
  #kept(value: JsonValue, name: string): JsonValue {
    if (name === 'decision') return this.#keptDecision(value);
    if (value === null || typeof value === 'number' || typeof value === 'boolean') return value;
    const text = canonicalJson(value);
    if (text.length <= VALUE_CHARACTERS) return value;
    const short = shortened(text);
    if (name !== 'error' || !isJsonObject(value) || typeof value.code !== 'string') return short;
    return { code: value.code.slice(0, BEGINNING_CHARACTERS), short };
  }

  #keptDecision(value: JsonValue): JsonValue {
    const text = canonicalJson(value);
    const shown = text.length <= DECISION_CHARACTERS ? value : shortened(text);
    this.#decidedLeft -= Math.min(text.length, DECISION_CHARACTERS);
    return { digest: hashOf(text), ...(this.#decidedLeft < 0 ? {} : { shown }) };
  }

  /** Where the other one says something else first: a fact that differs, or one that only one of them has. */
  firstDifference(other: DigestedLog): FirstDifference | undefined {
    let first: FirstDifference | undefined;
    const note = (a: number | undefined, b: number | undefined): void => {
      const seq = a ?? b;
      if (seq !== undefined && seq < (first?.seq ?? Infinity))
        first = { seq, ...(a === undefined ? {} : { a }), ...(b === undefined ? {} : { b }) };
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
    return first;
  }
}

/** By sequences; absent: that log does not have it. */
export interface FirstDifference {
  /** As that of a difference of two logs. */
  readonly seq: number;
  readonly a?: number;
  readonly b?: number;
}

/** Of a step, what a model was asked with: of another prompt that is another one before anything comes of it. */
const ASKED_WITH = ['prompts', 'models'];

function without(object: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)));
}

/** As sha256Hex, by the runtime's own code: much is hashed. */
function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function shortened(text: string): string {
  return `${text.slice(0, BEGINNING_CHARACTERS)}… (SHA-256 ${hashOf(text)})`;
}

function digestIn(kept: JsonValue | undefined): JsonValue {
  return isJsonObject(kept) ? (kept.digest ?? null) : null;
}

function shownDecision(kept: JsonValue | undefined): { decision?: JsonValue } {
  if (!isJsonObject(kept)) return { decision: null };
  return kept.shown === undefined ? {} : { decision: kept.shown };
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
