// The states of a call that comes in pieces, each with each input; every cut and every repeat of an answer; the limits
// (architecture §11, I121).
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { CallAssembly } from '../../src/adapters/models/call-assembly.ts';
import { Call, type CallState } from '../../src/adapters/models/call-in-pieces.ts';
import { pieceOf, type CallPiece } from '../../src/adapters/models/call-piece.ts';
import { codeOf } from '../../src/rules/errors.ts';

const OFFERED = ['get', 'put', 'get_order'];
const A1 = '{"a":1}';

function assembled(pieces: readonly CallPiece[]) {
  const assembly = new CallAssembly(OFFERED);
  for (const piece of pieces) assembly.take(piece);
  const { calls, malformed } = assembly.end();
  return { calls, malformed, said: calls.map(({ name, arguments: sent }) => `${name} ${sent}`) };
}

const at = (place: number, id?: string, name?: string, args?: string): CallPiece => ({
  ...{ place, id, name, args },
});

describe('the table of states', () => {
  type Input = 'equal name' | 'other name' | 'a part' | 'equal whole' | 'other whole' | 'blank';
  const before: Record<CallState, CallPiece[]> = {
    named: [at(0, 'a', 'get', '')],
    empty: [at(0, 'a', 'get', '{}')],
    arguing: [at(0, 'a', 'get', '{"a"')],
    whole: [at(0, 'a', 'get', A1)],
    again: [at(0, 'a', 'get', A1), at(0, 'a', 'get', '{"a"')],
    malformed: [at(0, 'a', 'get', A1), at(0, 'a', 'get', '{"a":2}')],
  };
  const inputs: Record<Input, { name?: string; args?: string }> = {
    'equal name': { name: 'get' },
    'other name': { name: 'put' },
    'a part': { args: '{"a"' },
    'equal whole': { args: A1 },
    'other whole': { args: '{"b":2}' },
    blank: { args: ' ' },
  };
  /** Its arguments, if there is nothing that contradicts. */
  const expected: Record<CallState, Record<Input, string>> = {
    named: {
      'equal name': '',
      'other name': 'malformed',
      'a part': '{"a"',
      'equal whole': A1,
      'other whole': '{"b":2}',
      blank: '',
    },
    empty: {
      'equal name': '{}',
      'other name': 'malformed',
      'a part': '{"a"',
      'equal whole': A1,
      'other whole': '{"b":2}',
      blank: '{}',
    },
    arguing: {
      'equal name': '{"a"',
      'other name': 'malformed',
      'a part': '{"a"{"a"',
      'equal whole': '{"a"{"a":1}',
      'other whole': '{"a"{"b":2}',
      blank: '{"a" ',
    },
    whole: {
      'equal name': A1,
      'other name': 'malformed',
      'a part': `${A1}{"a"`,
      'equal whole': A1,
      'other whole': 'malformed',
      blank: A1,
    },
    again: {
      'equal name': `${A1}{"a"`,
      'other name': 'malformed',
      'a part': `${A1}{"a"{"a"`,
      'equal whole': `${A1}{"a"{"a":1}`,
      'other whole': `${A1}{"a"{"b":2}`,
      blank: `${A1}{"a" `,
    },
    malformed: {
      'equal name': 'malformed',
      'other name': 'malformed',
      'a part': 'malformed',
      'equal whole': 'malformed',
      'other whole': 'malformed',
      blank: 'malformed',
    },
  };
  const rows = Object.entries(expected).flatMap(([state, row]) =>
    Object.entries(row).map(([input, end]) => [state as CallState, input as Input, end] as const),
  );
  test.each(rows)('%s, then %s', (state, input, end) => {
    const { calls, malformed } = assembled([
      ...before[state],
      { place: 0, id: 'a', ...inputs[input] },
    ]);
    expect(malformed === undefined ? calls.map((call) => call.arguments) : 'malformed').toEqual(
      end === 'malformed' ? end : [end],
    );
  });
});

describe('[I121] by every cut and every repeat', () => {
  const meant = [
    { id: 'a', name: 'get', args: '{"a":"}{\\"","b":[1,{}]}' },
    { id: 'b', name: 'put', args: '' },
    { id: 'c', name: 'get_order', args: '{"a":"}{\\"","b":[1,{}]}' },
  ];
  const expected = meant.map(({ name, args }) => `${name} ${args}`);
  type Head = (index: number) => Pick<CallPiece, 'place' | 'id'>;
  const framings: [string, Head, Head][] = [
    ['by index and id', (i) => ({ place: i, id: meant[i]?.id }), (i) => ({ place: i })],
    [
      'by index, the id with each piece',
      (i) => ({ place: i, id: meant[i]?.id }),
      (i) => ({ place: i, id: meant[i]?.id }),
    ],
    ['by index alone', (i) => ({ place: i }), (i) => ({ place: i })],
    ['by id, all at one index', (i) => ({ place: 0, id: meant[i]?.id }), () => ({ place: 0 })],
    ['by id alone', (i) => ({ id: meant[i]?.id }), () => ({})],
  ];

  test.each(framings)('%s', (_name, head, tail) => {
    for (let cut = 0; cut <= (meant[0]?.args.length ?? 0); cut++) {
      const pieces = meant.flatMap(({ name, args }, index) => [
        { ...head(index), name, args: args.slice(0, cut) },
        { ...tail(index), args: args.slice(cut) },
      ]);
      for (const sent of [pieces, [...pieces, ...pieces]]) {
        const { said, malformed } = assembled(sent);
        expect([said, malformed], `cut at ${cut}`).toEqual([expected, undefined]);
      }
      for (const [again, piece] of pieces.entries()) {
        const { calls, malformed, said } = assembled(pieces.toSpliced(again, 0, piece));
        const isRefused = malformed !== undefined || calls.some((call) => !isRead(call.arguments));
        expect(
          isRefused || said.join() === expected.join(),
          `${again} again, cut at ${cut}: ${said.join()}`,
        ).toBe(true);
      }
    }
  });
});

