// The final outputs in a model's text (architecture §5). A decision may approve a payment: where two readings are
// possible the answer is unclear, nothing of it counts, and the model is told why. Pure; looks at each sign once.
//
// An output is a JSON object with the member `decision`, or questions (`clarification.request`).
// | In the text                                            | It is        | Because                                  |
// |--------------------------------------------------------|--------------|------------------------------------------|
// | an output on a line of its own, fenced or not          | a decision   | so it is asked for                       |
// | two of them that differ, an example in a fence too     | unclear      | nobody knows which one is meant          |
// | after it: braces, JSON or not, that name another one   | unclear      | they may correct it                      |
// | an output at the end of a sentence that ends the text, | a decision   | models say "So: {…}."                    |
// |   with no other members, none on a line of its own     |              |                                          |
// | the same, and another one before it                    | unclear      | "either {…} or {…}"                      |
// | the same elsewhere in a sentence, or in open braces    | unclear      | it is a plan, an example, or cut off     |
// | before a line of its own: one in a sentence, braces    | passed over  | a plan, a record, a form that is quoted  |
// |   that are no JSON, a brace that nothing closes        |              |   LaTeX, emoticons, text that was cut    |
// | an object within another one, or within a string       | passed over  | it is a part of something else           |
// | a call of a tool with its arguments, as models write   | unclear      | it was not performed, and was meant      |
// |   one that their endpoint did not know                 |              |                                          |
// A last line that is one JSON string of an object is that object: some models encode twice.
import { canonicalJson, isJsonObject, type JsonObject, type JsonValue } from './json.ts';
import { readJson } from './json-text.ts';
import { MODEL_VALUE_LEVELS } from './limits.ts';

export interface WrittenDecisions {
  /** On lines of their own, as they were written, each once. */
  readonly alone: readonly string[];
  /** At the end of the last sentence, where none is alone. */
  readonly closing?: string;
  /** Why none of them counts: a sentence for the model. */
  readonly unclear?: string;
}

export const TWO_OUTPUTS = 'There were two final outputs at once.';
export const NOT_ALONE =
  'A final output within a sentence or within other braces does not count: give it alone, on a line of its own.';
const CONTRADICTED =
  'After the final output came braces that name another one or cannot be read: give one, as JSON, with none after it.';
const CALL_WRITTEN = 'A call of a tool was written as text.';

const [NEWLINE, QUOTE, BACKSLASH, BRACE, BRACE_END] = [0x0a, 0x22, 0x5c, 0x7b, 0x7d];

/** What an output must have in it to be one; only that is parsed. */
const MAY_BE_OUTPUT = /decision|clarification\.request|\\u[\da-f]{4}/i;
/** Braces that name the member of an output, in JSON or in what was meant to be. */
const NAMES_OUTPUT = /["'`“”]decision\b|\bdecision["'`”]?\s*[:=]|clarification\.request/i;
/** Before an output on its line: blanks, a fence, the signs of a list. */
const FENCE = /```\w*/g;
const BESIDE_ALONE = /[^\s,[]/;
/** After an output in a sentence: what closes the sentence. */
const CLOSING_TAG = /<\/[\w-]+>/g;
const BEYOND_CLOSING = /[^\s.!"'`*_~)\]»”’。！]/;
/** Members of an output in a sentence: anything with others is a record of something else. */
const MEMBERS_OF_OUTPUT = new Set(['decision', 'confidence', 'reasoning']);
const MEMBERS_OF_QUESTIONS = new Set(['type', 'payload']);

/** As models write a call that their endpoint did not know as one. */
const CALL_MARK =
  '<tool_call>|<function=|\\[TOOL_CALLS\\]|<\\|(?:tool_call|python_tag)|<｜tool▁call';
const MENTIONS_CALL = new RegExp(CALL_MARK);
/** Right before its arguments, with the name of the tool between. */
const BEGINS_CALL = new RegExp(`(?:${CALL_MARK})(?:\\S*[\\w>|｜\\]])?$`);
/** Most signs before braces in which the mark of a call is looked for. */
const CALL_CHARS = 256;

/** Braces that no other pair encloses. */
interface Braces {
  readonly from: number;
  readonly to: number;
}

interface Braced {
  readonly pairs: readonly Braces[];
  /** Places of the braces that nothing closes. They hide nothing. */
  readonly open: readonly number[];
}

