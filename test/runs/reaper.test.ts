// The reaper's rounds (architecture §4) beside what cannot be read or asked about: whatever becomes of one run, the others
// are started, and no outage fails any.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { HostError, type ErrorCode } from '../../src/rules/errors.ts';
import { createLog } from '../../src/log/log.ts';
import type { Stores } from '../../src/ports/stores.ts';
import { createReaper, FAIL_AFTER_MS, type ReaperDeps } from '../../src/runs/reaper.ts';
import { newRun } from '../contract/given.ts';
import { openAnyStores, silentLogger } from '../support/log-parts.ts';
import { runRef } from '../support/run-ref.ts';

/** More than one round looks at. */
const MANY = 60;
const LATE_MS = FAIL_AFTER_MS * 2;
/** What has served its time is looked for once in an hour. */
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
  /** Rows that cannot be read, and what Temporal says to runs. */
  readonly unread?: ReadonlySet<string>;
  readonly refused?: ReadonlyMap<string, ErrorCode>;
  readonly isAway?: boolean;
  /** Expiry of what served its time. */
  readonly expire?: () => Promise<number>;
}

function reaper({ unread, refused, isAway = false, expire }: Played) {
  const ping = async () => {
    if (isAway) throw new HostError('service_unavailable');
  };
  const deps = {
    ...{
      config: {},
      logger: silentLogger,
      log: createLog({ stores, logger: silentLogger } as never),
    },
    stores: {
      ...stores,
      ping: async () => undefined,
      runs: {
        ...stores.runs,
        find: async (tenant: string, runId: string) => {
          if (unread?.has(runId)) throw new HostError('history_undecodable');
          return stores.runs.find(tenant, runId);
        },
      },
      ...(expire ? { idempotency: { ...stores.idempotency, expire } } : {}),
    },
    cohortEngine: { start: ping },
    engine: {
      ping,
      start: async ({ runId }: { readonly runId: string }) => {
        await ping();
        const code = refused?.get(runId);
        if (code) throw new HostError(code);
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
  it('a whole round of rows that cannot be read keeps none behind them from its start, and none fails', async () => {
    const unread = new Set<string>();
    for (let count = 0; count < MANY; count++) unread.add(await accepted());
    const behind = await accepted();
    const running = reaper({ unread });
    for (let round = 0; round < 2; round++) await running.round(atMs + LATE_MS);
    expect(started).toEqual([behind]);
    expect(new Set(await Promise.all([...unread].map(statusOf)))).toEqual(new Set(['pending']));
    // They can be read again: the next rounds begin anew.
    const later = reaper({});
    for (let round = 0; round < 2; round++) await later.round(atMs + LATE_MS);
    expect(new Set(started)).toEqual(new Set([behind, ...unread]));
  });

  // [I97]
  it('one that alone is answered by nobody keeps none behind it, and does not fail for it', async () => {
    const [alone, behind] = [await accepted(), await accepted()];
    const refused = new Map<string, ErrorCode>([[alone, 'service_unavailable']]);
    await reaper({ refused }).round(atMs + LATE_MS);
    expect(started).toEqual([behind]);
    expect(await statusOf(alone)).toBe('pending');
    await reaper({}).round(atMs + LATE_MS);
    expect(started).toEqual([behind, alone]);
  });

  it('what Temporal says no to fails; a key that is not to be had fails none', async () => {
    const [large, lost] = [await accepted(), await accepted()];
    const refused = new Map<string, ErrorCode>([
      [large, 'payload_too_large'],
      [lost, 'history_undecodable'],
    ]);
    await reaper({ refused }).round(atMs + LATE_MS);
    expect([await statusOf(large), await statusOf(lost)]).toEqual(['failed', 'pending']);
    await reaper({}).round(atMs + LATE_MS);
    expect(started).toEqual([lost]);
  });

  // [I97]
  it('a part of the round that fails keeps no other part from its turn', async () => {
    const run = await accepted();
    let expired = 0;
    const away = reaper({ isAway: true, expire: async () => expired++ });
    await away.round(DUE_MS);
    expect([expired, started]).toEqual([1, []]);
    const broken = reaper({
      expire: () => Promise.reject(new Error('this row cannot be deleted')),
    });
    await broken.round(DUE_MS);
    expect(started).toEqual([run]);
  });
});
