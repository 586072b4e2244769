// Mutants of what endpoints of models send (architecture §11, I121): rows of mutants.ts.
import type { Row } from './mutants.ts';

const CALLS = 'src/adapters/models/call-assembly.ts';
const OF_CALLS = 'test/adapters/call-assembly.test.ts';
const OF_OPENAI = 'test/adapters/models-openai-calls.test.ts';
const OF_ANTHROPIC = 'test/adapters/models-anthropic.test.ts';

export const OF_ENDPOINTS: readonly Row[] = [
  // A known id begins a call.
  [
    121,
    [CALLS, " named: { taken: 'of its id'", " named: { taken: 'a new one'"],
    [OF_OPENAI, 'A1: said again'],
  ],
  [
    121,
    [CALLS, "free: 'of its id' },\n    nameless", "free: 'a new one' },\n    nameless"],
    [OF_OPENAI, 'A2: said again'],
  ],
  // Equal arguments are appended.
  [121, [CALLS, "said === 'equal' ? '' : value", 'value'], [OF_OPENAI, 'A1: said again']],
  // The second whole arguments win, or the first.
  [
    121,
    [
      CALLS,
      'this.#reach(said, ',
      "if (said === 'other') this.#kept = '';\n    this.#reach(said === 'other' ? 'equal' : said, ",
    ],
    [OF_OPENAI, 'A13: one id, two arguments'],
  ],
  [121, [CALLS, 'key === this.#whole', 'true'], [OF_OPENAI, 'A13: one id, two arguments']],
  [
    121,
    [CALLS, "call.state === 'named' && this.#begins(name + name)", 'false'],
    [OF_CALLS, 'a name in pieces, or two'],
  ],
  [
    121,
    [CALLS, '(other) => other.root === root', '() => false'],
    [OF_CALLS, 'the same without an id at one index'],
  ],
  [121, [CALLS, 'if (isMixed || ', 'if (false || '], [OF_CALLS, 'the id given late']],
  [
    121,
    ['src/adapters/models/decision-tool.ts', 'if (malformed !== undefined) return malformed;', ''],
    [OF_OPENAI, 'A12: one id for two tools'],
  ],
  [
    121,
    ['src/adapters/models/anthropic-reading.ts', 'take({ place, id, name,', 'take({ place, name,'],
    [OF_ANTHROPIC, 'A31: said again'],
  ],
];
