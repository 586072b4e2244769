// Mutants of what comes from outside as JSON (architecture §11, I103): rows of mutants.ts.
import type { Row } from './mutants.ts';

const TEXT = 'src/rules/json-text.ts';
const DECISIONS = 'src/adapters/models/decision-tool.ts';
const OF_TEXT = 'test/rules/json-text.test.ts';

export const OF_JSON: readonly Row[] = [
  [103, [TEXT, '!isExact(literal)) mark', 'false) mark'], [OF_TEXT, 'or refused']],
  [103, [TEXT, '[\\d.]{15}|', '[\\d.]{17}|'], [OF_TEXT, 'or refused']],
  [
    103,
    [TEXT, 'digitsOf(literal) === digitsOf(String(value))', 'true'],
    [OF_TEXT, 'as big integers'],
  ],
  [103, [TEXT, 'name === PROTO', "name === ''"], [OF_TEXT, 'is refused, not dropped']],
  [103, [TEXT, 'if (place.names?.has(place.member)) ', 'if (false) '], [OF_TEXT, 'has twice']],
  [103, [TEXT, 'mark(place, TWICE)', ''], [OF_TEXT, 'is marked, too']],
  [103, [TEXT, 'place.member += 1', 'place.member += 2'], [OF_TEXT, 'whatever stands in texts']],
  [103, [TEXT, '.length <= CERTAIN_DIGITS', '.length <= 17'], [OF_TEXT, 'others have read']],
  [
    103,
    [
      'src/facade/body.ts',
      'fatal: true }).decode(bytes)',
      'fatal: true, ignoreBOM: true }).decode(bytes)',
    ],
    ['test/facade/faults.test.ts', 'byte order mark is none'],
  ],
  [
    103,
    [
      DECISIONS,
      '    if (!read.ok) return `${faultText(',
      '    if (!read.ok && false) return `${faultText(',
    ],
    ['test/adapters/decision-tool.test.ts', 'would be another one'],
  ],
  [
    103,
    [
      'src/adapters/models/argument-text.ts',
      'return read.ok || read.isJson ? read : undefined;',
      'return read.ok ? read : undefined;',
    ],
    ['test/adapters/decision-tool.test.ts', 'encoded twice is refused'],
  ],
  [
    103,
    ['src/adapters/models/call-in-pieces.ts', 'this.fault ??= piece.fault;', ';'],
    ['test/adapters/models-openai-unclear.test.ts', 'arguments as an object'],
  ],
  [
    103,
    ['src/adapters/models/call-piece.ts', 'uncertainIn(value)', 'undefined'],
    ['test/adapters/models-anthropic.test.ts', 'a whole input at the start'],
  ],
  [
    103,
    ['src/opensentience/session/call-outcomes.ts', 'if (unkept)', 'if (!unkept && false)'],
    ['test/opensentience/session/call-outcomes.test.ts', 'an output with a number'],
  ],
  [
    103,
    ['src/opensentience/socket/connection.ts', ', ...CONTENT_READING', ''],
    ['test/opensentience/socket/server.test.ts', 'cannot be kept exactly'],
  ],
  [
    103,
    [TEXT, 'if (value === WORD) return NO_NUMBER;', ''],
    ['test/opensentience/socket/results.test.ts', 'fails its call alone'],
  ],
  [
    103,
    ['src/opensentience/socket/frame-content.ts', '!FAILS_ALONE.has(withWords.type)', 'true'],
    ['test/opensentience/socket/results.test.ts', 'fails its call alone'],
  ],
  [
    103,
    ['src/opensentience/frame.ts', ' || this.#cut(value)', ''],
    ['test/opensentience/socket/results.test.ts', 'fails its call alone'],
  ],
  [
    103,
    ['src/words/typed.ts', 'isExact(typed)', 'true'],
    ['test/words/answer.test.ts', 'a double would change'],
  ],
];