describe('[I121] neither the calls that were meant nor a contradiction', () => {
  test.each<[string, CallPiece[]]>([
    [
      'a piece said again within the arguments',
      [at(0, 'a', 'get', '{"a"'), at(0, 'a', 'get', '{"a"'), at(0, '', '', ':1}')],
    ],
    [
      'the last piece said again',
      [at(0, 'a', 'get', '{"a":1'), at(0, '', '', '}'), at(0, '', '', '}')],
    ],
    ['arguments begun again and cut off', [at(0, 'a', 'get', A1), at(0, 'a', 'get', '{"a"')]],
    ['the name dropped, under a new id', [at(0, 'a', 'get', A1), at(0, 'b', '', A1)]],
    [
      'arguments of no call, where two are open',
      [at(1, 'a', 'get', ''), at(2, 'b', 'get', ''), at(0, '', '', A1)],
    ],
    ['an id and no name', [at(0, 'a', '', A1)]],
    ['a word of which something is missing', [at(0, 'a', 'get', 'nul'), at(0, 'a', 'get', 'null')]],
    ['something after a word', [at(0, 'a', 'get', 'null'), at(0, '', '', 'x')]],
    [
      'white space at no index, where two are open',
      [
        at(1, 'a', 'get', '{"a":"x'),
        at(2, 'b', 'put', ''),
        at(0, '', '', ' '),
        at(1, '', '', '"}'),
      ],
    ],
  ])('%s: left as a call that cannot be read', (_name, pieces) => {
    const { calls } = assembled(pieces);
    const unread = calls.filter(({ name, arguments: sent }) => name === '' || !isRead(sent));
    expect(unread.length).toBeGreaterThan(0);
  });
});

describe('limits', () => {
  test('one sentence is built for a call, however many of its pieces contradict it', () => {
    const call = new Call(pieceOf(at(0, 'a', 'get', '')), 0);
    const built: string[] = [];
    for (const sentence of ['first', 'second', 'third'])
      call.contradict(() => (built.push(sentence), sentence));
    expect(built).toEqual(['first']);
    expect(call.malformed).toBe('first');
  });

  test('the arguments of a call are read as often, at however many indexes of no call they came', () => {
    const timesRead = (indexes: number): number => {
      const spy = vi.spyOn(Call.prototype, 'arguments', 'get');
      onTestFinished(() => spy.mockRestore());
      const parts = Array.from({ length: indexes }, (_, i) => at(i + 2, '', '', 'x'));
      const whole = (id: string, name: string) => [
        ...[at(0, id, name, '{"a":"'), ...parts, at(0, id, '', `${id}"}`)],
      ];
      const { said, malformed } = assembled([...whole('a', 'get'), ...whole('b', 'put')]);
      const text = 'x'.repeat(indexes);
      expect(malformed).toBeUndefined();
      expect(said).toEqual([`get {"a":"${text}a"}`, `put {"a":"${text}b"}`]);
      return spy.mock.calls.splice(0).length;
    };
    expect(timesRead(1)).toBeGreaterThan(0);
    expect(timesRead(50)).toBe(timesRead(1));
  });

  const failure = (pieces: Iterable<CallPiece>): unknown => {
    const assembly = new CallAssembly(OFFERED);
    try {
      for (const piece of pieces) assembly.take(piece);
    } catch (error) {
      return codeOf(error);
    }
    return 'none';
  };
  function* times(count: number, piece: (index: number) => CallPiece) {
    for (let index = 0; index < count; index++) yield piece(index);
  }

  test('1024 calls; more, also of the same, are refused', () => {
    expect(failure(times(1024, (i) => at(i, `${i}`, 'get', '{}')))).toBe('none');
    expect(failure(times(1025, (i) => at(i, `${i}`, 'get', '{}')))).toBe('model_output_too_large');
    expect(failure(times(1025, () => at(0, '', 'get', A1)))).toBe('model_output_too_large');
  });

  test('what is said again is counted, and so are ids that are kept', () => {
    const long = `{"a":"${'x'.repeat(100_000)}"}`;
    expect(failure(times(9, () => at(0, 'a', 'get', long)))).toBe('none');
    expect(failure(times(11, () => at(0, 'a', 'get', long)))).toBe('model_output_too_large');
    const ids = times(11, (i) => at(0, `${i}${'x'.repeat(100_000)}`, i === 0 ? 'get' : '', '{'));
    expect(failure(ids)).toBe('model_output_too_large');
  });
});

function isRead(text: string): boolean {
  if (text === '') return true;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
