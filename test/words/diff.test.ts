// How two texts differ, word by word.
import { describe, expect, it } from 'vitest';
import { wordDiff, wordPieces } from '../../src/words/diff.ts';

const shown = (a: string, b: string) => wordPieces(a, b).map(({ in: side, text }) => [side, text]);

describe('RFC 0054: prompts, word by word', () => {
  it.each([
    ['the same', 'Be kind.', 'Be kind.', [['both', 'Be kind.']]],
    ['nothing', '', '', []],
    ['all is new', '', 'Be kind.', [['b', 'Be kind.']]],
    [
      'a word in the middle',
      'Do what you like.',
      'Do as you like.',
      [
        ['both', 'Do '],
        ['a', 'what '],
        ['b', 'as '],
        ['both', 'you like.'],
      ],
    ],
    [
      'what both have between two changes',
      'one two three four five',
      'ONE two three FOUR five',
      [
        ['a', 'one '],
        ['b', 'ONE '],
        ['both', 'two three '],
        ['a', 'four '],
        ['b', 'FOUR '],
        ['both', 'five'],
      ],
    ],
    [
      'a word more',
      'a b',
      'a a b',
      [
        ['both', 'a '],
        ['b', 'a '],
        ['both', 'b'],
      ],
    ],
  ] as const)('%s', (_what, a, b, pieces) => {
    expect(shown(a, b)).toEqual(pieces);
  });

  it('each text is what its pieces say, however long', () => {
    const words = (count: number, of: number) =>
      Array.from({ length: count }, (_, at) => `w${(at * of) % 97}`).join(' ');
    for (const [a, b] of [
      [words(300, 5), words(290, 7)],
      [words(3_000, 5), words(3_000, 7)],
    ] as const) {
      const pieces = wordPieces(a, b);
      const of = (side: 'a' | 'b') =>
        pieces.flatMap(({ in: where, text }) => (where === side || where === 'both' ? [text] : []));
      expect([of('a').join(''), of('b').join('')]).toEqual([a, b]);
      // Of very long ones what differs is not looked into.
      expect(pieces.length > 4).toBe(a.length < 10_000);
    }
  });
});

it('a page of many texts compares words up to a bound, and tells the rest as it is', () => {
  const words = wordDiff();
  const [a, b] = ['a', 'b'].map((letter) => Array(1_000).fill(`${letter} x`).join(' '));
  const texts = [`${a} y`.slice(2_000), `${b} y`.slice(2_000)] as const;
  const aligned = Array.from({ length: 10 }, () => words(...texts)).map(
    (pieces) => pieces.filter(({ in: side }) => side === 'both').length > 1,
  );
  expect(aligned).toEqual([true, true, false, false, false, false, false, false, false, false]);
});
