// The reaper's rounds (architecture §4) beside what cannot be read or asked about: whatever becomes of one run, the others
// are started, and no outage fails any.
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { databaseError } from '../../src/adapters/postgres/db.ts';
import { HostError } from '../../src/rules/errors.ts';
import { createLog } from '../../src/log/log.ts';
import type { Stores } from '../../src/ports/stores.ts';
import { createReaper, FAIL_AFTER_MS, type ReaperDeps } from '../../src/runs/reaper.ts';
import type { RunRef } from '../../src/ports/runs.ts';
import { newClaim, newRun } from '../contract/given.ts';
import { openAnyStores, silentLogger } from '../support/log-parts.ts';
import { runRef } from '../support/run-ref.ts';

/** More than one page. */
const MANY = 60;
const DUE_MS = 2 * 3_600_000;

let stores: Stores;
let atMs = 1;
beforeAll(async () => {
  stores = await openAnyStores();
});
afterAll(() => stores.close());
const started: string[] = [];
beforeEach(() => void started.splice(0));

async function accepted(): Promise<string> {
  const run = newRun({ createdAtMs: atMs++ });
  await stores.runs.accept(run);
  return run.runId;
}

interface Played {
  /** Rows that cannot be read. */
  readonly unread?: ReadonlySet<string>;
  /** What Temporal says to runs. */
  readonly answers?: ReadonlyMap<string, unknown>;
  readonly onStart?: (runId: string) => void;
  /** Each start waits for it. */
  readonly holds?: Promise<unknown>;
  readonly unstarted?: () => Promise<never>;
  readonly expireKeys?: (keptMs: number) => Promise<number>;
  readonly expireAgents?: () => Promise<number>;
  /** Refusals were noted so long ago, in ms. */
  readonly refusedMs?: number;
  readonly calmMs?: number;
  readonly ping?: () => Promise<void>;
  readonly unstartedMs?: number;
}

function reaper({ unread, answers, onStart, holds, unstarted, ...played }: Played) {
  const {
    expireKeys = async () => 0,
    expireAgents = async () => 0,
    refusedMs = 0,
    calmMs = 0,
  } = played;
  const { ping = async () => undefined } = played;
  const log = createLog({ stores, logger: silentLogger } as never);
  const deps = {
    ...{ config: {}, logger: silentLogger, log, unstartedMs: played.unstartedMs, calmMs },
    stores: {
      ...stores,
      ping,
      runs: {
        ...stores.runs,
        ...(unstarted ? { unstarted } : {}),
        noteRefusal: async (run: RunRef, apartMs: number) =>
          (await stores.runs.noteRefusal(run, apartMs)) + refusedMs,
        find: async (tenant: string, runId: string) => {
          if (unread?.has(runId)) throw new HostError('history_undecodable');
          return stores.runs.find(tenant, runId);
        },
      },
      idempotency: { ...stores.idempotency, expire: expireKeys },
      agents: { ...stores.agents, expire: expireAgents },
    },
    cohortEngine: { start: ping },
    engine: {
      ping,
      start: async ({ runId }: { readonly runId: string }) => {
        onStart?.(runId);
        await holds;
        const answer = answers?.get(runId);
        if (answer !== undefined) throw answer as Error;
        started.push(runId);
        return { temporalRunId: `t-${runId}` };
      },
    },
  };
  return createReaper(deps as unknown as ReaperDeps);
}

const statusOf = async (runId: string) => (await stores.log.head(runRef(runId)))?.status;

