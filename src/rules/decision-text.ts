// The final outputs in a model's text (architecture §5). A decision may approve a payment: where two readings are
// possible the answer is unclear, nothing of it counts, and the model is told why. Pure; a fixed number of passes.
//
// An output is a JSON object with the member `decision`, or questions (`clarification.request`). It is plain where it has
// no other members than an output may have, else a record: models quote those, and add members to their own.
// | In the text                                                      | It is       | Because                       |
// |------------------------------------------------------------------|-------------|-------------------------------|
// | a plain output that begins its line, fenced or not, with nothing | a decision  | so it is asked for            |
// |   after it on the line but braces, tags, a comment               |             |                               |
// | where none does: the last plain one, if on its line before it is | a decision  | models write so; other words  |
// |   nothing, a whole sentence, or a short label ("So:") without    |             |   may deny it, or quote it    |
// |   words that deny or quote; after it in the text nothing but     |             |                               |
// |   closing marks, of no quotation and no aside                    |             |                               |
// | any other plain output, where none begins its line, so on a line | unclear     | a plan, an example, a quote   |
// |   of quoted mail, of a comment, of a heading, or struck out      |             |                               |
// | a record that begins its line, where no output is plain          | a decision  | so it may be meant            |
// | two that begin their lines and differ in any member; before one  | unclear     | nobody knows which is meant   |
// |   that does, braces that do, name an output and are no JSON;     |             |                               |
// |   before one in a sentence, another decision, or such braces     |             |                               |
// | after one that begins its line: braces that name another or      | unclear     | they may correct it; words in |
// |   cannot be read, a line or sentence "decision: …" of at most    |             |   plain prose correct nothing |
// |   three words that are others, or an open brace that begins an   |             |                               |
// |   object or ends the text                                        |             |                               |
// | a plain output in an object or list that nothing closes; where   | unclear     | it was cut off, or may be     |
// |   none begins its line, one after any brace that nothing closes  |             |                               |
// | a call of a tool, as models write one that their endpoint did    | unclear     | it was meant, and was not     |
// |   not know                                                       |             |   performed                   |
// | what is in a thought or a draft, or before the end of a thought; | passed over | it is no answer, or a part of |
// |   in other braces, or in a string; before one that begins its    |             |   something else, or a plan   |
// |   line, what does not                                            |             |                               |
// A last line that is one JSON string of an object is that object: some models encode twice.
import { bracesIn, signAfter, signsBefore, type Braces } from './braces.ts';
import { isObject, namedBraces, type Named } from './named-braces.ts';
import {
  canonicalJson,
  isJsonObject,
  parsedJson,
  type JsonObject,
  type JsonValue,
} from './json.ts';
import { readJson } from './json-text.ts';
import { MODEL_VALUE_LEVELS } from './limits.ts';

export const CLARIFICATION_ENVELOPE = 'clarification.request';

export interface WrittenDecisions {
  /** Plain, on lines of their own, as they were written, each once. */
  readonly alone: readonly string[];
  /** Where none is alone, the plain one at the end of the text. It is unclear too where a sentence is before it. */
  readonly closing?: string;
  /** On a line of its own, where no output is plain. */
  readonly record?: string;
  /** Braces that begin their line, or are open, name an output, and cannot be read. */
  readonly unread?: string;
  /** Why none of them counts: a sentence for the model. */
  readonly unclear?: string;
}

export const TWO_OUTPUTS = 'There were two final outputs at once.';
export const NOT_ALONE =
  'A final output within a sentence or within other braces does not count: give it alone, on a line of its own.';
export const CALL_WRITTEN = 'A call of a tool was written as text.';
const CONTRADICTED =
  'After the final output came something that names another one or cannot be read: give one, as JSON, with none after it.';

/** Braces that name the member of an output, in JSON or in what was meant to be. */
const NAMES_OUTPUT = /["'`“”]decision\b|decision["'`”»]?\s*[:=]|clarification\.request/i;
const SENTENCE_END = /\n|(?<=[.!?])\s|(?<=[。！？])/;
/** A line or a sentence that names one without braces, as YAML and XML do, perhaps after a label: signs, and what follows. */
const NAMES_WITHOUT_BRACES =
  /^(?:[^:：]{0,60}[:：])?[^\p{L}\p{N}]*(?:\d+\)[^\p{L}\p{N}]*)?(?:(?:final|new|corrected|revised|updated|my|the)[^\p{L}\p{N}]*)*decision([^\p{L}\p{N}]*)(.*)/isu;
