// Mutants of what endpoints of models send (architecture §11, I121 to I123): rows of mutants.ts.
import type { Row } from './mutants.ts';

const CALLS = 'src/adapters/models/call-assembly.ts';
const CALL = 'src/adapters/models/call-in-pieces.ts';
const PIECES = 'src/adapters/models/call-piece.ts';
const TEXTS = 'src/adapters/models/argument-text.ts';
const ANTHROPIC = 'src/adapters/models/anthropic-reading.ts';
const READING = 'src/adapters/models/openai-reading.ts';
const OF_ENDPOINT = 'test/adapters/model-endpoint.test.ts';
const OF_ENDS = 'test/adapters/models-openai-ends.test.ts';
const OF_CALLS = 'test/adapters/call-assembly.test.ts';
const OF_OPENAI = 'test/adapters/models-openai-calls.test.ts';
const OF_ANTHROPIC = 'test/adapters/models-anthropic.test.ts';

export const OF_ENDPOINTS: readonly Row[] = [
  // A cut answer is performed.
  [
    121,
    [READING, " && finish !== ''", ''],
    ['test/adapters/models-openai.test.ts', 'an empty finish is none'],
  ],
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
  [
    121,
    [CALLS, 'if (isMixed(call, alike, namesakes))', 'if (false)'],
    [OF_CALLS, 'the id given late'],
  ],
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
    [OF_CALLS, 'though the later one gets arguments'],
  ],
  [
    121,
    [CALLS, '[this.#lastNamed, ...displaced].some', '[this.#lastNamed].some'],
    [OF_CALLS, 'the same without an index'],
  ],
  [
    121,
    [CALLS, 'call.isOpen ? displaced.length > 0 : ', 'call.isOpen ? false : '],
    [OF_CALLS, 'a piece of another call between'],
  ],
  [
    121,
    [CALLS, '&& !displaced.length', ''],
    [OF_CALLS, 'the name again after another call, then arguments'],
  ],
  [121, [CALLS, 'call === this.#lastNamed && ', ''], [OF_CALLS, 'after another call']],
  [
    121,
    [CALLS, 'this.#passed.add(this.#lastNamed);', ';'],
    [OF_CALLS, 'the first call without arguments'],
  ],
  [
    121,
    [CALLS, 'return new Set(keys).size < keys.length;', 'return false;'],
    [OF_CALLS, 'begun again, where'],
  ],
  // A call without an index takes the place of another one.
  [
    121,
    [CALLS, ' || !this.#byPlace.has(place)', ' || true'],
    [OF_CALLS, 'takes the place of no other'],
  ],
  // What is performed as equal is not compared as equal.
  [121, [TEXTS, 'if (read.value === null) return NO_ARGUMENTS;', ''], [OF_CALLS, 'null, then {}']],
  [121, [TEXTS, 'object?.ok ? object.value : ', ''], [OF_CALLS, 'an object encoded twice']],
  // Who begins an answer again is believed.
  [
    121,
    [CALLS, '[call, call.after, ...earlier]', '[call, call.after]'],
    [OF_CALLS, 'a restart without ids, and'],
  ],
  [
    121,
    [CALLS, '(bare.length > 0 || goesOn)', 'bare.length > 0'],
    [OF_CALLS, 'then the name alone'],
  ],
  [
    121,
    [CALLS, "state === 'empty' && isEmptyNone", 'false'],
    [OF_CALLS, 'a restart without ids of calls with'],
  ],
  [
    121,
    [CALLS, 'return haveArguments && one', 'return one'],
    [OF_CALLS, 'the id given late, and another'],
  ],
  // `{}` after whole arguments.
  [121, [CALLS, ' || this.#open.size > 0)', ')'], [OF_CALLS, 'where another call has none']],
  [121, [CALLS, 'return isAlone && ', 'return '], [OF_CALLS, 'at a place of two calls']],
  [
    121,
    [CALLS, 'offered.includes(name)', 'false'],
    [OF_CALLS, 'one of which is a word for nothing'],
  ],
  // A word for nothing is always a name, or never.
  [
    121,
    [CALLS, 'return saysNothing || goesOn ?', 'return goesOn ?'],
    [OF_CALLS, '"None" alone, at'],
  ],
  [
    121,
    [CALLS, 'return saysNothing || goesOn ?', 'return true ?'],
    [OF_CALLS, 'a call of "None" alone'],
  ],
  [
    121,
    [CALLS, 'this.#at(place) : this.#byId.get(id);', 'this.#at(place) : this.#at(place);'],
    [OF_CALLS, 'a call of "None", with an id of its own'],
  ],
  [
    121,
    [CALLS, '(call.hasId || call.isWithin)', 'true'],
    [OF_CALLS, 'a call of "None" after \\{\\}'],
  ],
  [
    121,
    [CALLS, '(call.hasId || call.isWithin)', 'call.hasId'],
    [OF_CALLS, 'and no call has an id'],
  ],
  [
    121,
    [CALL, "this.state === 'arguing' || this.state === 'again'", "this.state === 'arguing'"],
    [OF_CALLS, 'of a call that comes again'],
  ],
  [
    121,
    [CALLS, 'if (owner && this.#isNamesakes(owner, piece))', 'if (false)'],
    [OF_CALLS, 'with the name of two calls'],
  ],
  [121, [PIECES, '.toLowerCase()', ''], [OF_CALLS, 'other spellings of no id']],
  // `{}` beside the name is always the arguments, or may be wherever others follow.
  [121, [CALLS, '      call.forget();', "      call.contradict(() => '');"], [OF_CALLS, 'LiteLLM']],
  [
    121,
    [CALL, "key === NO_ARGUMENTS && name !== ''", 'key === NO_ARGUMENTS'],
    [OF_CALLS, 'that came without the name'],
  ],
  [
    121,
    [CALL, '(this.#isNamedOn ?? isNamed) !== isNamed', 'false'],
    [OF_CALLS, 'the first piece again'],
  ],
  [
    121,
    [CALLS, 'return earlier.length > 0 && (bare.length > 0 || goesOn);', 'return false;'],
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
  // An answer waits for its socket, or ends before it is whole.
  [
    122,
    [
      'src/adapters/models/endpoint/answer.ts',
      "return this.progress === 'whole' ? 'enough' : 'more';",
      "return 'more';",
    ],
    [OF_ENDPOINT, 'though its socket stays open'],
  ],
  [
    122,
    [READING, 'isSaid ? this.#saidOpenly : ', 'isSaid ? true : '],
    [OF_ENDS, 'not by a finish that is said'],
  ],
  [
    122,
    ['src/adapters/models/finish-reasons.ts', "  error: 'broken-off'", "  error: 'whole'"],
    [OF_ENDS, 'a whole call, and the finish'],
  ],
  [
    122,
    [ANTHROPIC, "    }\n    return this.#stopped ? 'whole' : 'more';", "    }\n    return 'more';"],
    [OF_ANTHROPIC, 'an answer is whole at message_stop'],
  ],
  // The words stay behind, or bring the key with them.
  [
    123,
    ['src/adapters/models/endpoint/refusal.ts', ': ${quoted(text)}', ''],
    [OF_ENDPOINT, 'reaches the error, with its names'],
  ],
  [
    123,
    ['src/adapters/models/endpoint/masking.ts', 'spellings.reduce(withoutParts, text)', 'text'],
    [OF_ENDPOINT, 'no part of a key that it repeats'],
  ],
];