describe('the reaper', () => {
  // [I97]
  it('pages of rows that cannot be read keep none behind them from its start, and none fails', async () => {
    const unread = new Set<string>();
    for (let count = 0; count < MANY; count++) unread.add(await accepted());
    const behind = await accepted();
    const running = reaper({ unread });
    await running.round();
    expect(started).toEqual([behind]);
    expect(new Set(await Promise.all([...unread].map(statusOf)))).toEqual(new Set(['pending']));
    // They can be read again.
    const later = reaper({});
    await later.round();
    expect(new Set(started)).toEqual(new Set([behind, ...unread]));
  });

  // [I97]
  it('one that alone is answered by nobody keeps none behind it, and does not fail for it', async () => {
    const [alone, behind] = [await accepted(), await accepted()];
    const answers = new Map([[alone, new HostError('service_unavailable')]]);
    await reaper({ answers }).round();
    expect(started).toEqual([behind]);
    expect(await statusOf(alone)).toBe('pending');
    await reaper({}).round();
    expect(started).toEqual([behind, alone]);
  });

  it('what Temporal says no to fails; a key that is not to be had, or a damaged table, fails none', async () => {
    const runIds = [await accepted(), await accepted(), await accepted()] as const;
    const [large, lost, damaged] = runIds;
    const answers = new Map<string, Error>([
      [large, new HostError('payload_too_large')],
      [lost, new HostError('history_undecodable')],
      // As the codec asks about keys.
      [damaged, databaseError({ code: 'XX001', message: 'invalid page in block 7' })],
    ]);
    const states = () => Promise.all(runIds.map(statusOf));
    await reaper({ answers }).round();
    expect(await states()).toEqual(['pending', 'pending', 'pending']);
    await reaper({ answers, refusedMs: FAIL_AFTER_MS }).round();
    expect(await states()).toEqual(['failed', 'pending', 'pending']);
    await reaper({}).round();
    expect(started).toEqual([lost, damaged]);
  });

  it('what this host did not expect of a start fails the run: it would be so again', async () => {
    const odd = await accepted();
    const answers = new Map([[odd, new TypeError('odd')]]);
    await reaper({ answers, refusedMs: FAIL_AFTER_MS / 2 }).round();
    expect(await statusOf(odd)).toBe('pending');
    await reaper({ answers, refusedMs: FAIL_AFTER_MS }).round();
    expect(await statusOf(odd)).toBe('failed');
  });

  it('a refusal counts from when it came first, whatever was away before, and however old the run is', async () => {
    const run = await accepted();
    const away = new Map([[run, new HostError('service_unavailable')]]);
    await reaper({ answers: away, refusedMs: FAIL_AFTER_MS }).round();
    // A server that is just back knows little for a moment.
    const refused = new Map([[run, new HostError('internal_error')]]);
    await reaper({ answers: refused }).round();
    expect(await statusOf(run)).toBe('pending');
    await reaper({}).round();
    expect(started).toEqual([run]);
  });

  it('a refusal that comes soon after an outage fails none, however long it was refused before', async () => {
    const run = await accepted();
    const answers = new Map([[run, new HostError('service_unavailable')]]);
    let isAway = true;
    const ping = async () => {
      if (isAway) throw new HostError('service_unavailable');
    };
    const clock = vi.spyOn(performance, 'now');
    try {
      let nowMs = 0;
      clock.mockImplementation(() => nowMs);
      const running = reaper({ answers, refusedMs: FAIL_AFTER_MS, calmMs: FAIL_AFTER_MS, ping });
      nowMs = FAIL_AFTER_MS;
      await running.round();
      [isAway, nowMs] = [false, 2 * FAIL_AFTER_MS - 1];
      answers.set(run, new HostError('internal_error'));
      await running.round();
      expect(await statusOf(run)).toBe('pending');
      nowMs = 2 * FAIL_AFTER_MS;
      for (let rounds = 0; rounds < 3; rounds++) await running.round();
      expect(await statusOf(run)).toBe('failed');
    } finally {
      clock.mockRestore();
    }
  });

  it('a clock of this process that is ahead starts nothing sooner, and deletes no key', async () => {
    const claim = newClaim();
    const owner = await stores.idempotency.claim('default', claim, 1_000);
    const answer = { status: 200, body: {} };
    if (owner.kind === 'claimed')
      await stores.idempotency.complete('default', claim, owner.owner, answer);
    const [young, ahead] = [newRun(), newRun({ createdAtMs: Date.now() + DUE_MS })];
    for (const run of [young, ahead]) await stores.runs.accept(run);
    const clock = vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 30 * DUE_MS);
    try {
      await reaper({ expireKeys: (keptMs) => stores.idempotency.expire(keptMs) }).round();
    } finally {
      clock.mockRestore();
    }
    // What another process dated ahead waits for no clock.
    expect(started).toEqual([ahead.runId]);
    expect(await stores.idempotency.find('default', claim)).toMatchObject({ kind: 'replay' });
    await reaper({ unstartedMs: 0 }).round();
  });

  // [I97]
  it('goes on behind what it looked at when its time is over, and begins anew behind the last', async () => {
    const [first, second] = [await accepted(), await accepted()];
    const asked: string[] = [];
    const clock = vi.spyOn(performance, 'now');
    try {
      let nowMs = 0;
      clock.mockImplementation(() => nowMs);
      const running = reaper({
        answers: new Map([
          [first, new HostError('history_undecodable')],
          [second, new HostError('history_undecodable')],
        ]),
        onStart: (runId) => {
          asked.push(runId);
          nowMs += 60_000;
        },
      });
      for (let round = 0; round < 4; round++) await running.round();
    } finally {
      clock.mockRestore();
    }
    expect(asked).toEqual([first, second, first, second]);
    await reaper({}).round();
  });

  it('does not begin a round while one is under way, and a stop ends that behind its run', async () => {
    const runs = [await accepted(), await accepted(), await accepted()];
    let begun = (): void => undefined;
    const isBegun = new Promise<void>((resolve) => (begun = resolve));
    const running = reaper({
      onStart: () => begun(),
      holds: new Promise((resolve) => void isBegun.then(() => setImmediate(resolve))),
    });
    const round = running.round();
    await isBegun;
    await running.stop();
    await round;
    expect(started).toEqual([runs[0]]);
    await reaper({}).round();
    expect(new Set(started)).toEqual(new Set(runs));
  });

  // [I97]
  it('each part of a round has its turn, whatever becomes of those before it', async () => {
    const deleted: string[] = [];
    const broken = () => Promise.reject(new Error('this row cannot be read'));
    const running = reaper({
      unstarted: broken,
      expireKeys: broken,
      expireAgents: async () => deleted.push('agents'),
    });
    await running.round();
    expect(deleted).toEqual(['agents']);
  });
});
