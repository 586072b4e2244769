// What a member of a cohort came to (architecture §6): decisions and ends are compared whole, however long the logs are, and
// what was not compared is told as that.
import { describe, expect, it } from 'vitest';
import type { Head, LogRow } from '../../src/ports/log.ts';
import type { RunRow } from '../../src/ports/runs.ts';
import type { MemberStop } from '../../src/rules/cohort.ts';
import type { ForkOf } from '../../src/rules/run-input.ts';
import { createVerdicts } from '../../src/runs/cohort-verdict.ts';
import { A, B, depsOf, rowsOf } from '../support/two-logs.ts';

const FORK_OF: ForkOf = {
  ...{ sourceRunId: A.runId, fromSeq: 0, length: 1, mode: 'branch', clocks: [], generation: 1 },
};
const NAME = { tenant: 'default', cohortId: 'cohort-1', position: 0 };
const MEMBER = { position: 0, sourceRunId: A.runId, forkRunId: B.runId, isMade: true };

interface Given {
  readonly a: readonly LogRow[];
  readonly b: readonly LogRow[];
  readonly mode?: ForkOf['mode'];
  readonly stop?: MemberStop;
  readonly head?: (run: { readonly runId: string }) => Partial<Head>;
  readonly signal?: AbortSignal;
}

async function verdict({ a, b, mode = 'branch', stop, head = () => ({}), signal }: Given) {
  const { log } = depsOf(a, b, head);
  const content = { get: async () => Promise.reject(new Error('no manifest is read')) };
  const verdicts = createVerdicts({
    log: { ...log, head: async (run: RunRow) => (await log.fresh(run)).head },
    stores: { content, runs: { find: async () => A } },
    redactor: { json: <Value>(value: Value): Value => value },
  });
  const fork = { ...B, input: { ...B.input, fork: { ...FORK_OF, mode } } };
  const member = { ...MEMBER, ...(stop ? { stop } : {}) };
  return verdicts.of({ name: NAME, member, fork }, signal);
}

/** So many visits of one node, of which one is decided otherwise. */
function visits(run: RunRow, count: number, decidedAt: (visit: number) => object): LogRow[] {
  const told = Array.from({ length: count }, (_, at): [string, object][] => [
    ['node.started', { attempt: 0 }],
    ['agent.decided', { agentId: 'judge', ...decidedAt(at + 1) }],
    ['node.completed', { outputs: { at } }],
  ]).flat();
  const rows = rowsOf(
    run,
    told.map(([, payload]) => JSON.stringify(payload)),
  );
  return rows.map((row, at) => ({ ...row, type: told[at]?.[0] ?? '' }));
}

const goes = (go: boolean, more: object = {}) => ({ decision: { go, ...more } });

