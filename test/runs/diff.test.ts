// How much of two logs is compared and told (RFC 0054): each bound leaves a part out and says so, and what was left out is
// no difference.
import { describe, expect, it } from 'vitest';
import type { LogRow } from '../../src/ports/log.ts';
import type { RunRow } from '../../src/ports/runs.ts';
import { compareRuns } from '../../src/runs/compare.ts';
import { diffRuns } from '../../src/runs/diff.ts';
import { HostError } from '../../src/rules/errors.ts';
import { A, B, depsOf, rowsOf } from '../support/two-logs.ts';

type Payloads = readonly string[];

const diffOf = (a: Payloads, b: Payloads) => diffRuns(depsOf(rowsOf(A, a), rowsOf(B, b)), A, B);
const times = (count: number, payload: string) => Array<string>(count).fill(payload);

describe('every buffer has a named limit', () => {
  it('differences that are told', async () => {
    const { events, truncated } = await diffOf(times(1_500, '{"v":1}'), times(1_500, '{"v":2}'));
    expect([events.length, truncated]).toEqual([1_000, true]);
    const few = await diffOf(times(1_000, '{"v":1}'), times(1_000, '{"v":2}'));
    expect([few.events.length, few.truncated]).toEqual([1_000, false]);
  });

  it('bytes of what is told: the first always, then as many as fit', async () => {
    const large = (letter: string, size: number) => JSON.stringify({ v: letter.repeat(size) });
    const one = await diffOf([large('a', 3_000_000), '{}'], [large('b', 3_000_000), '{"v":1}']);
    expect([one.events.length, one.truncated]).toEqual([1, true]);
    const some = await diffOf(times(10, large('a', 300_000)), times(10, large('b', 300_000)));
    expect([some.events.length, some.truncated]).toEqual([6, true]);
  });

  it('bytes of end states: the first difference always, then as many as fit', async () => {
    const name = (at: number) => `${at}-${'n'.repeat(500_000)}`;
    const [many] = [Object.fromEntries(times(20, '').map((_, at) => [name(at), at]))];
    const ended = (variables: object) =>
      ({ ...A, ...{ input: { ...A.input, variables } } }) as RunRow;
    const { state, truncated } = await diffRuns(depsOf([], []), ended(many ?? {}), ended({}));
    expect([state.length, truncated]).toEqual([8, true]);
  });

  it('rows and their size: what is behind is not looked at, and is no difference', async () => {
    for (const [count, payload] of [
      [10_500, '{}'],
      [20, JSON.stringify({ v: 'x'.repeat(1_000_000) })],
    ] as const) {
      const whole = times(count, payload);
      const { events, truncated, a } = await diffOf(whole, whole.slice(0, 3));
      expect(events.length).toBeGreaterThan(0);
      expect([truncated, a.log.isWhole]).toEqual([true, false]);
      expect(a.log.rows.length).toBeLessThan(count);
      // What was not read of one of them is not missing there.
      const other = await diffOf(times(count, '{}'), whole);
      expect(other.b.log.isWhole).toBe(false);
      expect(other.events.filter(({ a: one, b }) => !one || !b)).toEqual([]);
    }
  });
});

describe('what people are told of it', () => {
  const content = {
    get: () => Promise.reject(new HostError('content_missing')),
  };
  const redactor = { json: <Value>(value: Value): Value => value };
  const compare = (a: readonly LogRow[], b: readonly LogRow[], other = B) =>
    compareRuns({ ...depsOf(a, b), stores: { content }, redactor }, A, other);

  it('of a large value the beginning, of many differences the first', async () => {
    const value = (letter: string) => JSON.stringify({ v: letter.repeat(40_000) });
    const large = await compare(rowsOf(A, [value('a')]), rowsOf(B, [value('b')]));
    const [told] = large.divergence?.differences ?? [];
    expect(told).toEqual({
      ...{ pointer: '/v', a: 'a'.repeat(16 * 1024), b: 'b'.repeat(16 * 1024) },
      cut: true,
    });
    const many = (of: number) =>
      JSON.stringify(Object.fromEntries(times(80, '').map((_, at) => [`m${at}`, of])));
    const { divergence, truncated } = await compare(rowsOf(A, [many(1)]), rowsOf(B, [many(2)]));
    expect([divergence?.differences.length, truncated]).toEqual([50, true]);
  });

  it('steps, and all values together', async () => {
    const started = (run: RunRow, outputs: string): LogRow[] =>
      rowsOf(run, times(1_200, '')).map((row, at) => ({
        ...row,
        ...(at % 2 === 0
          ? { type: 'node.started', payload: '{"attempt":0}' }
          : { type: 'node.completed', payload: JSON.stringify({ outputs: { o: outputs } }) }),
      }));
    const few = await compare(started(A, 'a'), started(B, 'a'));
    expect([few.same, few.steps.length, few.truncated]).toEqual([true, 500, true]);
    // What is told is cut; what was compared is not, unless a log is longer still.
    const beyond = await compare(rowsOf(A, times(10_500, '{}')), rowsOf(B, times(10_500, '{}')));
    expect([beyond.same, beyond.divergence, beyond.truncated]).toEqual([false, undefined, true]);
    const long = (letter: string) => letter.repeat(16_000);
    const { steps } = await compare(started(A, long('a')), started(B, long('b')));
    const told = steps.flatMap(({ differences }) => differences);
    expect(told.length).toBeGreaterThan(50);
    expect(JSON.stringify(told).length).toBeLessThan(2.2 * 1024 * 1024);
  });

  it('a manifest that is stored no more is told by its hash', async () => {
    const withAgent = (row: RunRow, manifestHash: string): RunRow => {
      const agent = {
        agentId: 'a',
        manifestHash,
        modelClass: 'general',
        toolAllowlist: [],
      } as const;
      return { ...row, input: { ...row.input, agents: { a: agent } } };
    };
    const deps = { ...depsOf([], []), stores: { content }, redactor };
    const { pinned } = await compareRuns(deps, withAgent(A, 'h1'), withAgent(B, 'h2'));
    expect(pinned).toEqual([
      { fact: 'agents', differences: [{ pointer: '/a/manifestHash', a: 'h1', b: 'h2' }] },
    ]);
  });
});
