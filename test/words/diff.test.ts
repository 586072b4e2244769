// How two texts differ, word by word.
import { describe, expect, it } from 'vitest';
import { wordPieces } from '../../src/words/diff.ts';

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