/** Where the value on such a line ends. */
const VALUE_END = /[,;<(|，；（]/;
/** A value of more is prose. */
const MAX_WORDS = 3;
/** "Approved" is "approve", too. Shorter words begin too many others. */
const MIN_STEM = 4;
const MAX_STEM = 40;
const MEMBERS_OF_OUTPUT = new Set(['decision', 'confidence', 'reasoning']);
const MEMBERS_OF_QUESTIONS = new Set(['type', 'payload']);

const CLOSING_TAG = /<(?:\/[\w-]+|\|\w+\|)>|^-{3,}$/gm;
const BEYOND_CLOSING = /[^\s.!"'`*_)\]»”’“‘」』。！】]/;
/** Of a quotation, or of an aside. */
const QUOTE_END = /["'»”’“‘」』)\]】]|(?<!`)`(?!`)/;

export function decisionsIn(given: string): WrittenDecisions {
  const text = decoded(given);
  const { pairs, open } = bracesIn(text);
  const { named, from, mentionsCall, hasCall } = namedBraces(text, pairs);
  const opened = open.filter((at) => at >= from);
  const unread = unreadIn(text, opened, named);
  const found = {
    ...decisionsOf(text, opened, named),
    ...(unread === undefined ? {} : { unread }),
  };
  const isCall = hasCall || (mentionsCall && decisionOf(found) === undefined);
  return isCall ? { ...found, unclear: CALL_WRITTEN } : found;
}

/** The one that counts, where nothing is unclear. */
export function decisionOf({ alone, closing, record }: WrittenDecisions): string | undefined {
  return alone[0] ?? closing ?? record;
}

function decisionsOf(
  text: string,
  open: readonly number[],
  named: readonly Named[],
): WrittenDecisions {
  const cut = open.find((at) => beginsObject(text, at));
  const isPart = ({ from }: Braces): boolean => (cut ?? from) < from && goesOnAt(text, from);
  const outputs = named.filter(({ value }) => isOutput(value));
  const plain = outputs.filter(isPlain);
  const own = (plain.length > 0 ? plain : outputs).filter(
    (each) => each.head === 'none' && each.endsLine && !each.isCut && !isPart(each),
  );
  const distinct = distinctDecisions(own.map((each) => each.text));
  const [first] = own;
  if (first) {
    const found = plain.length > 0 ? { alone: distinct } : { alone: [], record: first.text };
    if (distinct.length > 1 || named.some(isUnread(first)))
      return { ...found, unclear: TWO_OUTPUTS };
    const isContradicted =
      isContradictedBy(named, first) ||
      isCorrected(text, first) ||
      mayGoOn(
        text,
        open.filter((at) => at > first.from),
      );
    return isContradicted ? { ...found, unclear: CONTRADICTED } : found;
  }
  const last = plain.at(-1);
  if (!last) return { alone: [] };
  if (!isClosing(text.slice(last.to))) return { alone: [], unclear: NOT_ALONE };
  const found = { alone: [], closing: last.text };
  const isSame = sameDecisionAs(last.text);
  const isRival = (each: Named): boolean =>
    isPlain(each) ? !isSame(each.text) : !each.value && NAMES_OUTPUT.test(each.text);
  if (named.some(isRival)) return { ...found, unclear: TWO_OUTPUTS };
  const isWithin = last.isCut || (open[0] ?? last.from) < last.from || isQuoted(text, last);
  return isWithin || last.head === 'prose' ? { ...found, unclear: NOT_ALONE } : found;
}

/** On a line of its own before the first that can be read. */
function isUnread(first: Named): (each: Named) => boolean {
  return ({ from, head, endsLine, value, text }) =>
    from < first.from && head === 'none' && endsLine && !value && NAMES_OUTPUT.test(text);
}

/** Whether later braces name another output, or may. */
function isContradictedBy(named: readonly Named[], first: Named): boolean {
  const isSame = sameDecisionAs(first.text);
  return named.some(
    ({ from, text, value }) =>
      from > first.from && (isOutput(value) ? !isSame(text) : NAMES_OUTPUT.test(text)),
  );
}

/** Whether a later line or sentence without braces gives the decision another value than it has. */
function isCorrected(text: string, { to, value }: Named): boolean {
  const decided = JSON.stringify(value?.decision ?? null).toLowerCase();
  const known = new Set([...wordsOf(decided), ...(decided.match(/[\p{L}\p{N}]+/gu) ?? [])]);
  return text
    .slice(to)
    .split(SENTENCE_END)
    .some((sentence) => {
      const [, signs = '', rest = ''] = NAMES_WITHOUT_BRACES.exec(sentence) ?? [];
      const [word, ...others] = wordsOf(rest.split(VALUE_END, 1)[0] ?? '');
      const isValue = /[:=>：→]/.test(signs) && others.length < MAX_WORDS;
      return word !== undefined && isValue && !isAmong(known, word);
    });
}

function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}](?:[\p{L}\p{N}_-]*[\p{L}\p{N}])?/gu) ?? [];
}

