// Forms of stored JSON: what each takes, and what it does not.
import { expect, test } from 'vitest';
import {
  isAmount,
  isCount,
  isFlag,
  isText,
  isTime,
  listOf,
  mapOf,
  members,
  optional,
  type Form,
} from '../../src/rules/forms.ts';

const named = members<{ name: string; tags: string[] }>({ name: isText, tags: listOf(isText) });

test.each<[string, Form, readonly unknown[], readonly unknown[]]>([
  ['text', isText, ['', 'a'], [undefined, null, 1, []]],
  ['flag', isFlag, [true, false], [undefined, null, 0, 'true']],
  ['count', isCount, [0, 1, Number.MAX_SAFE_INTEGER], [-1, 1.5, 2 ** 53, '1', null, undefined]],
  ['amount', isAmount, [0, 1.5, 1e300], [-1, NaN, Infinity, '1', null, undefined]],
  ['time', isTime, [0, -8.64e15, 8.64e15], [8.65e15, NaN, -Infinity, '1', null, undefined]],
  ['optional', optional(isText), [undefined, 'a'], [null, 1]],
  ['list', listOf(isText), [[], ['a']], [null, {}, 'a', ['a', 1], [['a']]]],
  ['map', mapOf(isText), [{}, { a: 'b' }], [null, [], 'a', { a: 1 }]],
  ['members', named, [{ name: 'a', tags: [], more: 1 }], [{}, null, [], { name: 'a', tags: [1] }]],
])('%s', (_, form, taken, refused) => {
  expect(taken.filter((value) => !form(value))).toEqual([]);
  expect(refused.filter(form)).toEqual([]);
});
