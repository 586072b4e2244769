// What a member of a cohort came to (architecture §6): decisions and ends are compared whole, however long the logs are, and
// what was not compared is told as that.
import { describe, expect, it } from 'vitest';
import type { Head, LogRow } from '../../src/ports/log.ts';
import type { RunRow } from '../../src/ports/runs.ts';
import type { MemberStop } from '../../src/rules/cohort.ts';
import type { ForkOf } from '../../src/rules/run-input.ts';
import { EMPTY_RUN } from '../../src/log/fold-rows.ts';
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
  /** Before each page. */
  readonly read?: () => void;
}

function parts({ a, b, mode = 'branch', stop, head = () => ({}), read = () => undefined }: Given) {
  const { log } = depsOf(a, b, head);
  const content = { get: async () => Promise.reject(new Error('no manifest is read')) };
  /** By the source's id, which stands for what is to come before it is found. */
  const finds = new Map<string, () => Promise<unknown>>();
  const verdicts = createVerdicts({
    log: {
      fresh: log.fresh,
      rows: (...asked: Parameters<typeof log.rows>) => (read(), log.rows(...asked)),
    },
    stores: {
      content,
      runs: {
        find: async (_tenant: string, runId: string) => {
          await finds.get(runId)?.();
          return A;
        },
      },
    },
    redactor: { json: <Value>(value: Value): Value => value },
  });
  const fork = { ...B, input: { ...B.input, fork: { ...FORK_OF, mode } } };
  const of = (before?: () => Promise<unknown>) => {
    const sourceRunId = `source-${finds.size}`;
    finds.set(sourceRunId, before ?? (async () => undefined));
    return { name: NAME, member: { ...MEMBER, sourceRunId, ...(stop ? { stop } : {}) }, fork };
  };
  return { verdicts, of };
}

