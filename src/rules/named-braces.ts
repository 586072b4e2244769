// Braces in a model's text by what is around them: what begins and ends their line, lists, thoughts, and calls of tools that
// were written as text. decision-text.ts says what counts of it. Pure; from pair to pair, by the text between them.
import { signAfter, type Braces } from './braces.ts';
import { isJsonObject, parsedJson, type JsonObject } from './json.ts';

/** What braces must have in them to be an output, or a call; only those are parsed. */
const MAY_COUNT =
  /decision|clarification\.request|\\u[\da-f]{4}|"(?:arguments|parameters|function|tool_calls)"/i;
/**
 * Before an output that begins its line: blanks, a fence, signs of a JSON list, and what templates leave there: the
 * language of a lost fence; the answer tags of DeepSeek-R1 and Granite.
 */
const BEGINS_LINE = /^(?:[\s,[]|`{3,}\w*(?![\w`])|json|<(?:final_)?(?:answer|output|response)>)*$/;
/** After it on the line. */
const ENDS_LINE = /^(?:[\s\],}]|`{3,}(?!`)|<(?:!--[^<>]*|[\w:./|｜▁-]+)>)*(?:(?:\/\/|#).*)?$/;
/** Two signs, or other braces, before the dot: "e.g." ends no sentence. */
const SENTENCE_END =
  /(?<=(?:[^\s.]{2}|^)[.!?])(?<!\b(?:etc|vs|bzw|resp|usw|ca|approx|incl)\.)\s|(?<=[。！？])/i;
const LABEL = /^(?:[^,.;?!，。；？！"“>~/#]{0,60}[:：])?[\s*_`]*(?:(?<=```)\w+\s*)?$/;
/** A label with one of them may deny the output, or quote it. */
const DENIES =
  /\b(?:not|never|no|wrong|if|once|unless|would|could|might|example|wrote|says?|said|nicht|kein\w*|wenn|pas|si)\b|n['’]t|不|如果/i;
/** A line of quoted mail, of a comment, of a heading, or struck out. */
const QUOTED_LINE = /^[\s*+-]*(?:>|\/\/|#|~~)/;

/** Of DeepSeek, Qwen, Claude, Gemini, Seed, Magistral, Kimi, Command, Sky-T1 and gpt-oss, with its tokens and without; and drafts. */
const THOUGHT =
  /<\/?(?:(?:seed:)?think|thinking|thought|reasoning|analysis|scratchpad|reflection)>|\[\/?THINK\]|◁\/?think▷|<\|(?:START|END)_THINKING\|>|<\|(?:begin|end)_of_thought\|>|<\|channel\|>(?:analysis\b|final\b[^\n]{0,40}?<\|message\|>)|assistantfinal/gi;
const ENDS_THOUGHT = /^(?:.\/|<\|end_|.*final)/i;
/** Tags that no template opens: a model writes them itself, perhaps after its answer. */
const DRAFT = /reasoning|<\/?analysis|scratchpad|reflection/i;
/** Outside of braces, of the templates of Hermes, Qwen, Claude, MiniMax, gpt-oss, Llama, Kimi, DeepSeek and Gemini. */
const WHOLE_CALL =
  /<\/(?:minimax:|｜DSML｜)?(?:tool_call|function|function_calls|invoke)>|```tool_code|<\|(?:call|python_tag|tool_call_end)\|>|<｜tool▁call▁end｜>/;
const CALL_MARK = /<tool_call>|<function=|\[TOOL_CALLS\]|<\|tool_call\w*\|>|<｜tool▁[^\s｜]*｜>/;
/** Lines of ReAct, and of Llama's calls in Python. */
const CALL_LINE = /(?<![^\n])[ \t*_]*(?:Action Input[*_]*:|\[[a-z_][\w.]*\((?:\)|\w+=))/i;
/** Between the last mark and its arguments: the name of the tool, a list, a fence. */
const NAMES_CALL = /^(?:\S*[\w>|｜\]])?[\s[]*(?:```\w*\s*)?$/;
const MEMBERS_OF_CALL = /^(?:type|id|name|function|tool|tool_calls|arguments|parameters)$/;
const NAMES_TOOL = /^(?:name|function|tool|tool_calls)$/;
const HOLDS_ARGUMENTS = /^(?:function|tool_calls|arguments|parameters)$/;

/** What is before braces on their line. */
export type Head = 'none' | 'label' | 'prose';

/** A pair of braces that may be, or may name, an output. */
export interface Named extends Braces {
  readonly text: string;
  readonly value: JsonObject | undefined;
  readonly head: Head;
  endsLine: boolean;
  /** In a list that nothing closes. */
  isCut: boolean;
}

export interface Walked {
  readonly named: readonly Named[];
  /** Where the last thought ends: all that was said before is part of it. */
  readonly from: number;
  readonly mentionsCall: boolean;
  readonly hasCall: boolean;
}

export function namedBraces(text: string, pairs: readonly Braces[]): Walked {
  const [line, list, thought, calls] = [new Line(), new List(), new Thought(), new Calls()];
  let named: Named[] = [];
  let end = 0;
  for (const pair of [...pairs, undefined]) {
    const before = text.slice(end, pair?.from);
    if (thought.take(before, end)) named = [];
    line.take(before, thought.end - end);
    list.take(before);
    calls.take(before, pair !== undefined);
    if (!pair) break;
    end = pair.to;
    const braces = text.slice(pair.from, end);
    if (thought.isOpen || !MAY_COUNT.test(braces)) continue;
    const read = isObject(text, pair.from) ? parsedJson(braces) : undefined;
    const value = isJsonObject(read) ? read : undefined;
    const { head } = line;
    if (head === 'none' && isCall(value)) calls.isWhole = true;
    const each = { ...pair, text: braces, value, head, endsLine: true, isCut: false };
    named.push(each);
    line.add(each);
    list.add(each);
  }
  list.end();
  return { named, from: thought.from, mentionsCall: calls.isMentioned, hasCall: calls.isWhole };
}

/** The line of the text that was taken last. */
class Line {
  head: Head = 'none';
  #isFirst = true;
  #isQuoted = false;
  #named: Named[] = [];

  /** Text up to the next braces; the last tag of a thought in it ends at `from`. */
  take(before: string, from: number): void {
    const newline = before.indexOf('\n');
    if (!ENDS_LINE.test(newline < 0 ? before : before.slice(0, newline)))
      for (const each of this.#named.splice(0)) each.endsLine = false;
    if (newline >= 0) this.#named = [];
    const begin = Math.max(before.lastIndexOf('\n') + 1, from);
    const isNew = begin > 0 || this.#isFirst;
    this.#isFirst = false;
    const onLine = before.slice(Math.max(begin, 0));
    if (isNew) this.#isQuoted = QUOTED_LINE.test(onLine);
    this.head = this.#isQuoted ? 'prose' : headOf(onLine, isNew ? undefined : this.head);
  }

  add(named: Named): void {
    this.#named.push(named);
  }
}

/** A JSON list of objects. */
class List {
  #named: Named[] | undefined;

  take(before: string): void {
    if (this.#named && !/^\s*,\s*$/.test(before)) {
      if (/^\s*(?:,\s*)?\]/.test(before)) this.#named = undefined;
      this.end();
    }
    if (before.trimEnd().endsWith('[')) this.#named = [];
  }

  add(named: Named): void {
    this.#named?.push(named);
  }

  /** Nothing has closed it. */
  end(): void {
    for (const each of this.#named ?? []) each.isCut = true;
    this.#named = undefined;
  }
}

class Thought {
  #kind: 'thought' | 'draft' | undefined;
  /** After the last tag. */
  end = 0;
  /** After the last one that ends a thought. */
  from = 0;

  get isOpen(): boolean {
    return this.#kind !== undefined;
  }

  /**
   * Whether a thought ends there: all that was said before is part of it, where the model's template opened it. A draft
   * that was opened in the text is itself alone.
   */
  take(before: string, at: number): boolean {
    const { from } = this;
    for (const { 0: tag, index } of before.matchAll(THOUGHT)) {
      const isDraft = DRAFT.test(tag);
      this.end = at + index + tag.length;
      if (!ENDS_THOUGHT.test(tag)) this.#kind = isDraft ? (this.#kind ?? 'draft') : 'thought';
      else if (!isDraft || !this.isOpen) [this.#kind, this.from] = [undefined, this.end];
      else if (this.#kind === 'draft') this.#kind = undefined;
    }
    return this.from > from;
  }
}

class Calls {
  isMentioned = false;
  isWhole = false;

  take(before: string, isBeforeBraces: boolean): void {
    const marked = before.split(CALL_MARK);
    if (marked.length > 1) this.isMentioned = true;
    const hasArguments = isBeforeBraces && marked.length > 1;
    const isWhole = WHOLE_CALL.test(before) || CALL_LINE.test(before);
    if (isWhole || (hasArguments && NAMES_CALL.test(marked.at(-1) ?? ''))) this.isWhole = true;
  }
}

/** By the text before it on its line, or after other braces there, which had this one. */
function headOf(before: string, previous: Head | undefined): Head {
  if ((previous ?? 'none') === 'none' && BEGINS_LINE.test(before)) return 'none';
  const sentences = before.split(SENTENCE_END);
  const isWhole = previous === undefined || sentences.length > 1;
  const label = sentences.at(-1) ?? '';
  return isWhole && LABEL.test(label) && !DENIES.test(label) ? 'label' : 'prose';
}

/** Members of calls alone, of which one names the tool, and one holds what it is called with. */
function isCall(value: JsonObject | undefined): boolean {
  const members = Object.keys(value ?? {});
  return (
    members.every((member) => MEMBERS_OF_CALL.test(member)) &&
    members.some((member) => NAMES_TOOL.test(member)) &&
    members.some((member) => HOLDS_ARGUMENTS.test(member))
  );
}

/** By the first sign in the braces: all others cannot be JSON, or have no members. */
export function isObject(text: string, from: number): boolean {
  return /^["}]/.test(signAfter(text, from));
}