// [I111]
describe('a member of a cohort', () => {
  it('of 600 visits the 550th is decided otherwise: another outcome, told with its values', async () => {
    const a = visits(A, 600, () => goes(true));
    const b = visits(B, 600, (visit) => goes(visit !== 550));
    const { outcome, report } = await verdict({ a, b });
    expect(outcome).toBe('outcome-changed');
    expect(report.changes).toEqual([
      { nodeId: 'n', pointer: '/decisions/0/decision/go', before: 'true', after: 'false' },
    ]);
    expect(report.divergence).toMatchObject({ seq: 549 * 3 + 1, type: 'agent.decided' });
  });

  it('one fact beyond 10,000 differs: a branch came to the same on another way, a replay diverged', async () => {
    const rows = (run: RunRow, last: number) =>
      rowsOf(
        run,
        Array.from({ length: 10_500 }, (_, at) => JSON.stringify({ v: at === 10_400 ? last : 0 })),
      );
    for (const mode of ['branch', 'replay'] as const) {
      const same = await verdict({ a: rows(A, 1), b: rows(B, 1), mode });
      expect(same).toMatchObject({ outcome: 'same' });
      expect(same.report).not.toHaveProperty('divergence');
      // A note is no part of what a step did: only a replay has to state it.
      const other = await verdict({ a: rows(A, 1), b: rows(B, 2), mode });
      expect(other.outcome).toBe(mode === 'replay' ? 'diverged' : 'same');
    }
  });

  it('how sure somebody was, however often, hides no decision', async () => {
    const decided = (run: RunRow, confidence: number, last: boolean) => {
      const [started, , completed] = visits(run, 1, () => goes(true));
      const told = Array.from({ length: 60 }, (_, at) => ({
        ...{ agentId: 'judge', confidence, ...goes(at < 59 || last) },
      }));
      const rows = rowsOf(
        run,
        told.map((each) => JSON.stringify(each)),
        'agent.decided',
      );
      return [started, ...rows, completed].flatMap((row, sequence) =>
        row ? [{ ...row, sequence, key: `k${sequence}` }] : [],
      );
    };
    const surer = await verdict({ a: decided(A, 0.1, true), b: decided(B, 0.9, true) });
    expect(surer.outcome).toBe('diverged');
    const { outcome, report } = await verdict({
      ...{ a: decided(A, 0.1, true), b: decided(B, 0.9, false) },
    });
    expect([outcome, report.changes]).toEqual([
      'outcome-changed',
      [{ nodeId: 'n', pointer: '/decisions/59/decision/go', before: 'true', after: 'false' }],
    ]);
  });

  it('of a long decision the beginning is told; one that differs behind it is another one', async () => {
    const long = (end: string) => ({ decision: { text: `${'x'.repeat(5_000)}${end}` } });
    const { outcome, report } = await verdict({
      a: visits(A, 1, () => long('one')),
      b: visits(B, 1, () => long('two')),
    });
    expect(outcome).toBe('outcome-changed');
    const [change] = report.changes ?? [];
    expect(change).toMatchObject({ nodeId: 'n', pointer: '/decisions/0/decision' });
    expect(change?.before).not.toBe(change?.after);
  });

  it('more decisions than are kept are compared as well', async () => {
    const text = 'x'.repeat(1_900);
    const a = visits(A, 5_000, () => goes(true, { text }));
    const b = visits(B, 5_000, (visit) => goes(visit !== 4_990, { text }));
    const { outcome, report } = await verdict({ a, b });
    expect(outcome).toBe('outcome-changed');
    expect(report.changes).toEqual([
      {
        ...{ nodeId: 'n', pointer: '/decisions' },
        before: expect.stringMatching(/^"SHA-256 [0-9a-f]{64}"$/) as string,
        after: expect.stringMatching(/^"SHA-256 [0-9a-f]{64}"$/) as string,
      },
    ]);
  });

  it('a visit that one side alone came to is told by its status', async () => {
    const { outcome, report } = await verdict({
      a: visits(A, 2, () => goes(true)),
      b: visits(B, 1, () => goes(true)),
    });
    expect([outcome, report.changes]).toEqual([
      'outcome-changed',
      [{ nodeId: 'n', pointer: '/status', before: '"completed"' }],
    ]);
  });

  it('no more changes are told than a report holds', async () => {
    const { report } = await verdict({
      a: visits(A, 40, () => goes(true)),
      b: visits(B, 40, () => goes(false)),
    });
    expect(report.changes).toHaveLength(20);
  });

  /** A stream that no fact states, larger than is held. */
  const streamed = (run: RunRow): LogRow[] =>
    rowsOf(
      run,
      Array.from({ length: 9 }, () => JSON.stringify({ chunk: 'x'.repeat(1_000_000) })),
      'output.chunk',
    ).map((row, at) => ({ ...row, key: `n/1/0/infer#d${at}` }));

  it('whose log is too long is not compared, and says so', async () => {
    const { outcome, report } = await verdict({ a: streamed(A), b: streamed(B) });
    expect(outcome).toBe('not-compared');
    expect(report.error).toMatchObject({ code: 'payload_too_large' });
    expect(report.before).toMatchObject({ status: 'completed' });
  });

  it('whose log has a gap is not compared', async () => {
    const [first, , ...rest] = visits(A, 2, () => goes(true));
    const a = first ? [first, ...rest] : [];
    const { outcome } = await verdict({
      ...{ a, b: visits(B, 2, () => goes(true)) },
      head: ({ runId }) => (runId === A.runId ? { nextSequence: 6 } : {}),
    });
    expect(outcome).toBe('not-compared');
  });

  it('that ends otherwise is known to, however long its log is', async () => {
    const ends = async (status: Head['status']) =>
      verdict({
        ...{ a: streamed(A), b: streamed(B) },
        head: ({ runId }) => (runId === B.runId ? { status } : {}),
      });
    expect(await ends('failed')).toMatchObject({ outcome: 'failed' });
    expect(await ends('cancelled')).toMatchObject({
      outcome: 'outcome-changed',
      report: { changes: [{ pointer: '/status', before: '"completed"', after: '"cancelled"' }] },
    });
  });

  it('that was stopped came to what it was stopped for', async () => {
    const rows = { a: visits(A, 2, () => goes(true)), b: visits(B, 1, () => goes(true)) };
    expect(await verdict({ ...rows, stop: 'asks' })).toMatchObject({ outcome: 'asks' });
    expect(await verdict({ ...rows, stop: 'time-limit' })).toMatchObject({
      outcome: 'not-finished',
    });
  });

  it('is compared no further once whoever compares is to end', async () => {
    const a = visits(A, 600, () => goes(true));
    const gone = AbortSignal.abort(new Error('The worker ends.'));
    await expect(verdict({ a, b: a, signal: gone })).rejects.toThrow('The worker ends.');
  });
});
