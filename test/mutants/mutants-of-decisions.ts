// Mutants of how the decision is found in a model's answer (architecture §11, I54): rows of mutants.ts.
import type { Row } from './mutants.ts';

const TEXT = 'src/rules/decision-text.ts';
const BRACES = 'src/rules/braces.ts';
const NAMED = 'src/rules/named-braces.ts';
const TOOL = 'src/adapters/models/decision-tool.ts';
const SPLITTER = 'src/adapters/models/output-splitter.ts';
const OF_TEXT = 'test/rules/decision-text.test.ts';
const OF_TOOL = 'test/adapters/decision-tool.test.ts';
const OF_BOTH = 'test/adapters/written-decisions.test.ts';

export const OF_DECISIONS: readonly Row[] = [
  [
    54,
    [TOOL, '    return called.length + own.length > 0', '    return called.length > calls'],
    [OF_TOOL, 'unusable, nothing is called'],
  ],
  [
    54,
    [TOOL, '[...inSaid.alone, ...inText.alone]', '[...inSaid.alone]'],
    [OF_TOOL, 'were opened before, beside a call'],
  ],
  [
    54,
    [TOOL, 'said === text ? inText : decisionsIn(said)', 'inText'],
    [OF_TOOL, 'shown in a list, beside a call'],
  ],
  [54, [TOOL, '|| alone.length > 0 ||', '||'], [OF_TOOL, 'was corrected, and']],
  [54, [TOOL, ' || unclear === CALL_WRITTEN;', ';'], [OF_BOTH, 'a call as text, and the tool']],
  [54, [TOOL, ', inSaid.unread, inText.unread]', ']'], [OF_BOTH, 'no JSON, and']],
  [
    54,
    [TOOL, 'if (isHidden(inSaid, inText)) return NOT_ALONE;', ''],
    [OF_BOTH, 'in braces that end on the next line'],
  ],
  [
    54,
    [TOOL, 'written.every(sameDecisionAs(decision)) ?', 'true ?'],
    [OF_BOTH, 'another in a sentence, and the tool'],
  ],
  [54, [TEXT, 'if (distinct.length > 1 || ', 'if ('], [OF_TEXT, 'an example in a fence']],
  [
    54,
    [TEXT, ' || named.some(isUnread(first)))', ')'],
    [OF_TEXT, 'no JSON (on|in) (the line|a fence) before'],
  ],
  [54, [TEXT, '.split(SENTENCE_END)', ".split('\\n')"], [OF_TEXT, 'corrected after a sentence']],
  [54, [TEXT, '&& others.length < MAX_WORDS', ''], [OF_TEXT, 'explained as prose']],
  [54, [TEXT, 'isContradictedBy(named, first) ||', ''], [OF_TEXT, 'corrected']],
  [54, [TEXT, 'isCorrected(text, first) ||', ''], [OF_TEXT, 'corrected in YAML']],
  [54, [TEXT, 'if (!isClosing(text.slice(last.to)))', 'if (false)'], [OF_TEXT, 'a plan']],
  [54, [TEXT, "isWithin || last.head === 'prose' ?", 'isWithin ?'], [OF_TEXT, 'a denial']],
  [
    54,
    [TEXT, "isWithin || last.head === 'prose' ?", "last.head === 'prose' ?"],
    [OF_TEXT, 'that was cut in it'],
  ],
  [54, [TEXT, ' || isQuoted(text, last)', ''], [OF_TEXT, 'a quotation']],
  [54, [NAMED, 'QUOTED_LINE.test(onLine)', 'false'], [OF_TEXT, 'a sentence of']],
  [54, [TEXT, ' && each.endsLine', ''], [OF_TEXT, 'before another choice']],
  [54, [TEXT, ' && !each.isCut', ''], [OF_TEXT, 'in a list that was cut']],
  [54, [TEXT, '&& !isPart(each)', ''], [OF_TEXT, 'on a line of an object that was cut']],
  [54, [TEXT, '(plain.length > 0 ? plain : outputs)', 'outputs'], [OF_TEXT, 'after a record']],
  [54, [TEXT, 'named.some(isRival)', 'false'], [OF_TEXT, 'either or']],
  [
    54,
    [TEXT, 'if (first === undefined) return false;', 'return false;'],
    [OF_TEXT, 'corrected by an open brace'],
  ],
  [54, [BRACES, 'pairs.pop();', 'break;'], [OF_TEXT, 'in another object']],
  [54, [BRACES, 'if (code === NEWLINE) return undefined;', ''], [OF_TEXT, 'one quote in braces']],
  [54, [NAMED, 'if (thought.take(before, end)) named = [];', ''], [OF_TEXT, 'end of a thought']],
  [54, [NAMED, 'if (thought.isOpen || !', 'if (!'], [OF_TEXT, 'a thought that goes on']],
  [
    54,
    [NAMED, 'else if (!isDraft || !this.isOpen) [', 'else if (true) ['],
    [OF_TEXT, 'in a thought after a draft'],
  ],
  [54, [NAMED, "(this.#kind ?? 'draft')", "'draft'"], [OF_TEXT, 'in a thought with a draft']],
  [54, [NAMED, ' && !DENIES.test(label)', ''], [OF_TEXT, 'a label (that|with|of)']],
  [54, [NAMED, '(?:etc|vs|bzw|', '(?:'], [OF_TEXT, 'abbreviations']],
  [54, [NAMED, ' || CALL_LINE.test(before)', ''], [OF_TEXT, 'a call (of ReAct|as Python)']],
  [
    54,
    [NAMED, 'members.every((member) => MEMBERS_OF_CALL.test(member)) &&', ''],
    [OF_TEXT, 'arguments with other members'],
  ],
  [54, [NAMED, 'WHOLE_CALL.test(before) ||', ''], [OF_TEXT, 'a call in lines']],
  [54, [NAMED, "NAMES_CALL.test(marked.at(-1) ?? '')", 'false'], [OF_TEXT, 'as arguments']],
  [
    54,
    [NAMED, "if (head === 'none' && isCall(value)) calls.isWhole = true;", ''],
    [OF_TEXT, 'a call as JSON'],
  ],
  [
    54,
    [SPLITTER, 'search(BREAK);', "search(BREAK) + 0 * this.#pending.indexOf('\\0');"],
    [OF_TOOL, 'thoughts is split in a fixed number of passes'],
  ],
];
