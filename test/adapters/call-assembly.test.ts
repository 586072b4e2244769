// Calls out of the pieces in which endpoints send them: what is performed does not depend on the framing (architecture
// §11, I121). Rows are pieces as they come, and the calls that they are, or a part of the sentence for the model.
import { describe, expect, test } from 'vitest';
import { CallAssembly } from '../../src/adapters/models/call-assembly.ts';
import type { CallPiece } from '../../src/adapters/models/call-piece.ts';
import { readJson } from '../../src/rules/json-text.ts';
import { A1, at, bare, SAME_CALLS } from '../support/call-rows.ts';
import { framedAnswer } from '../support/framed-calls.ts';

const OFFERED = ['get', 'put', 'get_order', 'go', 'gogo', 'go_none'];

function assembled(pieces: readonly CallPiece[]) {
  const assembly = new CallAssembly(OFFERED);
  for (const piece of pieces) assembly.take(piece);
  return assembly.end();
}

/** Each call as its name and arguments. */
function callsOf(pieces: readonly CallPiece[]): string[] {
  const { calls, malformed } = assembled(pieces);
  expect(malformed).toBeUndefined();
  return calls.map(({ name, arguments: sent }) => `${name} ${sent}`);
}

const TWICE = 'came with two different arguments';
const MISSED = 'it is not clear whose they are';
const LONG = 'n'.repeat(70_000);
const NAMES = 'One call came with two names';
const UNCLEAR = 'it is not clear whether two were meant';

describe('[I121] the same answer, however it is framed, is the same calls', () => {
  test.each(SAME_CALLS)('%s', (_name, pieces, expected) => {
    expect(callsOf(pieces)).toEqual(expected);
  });
});

