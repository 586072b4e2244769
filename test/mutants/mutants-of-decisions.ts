// Mutants of how the decision is found in a model's answer (architecture §11, I54): rows of mutants.ts.
import type { Row } from './mutants.ts';

const TEXT = 'src/rules/decision-text.ts';
const TOOL = 'src/adapters/models/decision-tool.ts';
const OF_TEXT = 'test/rules/decision-text.test.ts';
const OF_TOOL = 'test/adapters/decision-tool.test.ts';
const OF_BOTH = 'test/adapters/written-decisions.test.ts';

export const OF_DECISIONS: readonly Row[] = [
  [
    54,
    [
      TOOL,
      'if (calls > called.length && called.length + alone.length > 0)',
      'if (called.length + alone.length > calls)',
    ],
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
  [54, [TOOL, '(calls === 0 || alone.length > 0)', 'calls === 0'], [OF_TOOL, 'was corrected, and']],
  [
    54,
    [TOOL, 'calls === 0 && isHidden(inSaid, inText)', 'false'],
    [OF_TOOL, 'opened before its line it does not count'],
  ],
  [54, [TOOL, '!written.every(isSame)', 'false'], [OF_BOTH, 'another in a sentence, and the tool']],
  [54, [TEXT, 'if (alone.length > 1) ', 'if (false) '], [OF_TEXT, 'an example in a fence']],
  [54, [TEXT, 'return isContradicted(', 'return !isContradicted('], [OF_TEXT, 'corrected']],
  [54, [TEXT, ' || !isClosing(text.slice(last.to))', ''], [OF_TEXT, 'a plan']],
  [54, [TEXT, 'if (within(last) || ', 'if ('], [OF_TEXT, 'in an object that was cut']],
  [54, [TEXT, '&& !isPart(each)', ''], [OF_TEXT, 'a list that was cut']],
  [54, [TEXT, 'named.some(isRival)', 'false'], [OF_TEXT, 'either or']],
  [54, [TEXT, 'if (opened !== undefined && ', 'if (false && '], [OF_TEXT, 'and cut off']],
  [54, [TEXT, 'pairs.pop();', 'break;'], [OF_TEXT, 'in another object']],
  [54, [TEXT, 'if (code === NEWLINE) return undefined;', ''], [OF_TEXT, 'one quote in braces']],
  [54, [TEXT, 'hasCall ||= beginsCall(before);', ''], [OF_TEXT, 'as arguments']],
  [
    54,
    ['src/adapters/models/output-splitter.ts', "this.#prose = '';", ''],
    [OF_TOOL, 'behind a thought that the template opened'],
  ],
];