function verdict(given: Given) {
  const { verdicts, of } = parts(given);
  return verdicts.of(of(), given.signal);
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

const AT = { nodeId: 'n', visit: 1 };
const goes = (go: boolean, more: object = {}) => ({ decision: { go, ...more } });

// [I111]
describe('a member of a cohort', () => {
  it('of 600 visits the 550th is decided otherwise: another outcome, told with its values', async () => {
    const a = visits(A, 600, () => goes(true));
    const b = visits(B, 600, (visit) => goes(visit !== 550));
    const { outcome, report } = await verdict({ a, b });
    expect(outcome).toBe('outcome-changed');
    expect(report.changes).toEqual([
      { ...AT, visit: 550, pointer: '/decisions/0/decision/go', before: 'true', after: 'false' },
    ]);
    expect(report.divergence).toMatchObject({ seq: 549 * 3 + 1, type: 'agent.decided' });
  });

  it('one fact beyond 10,000 differs: a branch that did the same is the same, a replay diverged', async () => {
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
      [{ ...AT, pointer: '/decisions/59/decision/go', before: 'true', after: 'false' }],
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
    expect(change).toMatchObject({ ...AT, pointer: '/decisions/0/decision' });
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
        ...{ ...AT, visit: 4_990, pointer: '/decisions' },
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
      [{ ...AT, visit: 2, pointer: '/status', before: '"completed"' }],
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

  it('nor one that is too large, on either side; and no more of it is read', async () => {
    const payload = JSON.stringify({ v: 'x'.repeat(4 * 1024 * 1024) });
    const large = (run: RunRow) =>
      rowsOf(
        run,
        Array.from({ length: 20 }, () => payload),
      );
    for (const [a, b] of [
      [large(A), []],
      [[], large(B)],
    ] as const) {
      let pages = 0;
      const { outcome, report } = await verdict({ a, b, read: () => void pages++ });
      expect([outcome, pages < 15]).toEqual(['not-compared', true]);
      expect(report.error?.message).toContain(
        'too long to be compared. Compared are logs of up to 100,000 events, 32 Mi characters and 8 Mi of streamed text.',
      );
    }
  });

  it('whose log, or that of its source, is not there as a whole lacks its source; one that has not ended is looked at again', async () => {
    const a = visits(A, 2, () => goes(true));
    const given = (head: Partial<Head>) =>
      verdict({
        ...{ a, b: visits(B, 2, () => goes(true)) },
        head: ({ runId }) => (runId === A.runId ? head : {}),
      });
    await expect(given({ nextSequence: 7 })).rejects.toMatchObject({ code: 'history_missing' });
    const gap = verdict({ a: a.filter(({ sequence }) => sequence !== 2), b: a });
    await expect(gap).rejects.toMatchObject({ code: 'history_missing' });
    await expect(given({ closed: false })).rejects.toMatchObject({ code: 'service_unavailable' });
  });

  it('that ends otherwise is told so, however long its log is: in its status, and in values that hold no id', async () => {
    const ends = (of: Partial<Head>, otherwise: Partial<Head>) =>
      verdict({
        ...{ a: streamed(A), b: streamed(B) },
        head: ({ runId }) => (runId === B.runId ? otherwise : of),
      });
    expect(await ends({}, { status: 'failed' })).toMatchObject({ outcome: 'failed' });
    expect(await ends({}, { status: 'cancelled' })).toMatchObject({
      outcome: 'not-compared',
      report: { changes: [{ pointer: '/status', before: '"completed"', after: '"cancelled"' }] },
    });
    const puts = (variables: object) => ({ snapshot: { ...EMPTY_RUN, variables } }) as never;
    const call = (letter: string) => `of call-${letter.repeat(27)}`;
    const other = await ends(puts({ v: 1, id: call('a') }), puts({ v: 2, id: call('b') }));
    expect(other.report.changes).toEqual([{ pointer: '/variables/v', before: '1', after: '2' }]);
  });

  it('whose record lacked what a call of it needed has no source', async () => {
    const lacking = (run: RunRow, error: object | undefined) => {
      const told: [string, object][] = [
        ['node.started', { attempt: 0 }],
        ['agent.toolCalled', { callId: 'c', toolName: 't', inputs: {} }],
        ['agent.toolReturned', { callId: 'c', toolName: 't', ...(error ? { error } : {}) }],
        ['node.completed', { outputs: {} }],
      ];
      const rows = rowsOf(
        run,
        told.map(([, payload]) => JSON.stringify(payload)),
      );
      return rows.map((row, at) => ({ ...row, type: told[at]?.[0] ?? '' }));
    };
    const error = { code: 'replay_source_missing', message: 'x'.repeat(1_000) };
    const { outcome } = await verdict({ a: lacking(A, undefined), b: lacking(B, error) });
    expect(outcome).toBe('source-missing');
  });

  it('whose ids are other ones, also where a stream is cut within one, says the same', async () => {
    const told = (run: RunRow, letter: string, cut: number) => {
      const callId = `call-${letter.repeat(27)}`;
      const text = `${callId} of ${run.runId}.`;
      const called = rowsOf(run, [JSON.stringify({ callId })], 'agent.toolCalled');
      const pieces = [text.slice(0, cut), text.slice(cut)].map((chunk) =>
        JSON.stringify({ chunk }),
      );
      const streamed = rowsOf(run, pieces, 'output.chunk').map((row, at) => ({
        ...{ ...row, key: `n/1/0/i#d${at}` },
      }));
      const asks = rowsOf(run, [JSON.stringify({ data: { callId, run: run.runId } })], 'x.asks');
      return [...called, ...streamed, ...asks].map((row, sequence) => ({
        ...{ ...row, sequence, key: row.type === 'x.asks' ? 'asks' : row.key },
      }));
    };
    const [a, b] = [told(A, 'a', 50), told(B, 'b', 10)];
    expect(await verdict({ a, b, mode: 'replay' })).toMatchObject({ outcome: 'same' });
    const other = told(B, 'c', 10).map((row) =>
      row.key === 'asks' ? { ...row, payload: b.at(-1)?.payload ?? '' } : row,
    );
    expect(await verdict({ a, b: other, mode: 'replay' })).toMatchObject({ outcome: 'diverged' });
  });

  it('that was asked with another prompt, and did the same, is the same', async () => {
    const asked = (run: RunRow, hash: string) => {
      const [started, ...rest] = visits(run, 1, () => goes(true));
      const [prompt] = rowsOf(run, [JSON.stringify({ hash })], 'prompt.composed');
      const rows = [started, prompt && { ...prompt, key: 'prompt' }, ...rest];
      return rows.flatMap((row, sequence) => (row ? [{ ...row, sequence }] : []));
    };
    expect(await verdict({ a: asked(A, 'one'), b: asked(B, 'two') })).toMatchObject({
      ...{ outcome: 'same', report: { before: { status: 'completed' } } },
    });
  });

  it('that was stopped came to what it was stopped for', async () => {
    const rows = { a: visits(A, 2, () => goes(true)), b: visits(B, 1, () => goes(true)) };
    expect(await verdict({ ...rows, stop: 'asks' })).toMatchObject({ outcome: 'asks' });
    expect(await verdict({ ...rows, stop: 'time-limit' })).toMatchObject({
      outcome: 'not-finished',
    });
  });

  it('lets others have their turn: pages are small where rows are large', async () => {
    const large = JSON.stringify({ v: 'x'.repeat(200_000) });
    const rows = (run: RunRow) =>
      rowsOf(
        run,
        Array.from({ length: 40 }, () => large),
      );
    let pages = 0;
    await verdict({ a: rows(A), b: rows(B), read: () => void pages++ });
    const small = (run: RunRow) =>
      rowsOf(
        run,
        Array.from({ length: 40 }, () => '{}'),
      );
    let few = 0;
    await verdict({ a: small(A), b: small(B), read: () => void few++ });
    expect([pages > 60, few < 30]).toEqual([true, true]);
  });

  it('is compared no further once whoever compares is to end', async () => {
    const a = visits(A, 600, () => goes(true));
    const ends = new AbortController();
    const read = verdict({
      a,
      b: a,
      signal: ends.signal,
      read: () => ends.abort(new Error('Ends.')),
    });
    await expect(read).rejects.toThrow('Ends.');
    const gone = AbortSignal.abort(new Error('The worker ends.'));
    await expect(verdict({ a, b: a, signal: gone })).rejects.toThrow('The worker ends.');
  });

  it('has its turn after those before it, whatever becomes of them; who is to end waits for none', async () => {
    const rows = { a: visits(A, 1, () => goes(true)), b: visits(B, 1, () => goes(true)) };
    const { verdicts, of } = parts(rows);
    let goOn = (): void => undefined;
    const held = new Promise<void>((resolve) => (goOn = resolve));
    const order: string[] = [];
    const first = verdicts.of(of(() => held)).finally(() => order.push('first'));
    const second = verdicts.of(of(() => Promise.reject(new Error('A fault.'))));
    const third = verdicts.of(of()).finally(() => order.push('third'));
    const ends = new AbortController();
    const leaving = verdicts.of(of(), ends.signal);
    ends.abort(new Error('Ends.'));
    await expect(leaving).rejects.toThrow('Ends.');
    expect(order).toEqual([]);
    goOn();
    await expect(second).rejects.toThrow('A fault.');
    expect((await third).outcome).toBe('same');
    await first;
    expect(order).toEqual(['first', 'third']);
  });
});