describe('[I121] or none, where it can be read in two ways', () => {
  test.each<[string, CallPiece[], string]>([
    [
      'A12: one index and id, two tools',
      [at(0, 'a', 'get', A1), at(0, 'a', 'put', A1)],
      `${NAMES}, get and put.`,
    ],
    ['A12: in pieces', [at(0, 'a', 'get', ''), at(0, 'a', 'put', ''), at(0, '', '', A1)], NAMES],
    ['A12: the id at another index', [at(0, 'a', 'get', A1), at(1, 'a', 'put', A1)], NAMES],
    [
      'A13: one id, two arguments',
      [at(0, 'a', 'get', A1), at(0, 'a', 'get', '{"a":2}')],
      `The call of get ${TWICE}.`,
    ],
    [
      'A13: in pieces',
      [at(0, 'a', 'get', A1), at(1, 'a', '', '{"a"'), at(1, '', '', ':2}')],
      TWICE,
    ],
    [
      'A13: a number that a double would change',
      [at(0, 'a', 'get', '{"a":9007199254740992}'), at(0, 'a', 'get', '{"a":9007199254740993}')],
      TWICE,
    ],
    ['A13: text and value', [at(0, 'a', 'get', A1), at(0, 'a', 'get', { a: 2 })], TWICE],
    [
      'A13: a value within a text',
      [at(0, 'a', 'get', '{"a":'), at(0, 'a', 'get', { a: 1 })],
      TWICE,
    ],
    [
      'A15: arguments of a call without id and name',
      [at(0, 'a', 'get', A1), at(0, '', '', '{"b":2}')],
      TWICE,
    ],
    [
      'A23: a name in pieces that nobody offers',
      [at(0, '', 'get', ''), at(0, '', 'other', '')],
      NAMES,
    ],
    ['a name in pieces, or two', [at(0, '', 'go', ''), at(0, '', 'go', A1)], NAMES],
    [
      'another name within the arguments',
      [at(0, '', 'get', '{"a"'), at(0, '', 'put', ':1}')],
      NAMES,
    ],
    [
      'the name again after the arguments, and none more',
      [at(0, '', 'get', A1), at(0, '', 'get', '')],
      'once without arguments',
    ],
    ['the id dropped, at another index', [at(0, 'a', 'get', A1), at(1, '', 'get', A1)], UNCLEAR],
    ['the id given late', [at(0, '', 'get', A1), at(0, 'a', 'get', A1)], UNCLEAR],
    ['the id given late, after the name', [at(0, '', 'get', ''), at(0, 'a', 'get', A1)], UNCLEAR],
    [
      'other arguments, of which one has an id',
      [at(0, 'a', 'get', A1), at(0, '', 'get', '{}')],
      UNCLEAR,
    ],
    [
      'the index dropped',
      [at(0, '', 'get', A1), at(1, '', 'put', A1), bare('', 'get', A1)],
      UNCLEAR,
    ],
    [
      'a number in pieces',
      [at(0, 'a', 'get', '5'), at(0, 'a', 'get', '5')],
      'a number in several pieces',
    ],
    [
      'A13: {} after other arguments, under one id',
      [at(0, 'a', 'get', A1), at(0, 'a', 'get', '{}')],
      TWICE,
    ],
    [
      'A13: other arguments after {}, with the name',
      [at(0, 'a', 'get', '{}'), at(0, 'a', 'get', A1)],
      TWICE,
    ],
    [
      'A13: other arguments after {}, at another index',
      [at(0, 'a', 'get', '{}'), at(1, 'a', '', A1)],
      TWICE,
    ],
    [
      'other arguments after {}, after another call',
      [at(0, 'a', 'get', '{}'), at(1, 'b', 'put', A1), at(0, '', '', A1)],
      TWICE,
    ],
    [
      'arguments after {}, where a later call has none',
      [at(1, 'a', 'get', '{}'), at(2, 'b', 'put', ''), at(1, '', '', A1)],
      TWICE,
    ],
    [
      'LibreChat: indexes of the arguments are one too low',
      [at(1, 'a', 'get', ''), at(0, '', '', A1), at(2, 'b', 'put', ''), at(1, '', '', A1)],
      MISSED,
    ],
    [
      'SGLang: indexes of the tools',
      [at(1, 'a', 'put', ''), at(0, '', '', A1), at(0, 'b', 'get', ''), at(1, '', '', A1)],
      MISSED,
    ],
    [
      'SGLang: the same, in pieces, though the later one gets arguments',
      [
        ...[at(1, 'a', 'put', ''), at(0, '', '', A1), at(0, 'b', 'get', '')],
        ...[at(1, '', '', '{"a"'), at(1, '', '', ':1}'), at(0, '', '', A1)],
      ],
      MISSED,
    ],
    [
      'a call said again between the name and the arguments of another',
      [at(0, 'a', 'get', A1), at(1, 'b', 'put', ''), at(1, 'a', 'get', A1), at(1, '', '', A1)],
      MISSED,
    ],
    [
      'the same without an index',
      [bare('a', 'get', A1), bare('b', 'put', ''), bare('a', 'get', A1), bare('', '', A1)],
      MISSED,
    ],
    [
      'the first piece again, within a string',
      [
        at(0, 'a', 'get', '{'),
        at(0, '', '', '"a":"}{'),
        at(0, 'a', 'get', '{'),
        at(0, '', '', '"}'),
      ],
      'a piece that was said again',
    ],
    [
      'the first piece again at once',
      [at(0, 'a', 'get', '{"a":"'), at(0, 'a', 'get', '{"a":"'), at(0, '', '', 'x"}')],
      'a piece that was said again',
    ],
    [
      'the same call at two indexes, of which one has an id',
      [at(0, 'a', 'get', A1), at(1, '', 'get', '{}'), at(2, '', 'get', A1)],
      UNCLEAR,
    ],
    [
      'a piece of another call between the name and the arguments',
      [at(0, 'a', 'get', ''), at(0, 'b', 'put', ''), at(0, 'a', 'get', ''), at(0, '', '', A1)],
      MISSED,
    ],
    [
      'arguments with the name of two calls, said again and to come',
      [at(0, 'a', 'get', A1), at(0, 'b', 'get', ''), at(0, 'a', 'get', ''), at(0, '', 'get', A1)],
      MISSED,
    ],
    [
      'the same without an index, the first one without arguments',
      [bare('a', 'get', ''), bare('b', 'get', ''), bare('a', 'get', ''), bare('', 'get', A1)],
      MISSED,
    ],
    [
      'a name alone, then the name "None", without ids',
      [at(0, '', 'get', ''), at(0, '', 'None', A1)],
      `${NAMES}, get and None.`,
    ],
    [
      'the name again after another call without arguments',
      [at(0, '', 'get', A1), at(0, '', 'put', ''), at(0, '', 'get', '{}')],
      'after a call without them',
    ],
    [
      'a name again without arguments, after another call',
      [at(0, '', 'get', A1), at(0, '', 'put', '{}'), at(0, '', 'get', '')],
      'once without arguments',
    ],
    [
      '{} again, which was nothing yet',
      [at(0, '', 'get', '{}'), at(0, '', '', A1), at(0, '', 'get', '{}')],
      'once without arguments',
    ],
    [
      '{} twice, then the arguments, without an id',
      [at(0, '', 'get', '{}'), at(0, '', 'get', '{}'), at(0, '', '', A1)],
      TWICE,
    ],
    [
      'a restart without ids, and other arguments than before',
      [
        ...[at(0, '', 'get', ''), at(0, '', '', A1), at(0, '', 'put', '')],
        ...[
          at(0, '', 'get', ''),
          at(0, '', '', A1),
          at(0, '', 'put', ''),
          at(0, '', '', '{"b":2}'),
        ],
      ],
      'once without arguments',
    ],
    [
      'the same without an index',
      [
        ...[bare('', 'get', ''), bare('', '', A1), bare('', 'put', '')],
        ...[bare('', 'get', ''), bare('', '', A1), bare('', 'put', ''), bare('', '', '{"b":2}')],
      ],
      'once without arguments',
    ],
    [
      '{} beside the name, then the name alone, then the arguments, without an id',
      [at(0, '', 'get', '{}'), at(0, '', 'get', ''), at(0, '', '', A1)],
      'once without arguments',
    ],
    [
      'a restart without ids of calls with {} beside their names',
      [
        ...[at(0, '', 'get', '{}'), at(0, '', 'put', '{}')],
        ...[at(0, '', 'get', '{}'), at(0, '', 'put', '{}'), at(0, '', '', A1)],
      ],
      'once without arguments',
    ],
    [
      'a name again after another call, where {} beside a name was nothing yet',
      [
        ...[at(0, '', 'go', '{}'), at(0, '', '', A1), at(0, '', 'get', '{}')],
        ...[at(0, '', 'put', '{"b":2}'), at(0, '', 'get', ''), at(0, '', '', A1)],
      ],
      'once without arguments',
    ],
    [
      'LibreChat: the same, the first call without arguments',
      [at(1, 'a', 'get', ''), at(0, '', '', ''), at(2, 'b', 'put', ''), at(1, '', '', A1)],
      MISSED,
    ],
    [
      'LibreChat: begun again, where the last call has no arguments',
      [
        ...[at(1, 'a', 'get', ''), at(0, '', '', A1), at(2, 'b', 'put', '')],
        ...[at(1, 'a', 'get', ''), at(0, '', '', A1), at(2, 'b', 'put', '')],
      ],
      MISSED,
    ],
    [
      'the id given late, and another name at another index',
      [at(0, '', 'get', ''), at(0, 'c', '', A1), at(4, '', 'get', ''), at(4, 'c', '', A1)],
      UNCLEAR,
    ],
    [
      'an id at one of two indexes, where that call has no arguments',
      [at(0, 'a', 'get', ''), at(1, '', 'get', A1)],
      UNCLEAR,
    ],
    [
      '{} beside the name, the name again after another call, then arguments',
      [bare('a', 'get', '{}'), bare('b', 'put', ''), bare('a', 'get', ''), bare('', '', A1)],
      TWICE,
    ],
    [
      'A13: other arguments after {} that came without the name',
      [at(0, 'a', 'get', ''), at(0, '', '', '{}'), at(0, '', '', A1)],
      TWICE,
    ],
    [
      '{} after whole arguments, where another call has none',
      [at(0, 'a', 'get', A1), at(1, 'b', 'put', ''), at(0, '', '', '{}')],
      TWICE,
    ],
    [
      '{} after whole arguments at a place of two calls',
      [at(0, 'a', 'put', '{"b":2}'), at(0, 'b', 'get', A1), at(0, '', '', '{}')],
      TWICE,
    ],
    ['two names, too long', [at(0, 'a', LONG, ''), at(0, 'a', 'get', A1)], `${NAMES}.`],
    ['a long name', [at(0, 'a', LONG, A1), at(0, 'a', LONG, '{}')], `A call ${TWICE}.`],
    ['a long name, twice', [at(0, 'a', LONG, A1), at(1, '', LONG, A1)], 'A call came twice'],
  ])('%s', (_name, pieces, expected) => {
    const { malformed } = assembled(pieces);
    expect(malformed).toContain(expected);
    expect(malformed?.length).toBeLessThan(200);
  });

  test('a value nested deeper than a stack is told', () => {
    let deep: unknown = 1;
    for (let level = 0; level < 20_000; level++) deep = [deep];
    const { calls } = assembled([at(0, 'a', 'get', deep), at(1, 'b', 'put', '{}')]);
    expect(calls).toMatchObject([
      { name: 'get', fault: { message: 'is nested deeper than 128 levels' } },
      { name: 'put', fault: undefined },
    ]);
    const again = [at(0, 'a', 'get', ''), at(0, '', '', deep)];
    expect(assembled(again).calls[0]?.fault).toBeDefined();
  });
});

