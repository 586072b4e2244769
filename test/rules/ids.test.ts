// Identities: pure, injective, of the form the wire wants, and the same for ever (architecture §2.1, §2.2; seed
// 003 §3).
import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import {
  activityEventKey,
  activityIdOf,
  deltaKey,
  digestOf,
  emissionKey,
  encodeTuple,
  eventIdOf,
  payloadId,
  sha256Hex,
  type Tuple,
} from '../../src/rules/ids.ts';

const GATE: Tuple = { nodeId: 'gate', visit: 1, attempt: 0, step: 'ask' };

describe('encodeTuple', () => {
  const parts = [
    'a',
    'b',
    '',
    '/',
    '%2F',
    'a/1/0/b',
    '1',
    '0/a',
    'é',
    '漢字',
    'h:',
    '#',
    '|',
    'a b',
    '..',
    '%',
  ];

  // [I2]
  test('architecture §2.2 differs for every two tuples, whatever their parts contain', () => {
    const tuples = parts.flatMap((nodeId) =>
      parts.flatMap((step) =>
        [1, 11].flatMap((visit) => [0, 1].map((attempt) => ({ nodeId, visit, attempt, step }))),
      ),
    );
    expect(new Set(tuples.map(encodeTuple)).size).toBe(tuples.length);
  });

  test('architecture §2.2 hashes above 200 bytes and stays different', () => {
    const long = [199, 200, 300].flatMap((length) =>
      ['n', 'é'].map((letter) => encodeTuple({ ...GATE, nodeId: letter.repeat(length) })),
    );
    expect(new Set(long).size).toBe(long.length);
    for (const text of long) expect(text).toMatch(/^h:[0-9a-f]{64}$/);
  });

  test('architecture §2.2 keeps 200 bytes as they are', () => {
    const exact = encodeTuple({ ...GATE, nodeId: 'n'.repeat(200 - '/1/0/ask'.length) });
    expect(exact).toHaveLength(200);
    expect(exact).not.toMatch(/^h:/);
  });

  test('a plain tuple never looks like a hashed one', () => {
    expect(encodeTuple({ ...GATE, nodeId: 'h:' + 'a'.repeat(64) })).toContain('/1/0/ask');
  });
});

/** Reads the text of a KSUID back into bytes, independently of the product. */
function bytesOf(text: string): Buffer {
  const letters = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
  const value = [...text].reduce((sum, letter) => sum * 62n + BigInt(letters.indexOf(letter)), 0n);
  return Buffer.from(value.toString(16).padStart(40, '0'), 'hex');
}

describe('event ids', () => {
  // [I1]
  test('architecture §2.1 are evt- and the KSUID of the first 20 bytes of SHA-256(runId NUL key)', () => {
    for (const [runId, key] of [
      ['run-1', 'terminal'],
      ['', ''],
      ['r\u00e9', '漢|1'],
    ] as const) {
      const id = eventIdOf(runId, key);
      expect(id).toMatch(/^evt-[0-9A-Za-z]{27}$/);
      expect(bytesOf(id.slice(4))).toEqual(
        createHash('sha256').update(`${runId}\0${key}`).digest().subarray(0, 20),
      );
    }
  });

  test('are padded to 27 characters', () => {
    const ids = Array.from({ length: 2000 }, (_, index) => eventIdOf('run', String(index)));
    expect(new Set(ids.map((id) => id.length))).toEqual(new Set([31]));
    expect(new Set(ids).size).toBe(ids.length);
  });
});

test('architecture §2.2 identities never change: recorded runs depend on them', () => {
  expect({
    tuple: encodeTuple(GATE),
    hashed: encodeTuple({ ...GATE, nodeId: 'n'.repeat(300) }),
    activity: activityIdOf(GATE),
    emission: emissionKey('node.started', GATE),
    indexed: emissionKey('node.started', GATE, 2),
    activityEvent: activityEventKey('a', 1),
    delta: deltaKey('a', 1),
    event: eventIdOf('run-1', 'terminal'),
    interrupt: payloadId('int', 'run-1', GATE),
    call: payloadId('call', 'run-1', GATE),
    digest: digestOf('{}'),
  }).toEqual({
    tuple: 'gate/1/0/ask',
    hashed: 'h:cb9a7a3eaa18d449c9c01f7d211cdbc11ca65ab6102e7c251a0e5c0bab06c13c',
    activity: 'gate/1/0/ask',
    emission: 'node.started|gate/1/0/ask',
    indexed: 'node.started|gate/1/0/ask|2',
    activityEvent: 'a#1',
    delta: 'a#d1',
    event: 'evt-97K6IRHJLQ7f3iaBLAAmrdnj4NH',
    interrupt: 'int-7QbOgJf8eK39qtCGH5bojnOnsx3',
    call: 'call-2Ty54KiVaAhcc43B1sYGCPnwA8C',
    digest: 'sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a',
  });
});

test('payload ids of another kind, seed or tuple differ', () => {
  const all = [
    ...(['call', 'inv', 'int'] as const).map((kind) => payloadId(kind, 'seed', GATE)),
    payloadId('call', 'seed-2', GATE),
    payloadId('call', 'seed', { ...GATE, attempt: 1 }),
  ];
  expect(new Set(all.map((id) => id.replace(/^\w+-/, ''))).size).toBe(all.length);
});

test('SHA-256 is that of the platform', () => {
  for (const text of ['', 'abc', 'é漢😀', 'x'.repeat(1000)]) {
    expect(sha256Hex(text)).toBe(createHash('sha256').update(text, 'utf8').digest('hex'));
  }
});
