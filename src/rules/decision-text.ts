// The final outputs that a model wrote into a text (architecture §5): an object with the member `decision`, or questions
// in its place, alone or among prose, quoted JSON and code fences. Nothing is guessed: two different ones are two, an
// example in a fence too, and whoever asks decides that none of them counts. Pure.
import { canonicalJson, isJsonObject, type JsonValue } from './json.ts';
import { endOfString, readJson } from './json-text.ts';
import { MODEL_VALUE_LEVELS } from './limits.ts';

const [QUOTE, BRACE, BRACE_END] = [0x22, 0x7b, 0x7d];
const FENCED = /^```[A-Za-z]*[ \t]*\n([\s\S]*?)\n?```\s*$/;

export interface SplitText {
  /** The JSON objects that stand in no other braces, as they were written. */
  readonly objects: readonly string[];
  /** What stands outside of all braces. */
  readonly prose: string;
}

/**
 * Looks at each sign once. Braces that are no JSON hide what is in them, which may be a part of what was meant; where the
 * last brace is missing, there is no object at all.
 */
export function splitObjects(text: string): SplitText {
  const braced: string[] = [];
  let prose = '';
  let [open, from, end] = [0, 0, 0];
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === BRACE && open++ === 0) {
      prose += text.slice(end, at);
      from = at;
    } else if (code === BRACE_END && open > 0 && --open === 0) {
      end = at + 1;
      braced.push(text.slice(from, end));
      // Quotes mean something within braces alone: 5" are five inches.
    } else if (code === QUOTE && open > 0) at = endOfString(text, at);
  }
  if (open > 0) return { objects: [], prose };
  return { objects: braced.filter(isObject), prose: prose + text.slice(end) };
}

/** As they were written, each once. A text that is one object encoded as a JSON string is that object. */
export function decisionsIn(text: string): string[] {
  return distinctDecisions(splitObjects(encodedIn(text) ?? text).objects.filter(isDecision));
}

/** Members in another order, or blanks between them, make no other decision. */
export function distinctDecisions(decisions: readonly string[]): string[] {
  const known = new Map<string, string>();
  for (const decision of decisions) {
    const read = readJson(decision, MODEL_VALUE_LEVELS);
    // Of numbers that cannot be kept nobody can say that they are equal.
    const key = read.ok ? canonicalJson(read.value) : `as written: ${decision}`;
    if (!known.has(key)) known.set(key, decision);
  }
  return [...known.values()];
}

function isDecision(text: string): boolean {
  const value = parsed(text);
  if (!isJsonObject(value)) return false;
  return Object.hasOwn(value, 'decision') || value.type === 'clarification.request';
}

function isObject(text: string): boolean {
  return isJsonObject(parsed(text));
}

/** The object that a text says, fenced or not, as a JSON string. */
function encodedIn(text: string): string | undefined {
  const whole = text.trim();
  const value = parsed(FENCED.exec(whole)?.[1] ?? (whole.startsWith('"') ? whole : ''));
  return typeof value === 'string' && isObject(value) ? value : undefined;
}

/** To look at, not to keep. */
function parsed(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}