/** Whether the word, or what it begins with, is one of them. */
function isAmong(known: ReadonlySet<string>, word: string): boolean {
  if (known.has(word)) return true;
  for (let length = MIN_STEM; length < Math.min(word.length, MAX_STEM); length++)
    if (known.has(word.slice(0, length)) && /^\p{L}*$/u.test(word.slice(length))) return true;
  return false;
}

/** Whether what later open braces begin may be another output. The sad smiley `:-{` begins nothing. */
function mayGoOn(text: string, open: readonly number[]): boolean {
  const [first] = open;
  if (first === undefined) return false;
  const rest = text.slice(first);
  return (
    NAMES_OUTPUT.test(rest) ||
    open.some((at) => beginsObject(text, at)) ||
    (rest.trimEnd().endsWith('{') && !text.trimEnd().endsWith('-{'))
  );
}

/** What was meant as an output, and is no JSON or was cut off. */
function unreadIn(
  text: string,
  open: readonly number[],
  named: readonly Named[],
): string | undefined {
  const cut = open.find((at) => beginsObject(text, at));
  const rest = cut === undefined ? '' : text.slice(cut);
  const begun = named.filter(({ head, value }) => head === 'none' && !value);
  return [...begun.map((each) => each.text), rest].find((braces) => NAMES_OUTPUT.test(braces));
}

/** Members in another order, or blanks between them, make no other decision. */
export function distinctDecisions(decisions: readonly string[]): string[] {
  const written = [...new Set(decisions)];
  if (written.length < 2) return written;
  const known = new Map<string, string>();
  for (const decision of written) {
    const key = keyOf(decision, (value) => value);
    if (!known.has(key)) known.set(key, decision);
  }
  return [...known.values()];
}

/** Whether another output decides the same, whatever the two say of confidence and reasons. */
export function sameDecisionAs(decision: string): (other: string) => boolean {
  const decided = (value: JsonValue): JsonValue =>
    isJsonObject(value) && value.decision !== undefined ? { decision: value.decision } : value;
  let key: string | undefined;
  return (other) =>
    other === decision || keyOf(other, decided) === (key ??= keyOf(decision, decided));
}

/** Of numbers that cannot be kept nobody can say that they are equal. */
function keyOf(decision: string, part: (value: JsonValue) => JsonValue): string {
  const read = readJson(decision, MODEL_VALUE_LEVELS);
  return read.ok ? canonicalJson(part(read.value)) : `as written: ${decision}`;
}

/** The one JSON object of a text that has no other braces like those of an object: what is wrong with it can be said. */
export function onlyObjectIn(given: string): string | undefined {
  const text = decoded(given);
  const [only, ...others] = bracesIn(text).pairs.filter(({ from }) => isObject(text, from));
  const object = only && others.length === 0 ? text.slice(only.from, only.to) : undefined;
  return object !== undefined && isJsonObject(parsedJson(object)) ? object : undefined;
}

/** Whether the sign before makes the braces a part of an object, or of a list in it, that was not closed. */
function goesOnAt(text: string, from: number): boolean {
  return /[[,]$|["'”»]:$/.test(signsBefore(text, from));
}

function isOutput(value: JsonObject | undefined): boolean {
  if (!value) return false;
  return Object.hasOwn(value, 'decision') || value.type === CLARIFICATION_ENVELOPE;
}

function isPlain({ value }: Named): boolean {
  if (!value || !isOutput(value)) return false;
  const members = Object.hasOwn(value, 'decision') ? MEMBERS_OF_OUTPUT : MEMBERS_OF_QUESTIONS;
  return Object.keys(value).every((member) => members.has(member));
}

/** Whether a quotation or an aside ends after it that did not begin right before it: it is the end of that. */
function isQuoted(text: string, { from, to }: Braces): boolean {
  const [sign] = QUOTE_END.exec(text.slice(to)) ?? [];
  return sign !== undefined && !signsBefore(text, from).endsWith(sign);
}

function isClosing(rest: string): boolean {
  return !BEYOND_CLOSING.test(rest.replace(CLOSING_TAG, ''));
}

/** Whether an open brace begins an object, or what was meant as one. */
function beginsObject(text: string, at: number): boolean {
  return /^["'“«]/.test(signAfter(text, at));
}

/** The text with its last line decoded, fenced or not, where that is a JSON string of an object. */
function decoded(given: string): string {
  const text = given.replace(/\r\n?/g, '\n');
  const whole = text.trimEnd().replace(/```$/, '').trimEnd();
  const from = whole.lastIndexOf('\n') + 1;
  const line = whole.slice(from).trim();
  const value = line.startsWith('"') ? parsedJson(line) : undefined;
  return typeof value === 'string' && isJsonObject(parsedJson(value))
    ? text.slice(0, from) + value
    : text;
}