/** A pair that may be, or may name, an output. */
interface Named extends Braces {
  readonly text: string;
  readonly value: JsonObject | undefined;
  /** No prose is before it on its line. */
  readonly isAlone: boolean;
}

export function decisionsIn(given: string): WrittenDecisions {
  const text = decoded(given);
  const braced = bracesIn(text);
  const { named, mentionsCall, hasCall } = walk(text, braced.pairs);
  const written = decisionsOf(text, braced.open, named);
  const hasDecision = written.alone.length > 0 || written.closing !== undefined;
  if (hasCall || (mentionsCall && !hasDecision)) return { ...written, unclear: CALL_WRITTEN };
  return written;
}

function decisionsOf(
  text: string,
  open: readonly number[],
  named: readonly Named[],
): WrittenDecisions {
  const within = ({ from }: Braces): boolean => (open[0] ?? from) < from;
  const cut = open.find((at) => opensObject(text, at));
  const isPart = ({ from }: Braces): boolean => (cut ?? from) < from && goesOnAt(text, from);
  const outputs = named.filter(({ value }) => isOutput(value));
  const own = outputs.filter((each) => each.isAlone && !isPart(each));
  const alone = distinctDecisions(own.map((each) => each.text));
  const [first] = own;
  if (first) {
    if (alone.length > 1) return { alone, unclear: TWO_OUTPUTS };
    return isContradicted(text, open, { first, named })
      ? { alone, unclear: CONTRADICTED }
      : { alone };
  }
  const last = outputs.filter(hasItsMembersAlone).at(-1);
  if (!last) return { alone };
  if (within(last) || !isClosing(text.slice(last.to))) return { alone, unclear: NOT_ALONE };
  const isSame = sameDecisionAs(last.text);
  const isRival = (each: Named): boolean =>
    hasItsMembersAlone(each) ? !isSame(each.text) : each.isAlone && NAMES_OUTPUT.test(each.text);
  const isUnclear = named.some(isRival);
  return { alone, closing: last.text, ...(isUnclear ? { unclear: TWO_OUTPUTS } : {}) };
}

/** Whether what comes after the first output on a line of its own may be meant in its place. */
function isContradicted(
  text: string,
  open: readonly number[],
  { first, named }: { readonly first: Named; readonly named: readonly Named[] },
): boolean {
  const opened = open.find((at) => at > first.from);
  if (opened !== undefined && NAMES_OUTPUT.test(text.slice(opened))) return true;
  const isSame = sameDecisionAs(first.text);
  return named.some(
    ({ from, text: braces, value }) =>
      from > first.from && (isOutput(value) ? !isSame(braces) : NAMES_OUTPUT.test(braces)),
  );
}

/** Members in another order, or blanks between them, make no other decision. */
export function distinctDecisions(decisions: readonly string[]): string[] {
  const known = new Map<string, string>();
  for (const decision of new Set(decisions)) {
    const key = keyOf(decision, (value) => value);
    if (!known.has(key)) known.set(key, decision);
  }
  return [...known.values()];
}

/** Whether another output decides the same, whatever the two say of confidence and reasons. */
export function sameDecisionAs(decision: string): (other: string) => boolean {
  const decided = (value: JsonValue): JsonValue =>
    isJsonObject(value) && value.decision !== undefined ? { decision: value.decision } : value;
  const key = keyOf(decision, decided);
  return (other) => other === decision || keyOf(other, decided) === key;
}

/** Of numbers that cannot be kept nobody can say that they are equal. */
function keyOf(decision: string, part: (value: JsonValue) => JsonValue): string {
  const read = readJson(decision, MODEL_VALUE_LEVELS);
  return read.ok ? canonicalJson(part(read.value)) : `as written: ${decision}`;
}

/** The one JSON object of a text that has no other braces like those of an object: what is wrong with it can be said. */
export function onlyObjectIn(given: string): string | undefined {
  const text = decoded(given);
  const [only, ...others] = bracesIn(text).pairs.filter(({ from }) => opensObject(text, from));
  const object = only && others.length === 0 ? text.slice(only.from, only.to) : undefined;
  return object !== undefined && isJsonObject(parsed(object)) ? object : undefined;
}

/**
 * A quote begins a string within braces alone (5" are five inches), and where the string ends on its line: JSON has no
 * others. So one sign too many spoils its own line at most.
 */
