// Mutants of what endpoints of models send (architecture §11, I121): rows of mutants.ts.
import type { Row } from './mutants.ts';

const CALLS = 'src/adapters/models/call-assembly.ts';
const CALL = 'src/adapters/models/call-in-pieces.ts';
const PIECES = 'src/adapters/models/call-piece.ts';
const TEXTS = 'src/adapters/models/argument-text.ts';
const ANTHROPIC = 'src/adapters/models/anthropic-reading.ts';
const OF_CALLS = 'test/adapters/call-assembly.test.ts';
const OF_OPENAI = 'test/adapters/models-openai-calls.test.ts';
const OF_ANTHROPIC = 'test/adapters/models-anthropic.test.ts';

export const OF_ENDPOINTS: readonly Row[] = [
  // A known id begins a call.
  [
    121,
    [CALLS, "known: {\n    'a name': OF_ITS_ID", "known: {\n    'a name': A_NEW_ONE"],
    [OF_OPENAI, 'A1: said again'],
  ],
  [
    121,
    [CALLS, "OF_ITS_ID = { free: 'of its id'", "OF_ITS_ID = { free: 'a new one'"],
    [OF_OPENAI, 'A2: said again'],
  ],
  // Equal arguments are appended.
  [121, [CALL, "argued === 'equal' ? '' : value", 'value'], [OF_OPENAI, 'A1: said again']],
  // The second whole arguments win, or the first.
  [
    121,
    [
      CALL,
      'this.#reach(argued, ',
      "if (argued === 'other') this.#kept = '';\n    this.#reach(argued === 'other' ? 'equal' : argued, ",
    ],
    [OF_OPENAI, 'A13: one id, two arguments'],
  ],
  [121, [CALL, 'key === this.#whole', 'true'], [OF_OPENAI, 'A13: one id, two arguments']],
  [
    121,
    [CALLS, "call.state === 'named' && this.#begins(name + name)", 'false'],
    [OF_CALLS, 'a name in pieces, or two'],
  ],
  [
    121,
    [CALLS, 'alike.some((other) => other.root === root)', 'false'],
    [OF_CALLS, 'the same without an id at one index'],
  ],
  [121, [CALLS, 'if (isMixed || ', 'if (false || '], [OF_CALLS, 'the id given late']],
  [121, [CALLS, 'alike.length > 0 || ', ''], [OF_CALLS, 'of which one has an id']],
  [
    121,
    [CALLS, '|| !areApart(call, other)', '|| true'],
    [OF_CALLS, 'an id at the first index alone'],
  ],
  // White space alone is dropped.
  [
    121,
    [PIECES, "text.trim() === '' ? 'white space'", "text.trim() === '' ? 'nothing'"],
    [OF_OPENAI, 'white space in a string'],
  ],
  [121, [PIECES, "['', 'null', ", "['', "], [OF_OPENAI, 'the id "null"']],
  [121, [PIECES, "typeof value === 'string' && /", 'false && /'], [OF_CALLS, 'an index as text']],
  [
    121,
    [PIECES, '!nestsAbove(value, MODEL_VALUE_LEVELS)', 'true'],
    [OF_CALLS, 'deeper than a stack'],
  ],
  // Arguments of another call are swallowed, or taken.
  [
    121,
    [CALLS, "other !== call && other?.state === 'named'", 'false'],
    [OF_CALLS, 'indexes of the tools|one too low'],
  ],
  [
    121,
    [CALLS, '[this.#lastNamed, ...over].some', '[this.#lastNamed].some'],
    [OF_CALLS, 'the same without an index'],
  ],
  [
    121,
    [CALLS, 'call.isOpen ? over.length > 0 : ', 'call.isOpen ? false : '],
    [OF_CALLS, 'a piece of another call between'],
  ],
  [121, [CALLS, '&& !over.length', ''], [OF_CALLS, 'by chance']],
  [121, [CALLS, 'call === this.#lastNamed && ', ''], [OF_CALLS, 'behind another call']],
  // `{}` beside the name is always the arguments, or may be wherever others follow.
  [121, [CALLS, '      call.forget();', "      call.contradict(() => '');"], [OF_CALLS, 'LiteLLM']],
  [
    121,
    [CALL, "key === NO_ARGUMENTS && name !== ''", 'key === NO_ARGUMENTS'],
    [OF_CALLS, 'by chance'],
  ],
  [
    121,
    [CALL, '(this.#isNamedOn ?? isNamed) !== isNamed', 'false'],
    [OF_CALLS, 'the first piece again'],
  ],
  [
    121,
    [CALLS, 'return earlier.length > 0 && bare.length > 0;', 'return false;'],
    [OF_CALLS, 'after another call without arguments'],
  ],
  [
    121,
    [
      ANTHROPIC,
      'isEmpty ? undefined : input',
      "typeof input === 'string' || isEmpty ? undefined : input",
    ],
    [OF_ANTHROPIC, 'the input as text'],
  ],
  [121, [TEXTS, "WORDS[sign] ?? ''", "''"], [OF_CALLS, 'as text, twice']],
  [
    121,
    ['src/adapters/models/decision-tool.ts', 'if (malformed !== undefined) return malformed;', ''],
    [OF_OPENAI, 'A12: one id for two tools'],
  ],
  [
    121,
    [ANTHROPIC, 'take({ place, id, name,', 'take({ place, name,'],
    [OF_ANTHROPIC, 'A31: said again'],
  ],
];
