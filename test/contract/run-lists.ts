// Lists of runs as people see them (architecture §3.3): by what each waits for, from summaries that appends keep.
import { describe, expect, it } from 'vitest';
import { overview, waitingRuns } from '../../src/log/overview.ts';
import { askedInterrupts, fold, summaryOf } from '../../src/log/fold.ts';
import type { AppendBatch } from '../../src/ports/log.ts';
import type { OverviewQuery } from '../../src/ports/runs.ts';
import type { InterruptKind } from '../../src/rules/status.ts';
import { NO_WAITS, batchAfter, entry, headOf, newId, newRun, refTo, startedRun } from './given.ts';
import type { GivenStores } from './given.ts';

interface Asking {
  readonly kind?: InterruptKind;
  readonly atMs?: number;
  readonly timeoutMs?: number;
  readonly status?: AppendBatch['status'];
  readonly title?: string;
}

export function runListsContract(stores: GivenStores): void {
  const append = async (runId: string, rows: AppendBatch['rows'], over: Partial<AppendBatch>) => {
    const ref = refTo(runId);
    const row = await stores().runs.find(ref.tenant, runId);
    const batch = batchAfter(await headOf(stores(), runId), rows, {
      fold,
      summary: (snapshot) => summaryOf(snapshot, row),
      ...over,
    });
    return stores().log.append(batch);
  };
  const ask = async (runId: string, asking: Asking = {}): Promise<void> => {
    const { kind = 'approval', atMs = 1_000, timeoutMs, title = 'May I?', status } = asking;
    const name = newId('int');
    const row = (key: string, type: string, payload: object) =>
      entry(runId, `${name}-${key}`, {
        ...{ type, nodeId: 'gate', payload: JSON.stringify(payload), timestampMs: atMs },
      });
    const rows = [
      row('s', 'node.suspended', { nodeId: 'gate', interruptId: name, kind, key: name }),
      row('q', 'interrupt.requested', { kind, key: name, data: { title, large: 'x' }, timeoutMs }),
    ];
    await append(runId, rows, { status: status ?? 'waiting-approval' });
  };
  const asked = async (tenant: string, query: Partial<OverviewQuery> = {}) =>
    overview(stores().runs, tenant, { waiting: true, limit: 50, ...query });
  const countOf = async (tenant: string, countTo: number) =>
    (await waitingRuns(stores().runs, tenant, { limit: 1, countTo })).count;
  const waitingIds = async (tenant: string) => (await asked(tenant)).runs.map(({ runId }) => runId);

  describe('architecture §3.3 lists of runs', () => {
    it('each run with its name, its times, and the titles of what it asks', async () => {
      const tenant = newId('tenant');
      const run = newRun({ tenant, workflowId: 'refund' });
      const { input } = run;
      const named = { ...input.definition, settings: {}, name: '<b>Refund</b> "desk"\u0000 \\ ü' };
      const runId = await startedRun(stores(), { ...run, input: { ...input, definition: named } });
      const started = entry(runId, 'started', {
        ...{ type: 'run.started', payload: '{"inputs":{}}', timestampMs: 900 },
      });
      await append(runId, [started], { status: 'running' });
      await ask(runId, { timeoutMs: 50, title: `t\u0000${'x'.repeat(1_000)}` });
      const { runs } = await overview(stores().runs, tenant, { limit: 10 });
      expect(runs).toMatchObject([
        {
          ...{ runId, workflowId: 'refund', status: 'waiting-approval', tags: ['t1'] },
          ...{ workflowName: '<b>Refund</b> "desk" \\ ü' },
          summary: {
            startedAtMs: 900,
            waits: [{ nodeId: 'gate', nodeName: 'gate', kind: 'approval', deadlineMs: 1_050 }],
          },
        },
      ]);
      const [wait] = runs[0]?.summary.waits ?? [];
      expect(Object.keys(wait?.data ?? {})).toEqual(['title']);
      expect(wait?.data.title).toHaveLength(300);
    });

    // [I57]
    it('what a list tells of a run is what its snapshot tells: status, questions, and until when', async () => {
      const tenant = newId('tenant');
      const { input } = newRun({ tenant });
      const ofOneSecond = { ...input, definition: { ...input.definition, settings: {} } };
      const given: readonly Asking[] = [
        // By the question's own time, then by the run's, which is over sooner.
        { timeoutMs: 50 },
        { timeoutMs: 600_000 },
        {},
        { status: 'paused', timeoutMs: 1 },
      ];
      const untilMs = new Map<string, readonly number[]>();
      for (const [at, asking] of given.entries()) {
        const runId = await startedRun(stores(), { tenant, input: ofOneSecond });
        const started = entry(runId, 'started', {
          ...{ type: 'run.started', payload: '{"inputs":{}}', timestampMs: 900 },
        });
        await append(runId, [started], { status: 'running' });
        await ask(runId, asking);
        untilMs.set(runId, [[1_050], [1_900], [1_900], []][at] ?? []);
      }
      const { runs } = await overview(stores().runs, tenant, { limit: 10 });
      expect(runs).toHaveLength(given.length);
      for (const { runId, status, summary } of runs) {
        const head = await headOf(stores(), runId);
        const row = await stores().runs.find(tenant, runId);
        const asked = row ? askedInterrupts(head, row) : [];
        const facts = (one: { interruptId: string; deadlineMs?: number }) =>
          [one.interruptId, one.deadlineMs] as const;
        expect([status, summary.waits.map(facts)]).toEqual([head.status, asked.map(facts)]);
        expect(asked.map(({ deadlineMs }) => deadlineMs)).toEqual(untilMs.get(runId));
      }
    });

    it('a run that no row was written of yet has nothing to tell', async () => {
      const tenant = newId('tenant');
      await stores().runs.accept(newRun({ tenant }));
      const { runs } = await overview(stores().runs, tenant, { limit: 10 });
      expect(runs).toMatchObject([{ status: 'pending', summary: { waits: [] } }]);
    });

    it('what waits: the soonest deadline first, then the oldest question, then no deadline', async () => {
      const tenant = newId('tenant');
      const given: Asking[] = [
        {},
        { timeoutMs: 500 },
        { timeoutMs: 100 },
        { atMs: 900, timeoutMs: 200 },
      ];
      const ids: string[] = [];
      for (const asking of given) {
        const runId = await startedRun(stores(), { tenant });
        ids.push(runId);
        await ask(runId, asking);
      }
      const order = [ids[3], ids[2], ids[1], ids[0]];
      expect(await waitingIds(tenant)).toEqual(order);
      expect(await countOf(tenant, 3)).toBe(3);
      expect(await countOf(tenant, 100)).toBe(4);
      expect(await waitingIds(newId('tenant'))).toEqual([]);
    });

    it('its pages have neither gap nor repeat while runs begin to wait', async () => {
      const tenant = newId('tenant');
      const begin = async (timeoutMs: number) => {
        const runId = await startedRun(stores(), { tenant });
        await ask(runId, { timeoutMs });
        return runId;
      };
      const ids = [await begin(10), await begin(20), await begin(20), await begin(40)];
      const first = await asked(tenant, { limit: 2 });
      await begin(1);
      const later = await begin(30);
      const second = await asked(tenant, { limit: 2, cursor: first.nextCursor });
      const third = await asked(tenant, { limit: 2, cursor: second.nextCursor });
      const seen = [first, second, third].flatMap(({ runs }) => runs.map(({ runId }) => runId));
      expect(seen.slice(0, 1)).toEqual(ids.slice(0, 1));
      expect(new Set(seen)).toEqual(new Set([...ids, later]));
      expect(seen).toHaveLength(5);
      expect(third.nextCursor).toBeUndefined();
    });

    it('only what waits for a person; and what a paused run asks, for as long as its time lasts', async () => {
      const tenant = newId('tenant');
      const run = async (asking: Asking) => {
        const runId = await startedRun(stores(), { tenant });
        await ask(runId, asking);
        return runId;
      };
      await run({ kind: 'external-event', status: 'waiting-external' });
      await run({ status: 'paused', timeoutMs: 1 });
      const over = await run({ timeoutMs: 1 });
      const paused = await run({ status: 'paused', atMs: Date.now(), timeoutMs: 600_000 });
      const both = await run({ kind: 'external-event', status: 'waiting-external' });
      await ask(both, { status: 'waiting-external' });
      expect(await waitingIds(tenant)).toEqual([over, paused, both]);
      expect(await countOf(tenant, 100)).toBe(3);
      const { runs } = await overview(stores().runs, tenant, { status: 'paused', limit: 10 });
      expect(runs.map(({ summary }) => summary.waits.length)).toEqual([1, 0]);
    });

    it('an answer and an end take a run from what waits', async () => {
      const tenant = newId('tenant');
      const [answered, ended] = [
        await startedRun(stores(), { tenant }),
        await startedRun(stores(), { tenant }),
      ];
      await ask(answered);
      await ask(ended);
      const [open] = (await asked(tenant)).runs.find(({ runId }) => runId === answered)?.summary
        .waits ?? [{ interruptId: '' }];
      const { interruptId } = open ?? {};
      const resolved = entry(answered, 'r', {
        ...{ type: 'interrupt.resolved', payload: JSON.stringify({ nodeId: 'gate', interruptId }) },
      });
      await append(answered, [resolved], { status: 'running' });
      const done = entry(ended, 'terminal', { type: 'run.cancelled', payload: '{}' });
      await append(ended, [done], { status: 'cancelled', closed: true });
      expect(await waitingIds(tenant)).toEqual([]);
      const { runs } = await overview(stores().runs, tenant, { status: 'cancelled', limit: 10 });
      expect(runs).toMatchObject([{ runId: ended, summary: { endedAtMs: 1000, waits: [] } }]);
    });

    it('a rebuilt run is told of anew', async () => {
      const tenant = newId('tenant');
      const runId = await startedRun(stores(), { tenant });
      await ask(runId);
      const head = await headOf(stores(), runId);
      const rows = await stores().log.read(refTo(runId), { after: -1, limit: 100 });
      const snapshot = fold(null, []);
      await stores().log.restore(
        refTo(runId),
        { summary: NO_WAITS, head: { ...head, snapshot }, rows },
        head,
      );
      expect(await waitingIds(tenant)).toEqual([]);
    });

    it.each(['', 'x', 'bnVsbA', Buffer.from('[1,"a"]').toString('base64url')])(
      'rest-endpoints.md: the cursor %j of another order is refused with validation_error',
      async (cursor) => {
        await expect(asked('default', { cursor })).rejects.toMatchObject({
          code: 'validation_error',
        });
      },
    );
  });
}