function bracesIn(text: string): Braced {
  const pairs: Braces[] = [];
  const open: number[] = [];
  for (let at = 0; at < text.length; at++)
    switch (text.charCodeAt(at)) {
      case BRACE:
        open.push(at);
        break;
      case BRACE_END: {
        const from = open.pop();
        if (from === undefined) break;
        while ((pairs.at(-1)?.from ?? -1) > from) pairs.pop();
        pairs.push({ from, to: at + 1 });
        break;
      }
      case QUOTE:
        if (open.length > 0) at = endOfString(text, at) ?? at;
        break;
      case BACKSLASH:
        // Not a brace: `\{` may be how somebody writes one.
        if (isQuoteOrBackslash(text.charCodeAt(at + 1))) at++;
    }
  return { pairs, open };
}

/** Undefined where its line ends before. */
function endOfString(text: string, from: number): number | undefined {
  for (let at = from + 1; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return at;
    if (code === NEWLINE) return undefined;
    if (code === BACKSLASH && isQuoteOrBackslash(text.charCodeAt(at + 1))) at++;
  }
  return undefined;
}

function isQuoteOrBackslash(code: number): boolean {
  return code === QUOTE || code === BACKSLASH;
}

function walk(
  text: string,
  pairs: readonly Braces[],
): { named: Named[]; mentionsCall: boolean; hasCall: boolean } {
  const named: Named[] = [];
  let [isAlone, mentionsCall, hasCall] = [true, false, false];
  let end = 0;
  for (const { from, to } of pairs) {
    const before = text.slice(end, from);
    const line = before.lastIndexOf('\n') + 1;
    isAlone = (isAlone || line > 0) && !BESIDE_ALONE.test(before.slice(line).replace(FENCE, ''));
    if (MENTIONS_CALL.test(before)) {
      mentionsCall = true;
      hasCall ||= beginsCall(before);
    }
    end = to;
    const braces = text.slice(from, to);
    if (!MAY_BE_OUTPUT.test(braces)) continue;
    const value = opensObject(text, from) ? parsed(braces) : undefined;
    named.push({ from, to, text: braces, value: isJsonObject(value) ? value : undefined, isAlone });
  }
  mentionsCall ||= MENTIONS_CALL.test(text.slice(end));
  return { named, mentionsCall, hasCall };
}

/** Whether what follows this prose are the arguments of a call, in a list or in a fence. */
function beginsCall(before: string): boolean {
  const near = before.slice(-CALL_CHARS).trimEnd().replace(/\[$/, '').trimEnd();
  return BEGINS_CALL.test(near.replace(/```\w*$/, '').trimEnd());
}

/** Whether the sign before makes the braces a part of an object, or of a list in it, that was not closed. */
function goesOnAt(text: string, from: number): boolean {
  let at = from - 1;
  while (at >= 0 && /\s/.test(text.charAt(at))) at--;
  const sign = text.charAt(at);
  return sign === '[' || sign === ',' || (sign === ':' && /["']/.test(text.charAt(at - 1)));
}

function isOutput(value: JsonObject | undefined): boolean {
  if (!value) return false;
  return Object.hasOwn(value, 'decision') || value.type === 'clarification.request';
}

function hasItsMembersAlone({ value }: Named): boolean {
  if (!value || !isOutput(value)) return false;
  const members = Object.hasOwn(value, 'decision') ? MEMBERS_OF_OUTPUT : MEMBERS_OF_QUESTIONS;
  return Object.keys(value).every((member) => members.has(member));
}

function isClosing(rest: string): boolean {
  return !BEYOND_CLOSING.test(rest.replace(CLOSING_TAG, ''));
}

/** The first sign in the braces: all others cannot be JSON, or have no members. */
function opensObject(text: string, from: number): boolean {
  let at = from + 1;
  while (/\s/.test(text.charAt(at))) at++;
  return text.charAt(at) === '"' || text.charAt(at) === '}';
}

/** The text with its last line decoded, fenced or not, where that is a JSON string of an object. */
function decoded(text: string): string {
  const whole = text.trimEnd().replace(/```$/, '').trimEnd();
  const from = whole.lastIndexOf('\n') + 1;
  const line = whole.slice(from).trim();
  const value = line.startsWith('"') ? parsed(line) : undefined;
  return typeof value === 'string' && isJsonObject(parsed(value))
    ? text.slice(0, from) + value
    : text;
}

/** To look at, not to keep. */
function parsed(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}