/** Rounds, each a seed: a failure names its own. */
const ROUNDS = 1000;

test('[I121] by chance: the calls that are meant, or it is unusable', () => {
  const counts = { again: 0, refused: 0 };
  for (let seed = 1; seed <= ROUNDS; seed++) {
    const { meant, pieces, isSaidAgain, isUnclear } = framedAnswer(seed);
    const { calls, malformed } = assembled(pieces);
    const isRefused = malformed !== undefined || calls.some(({ name }) => name === '');
    const said = calls.map(({ name, arguments: sent }) => [name, valueIn(sent)]);
    const expected = meant.map(({ name, args }) => [name, args]);
    const isUnusable = isRefused || said.some(([, value]) => value === UNREAD);
    const sent = `seed ${seed}: ${JSON.stringify(pieces)}`;
    if (isSaidAgain && !isUnclear) counts.again += 1;
    if (isSaidAgain && !isUnclear && isUnusable) counts.refused += 1;
    if (!isUnusable || !(isSaidAgain || isUnclear))
      expect([said, malformed], sent).toEqual([expected, undefined]);
  }
  expect(counts.again).toBeGreaterThan(ROUNDS / 3);
  expect(counts.refused).toBeLessThan(counts.again / 3);
});

const UNREAD = Symbol('no JSON');

function valueIn(text: string): unknown {
  const read = readJson(text === '' ? '{}' : text);
  return read.ok ? (read.value ?? {}) : UNREAD;
}
