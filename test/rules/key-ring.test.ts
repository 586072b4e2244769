// Which key a process encrypts with while the operator's keys are rotated (architecture §10.2).
import { describe, expect, it } from 'vitest';
import {
  isShared,
  keyToUse,
  missingKeys,
  ringOf,
  type KeyView,
  type OthersKeys,
} from '../../src/rules/key-ring.ts';

const other = (knows: string, uses?: string): OthersKeys => ({ knows: new Set(knows), uses });

function view(own: string, rest: Partial<Omit<KeyView, 'own'>> = {}): KeyView {
  return { own: [...own], used: new Set('o'), others: [], isComplete: true, ...rest };
}

describe('the key that a process encrypts with', () => {
  // [I100]
  it.each<[string, KeyView, string | undefined]>([
    ['no key: none', view(''), undefined],
    ['the first one ever is used at once', view('n', { used: new Set(), isComplete: false }), 'n'],
    ['alone, and every process has spoken: the new one', view('no'), 'n'],
    ['others may not have spoken yet: the old one', view('no', { isComplete: false }), 'o'],
    ['it was used before: at once', view('no', { isComplete: false, used: new Set('no') }), 'n'],
    ['another one does not know it: the old one', view('no', { others: [other('o', 'o')] }), 'o'],
    [
      'it was used before, and another one does not know it: the old one',
      view('no', { used: new Set('no'), others: [other('o', 'o')] }),
      'o',
    ],
    ['all others know it', view('no', { others: [other('on', 'o'), other('no', 'o')] }), 'n'],
    [
      'one that uses none yet, or has none, is not waited for',
      view('no', { others: [other('o'), other('')] }),
      'n',
    ],
    [
      'one of two does not know it',
      view('no', { others: [other('no', 'o'), other('o', 'o')] }),
      'o',
    ],
    [
      'others use it already, and one that does not know it is there again: the old one',
      view('no', { others: [other('no', 'n'), other('o', 'o')] }),
      'o',
    ],
    [
      'another one uses it already, before all have spoken',
      view('no', { isComplete: false, others: [other('no', 'n')] }),
      'n',
    ],
    [
      'no key is known to all, and another one uses it already: it stays in use',
      view('no', { others: [other('n', 'n'), other('x', 'x')] }),
      'n',
    ],
    ['there is no other of its own', view('n', { others: [other('o', 'o')] }), 'n'],
    [
      'the older one was never used: nothing is kept by holding back',
      view('no', { used: new Set('x'), others: [other('o')] }),
      'n',
    ],
    [
      'of several older ones that were used the one that all know',
      view('nao', { used: new Set('ao'), others: [other('o', 'o')] }),
      'o',
    ],
    [
      'where all know none of them, the one that is in use',
      view('nao', { used: new Set('ao'), others: [other('o', 'o'), other('x', 'x')] }),
      'o',
    ],
    [
      'where none is in use, the first that was used',
      view('nxao', { used: new Set('ao'), others: [other('x', 'x')] }),
      'a',
    ],
  ])('%s', (_name, seen, key) => {
    expect(keyToUse(seen)).toBe(key);
  });

  it('is shared when every live process uses it, and each has spoken', () => {
    expect(isShared(view('no'), 'n')).toBe(true);
    expect(isShared(view('no', { isComplete: false }), 'n')).toBe(false);
    expect(isShared(view('no', { others: [other('no', 'n')] }), 'n')).toBe(true);
    expect(isShared(view('no', { others: [other('no', 'n'), other('no', 'o')] }), 'n')).toBe(false);
    expect(isShared(view('no', { others: [other('no')] }), 'n')).toBe(false);
  });

  it('names the keys that others use and this process does not have', () => {
    const others = [
      other('xn', 'x'),
      other('an', 'a'),
      other('xn', 'x'),
      other('n', 'n'),
      other(''),
    ];
    expect(missingKeys(view('n', { others }))).toEqual(['a', 'x']);
    expect(missingKeys(view('n'))).toEqual([]);
  });

  it('of a process that is alone is the first', () => {
    const ring = ringOf(['a', 'b']);
    expect([ring.keys, ring.current(), ring.isShared(), ring.missing()]).toEqual([
      ['a', 'b'],
      'a',
      true,
      [],
    ]);
    expect(ringOf([]).current()).toBeUndefined();
  });
});
