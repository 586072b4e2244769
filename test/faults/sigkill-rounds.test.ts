// Nothing is lost by crashes (architecture §5, §8): seeded rounds that SIGKILL worker, facade, Temporal's dev server
// and PostgreSQL at random points of runs with parallel branches, deltas, ledgered effects and human waits.
// `npm test` plays four fixed rounds; `npm run campaign -- sigkill` plays more. OPENWOP_FAULT_SEED is the seed of the first
// round and OPENWOP_FAULT_ROUNDS their number; with a seed alone, that round is played again.
import assert from 'node:assert/strict';
import pg from 'pg';
import { describe, expect, it } from 'vitest';
import { createEncryption } from '../../src/adapters/temporal/codec.ts';
import { ringOf } from '../../src/rules/key-ring.ts';
import { connectTemporal } from '../../src/adapters/temporal/connection.ts';
import { createHistoryReader } from '../../src/adapters/temporal/history.ts';
import { rebuildAll } from '../../src/log/rebuild.ts';
import { patientClient, type PatientClient } from '../support/faults/client.ts';
import {
  doubtsOf,
  expectInvariants,
  expectNone,
  playInLanes,
  type Played,
} from '../support/faults/lanes.ts';
import {
  checkEffects,
  leavesDoubt,
  plansFrom,
  playRound,
  type Plan,
} from '../support/faults/round.ts';
import { crash, type FaultSystem, type Half } from '../support/faults/system.ts';
import { withFaultSystem } from '../support/faults/with-system.ts';
import { neverByChance } from '../support/broken.ts';
import { silentLogger } from '../support/log-parts.ts';
import { patient } from '../support/machine.ts';

const { OPENWOP_FAULT_SEED: SEED, OPENWOP_FAULT_ROUNDS: NUMBER } = process.env;
/**
 * The worker dies in a payment and leaves a doubt; the facade dies while a run is created, and while one is answered;
 * Temporal and PostgreSQL die at once.
 */
const GATE_SEEDS = [143, 113, 154, 185];
const PLANS: readonly Plan[] =
  SEED === undefined
    ? GATE_SEEDS.flatMap((seed) => plansFrom(seed, 1))
    : plansFrom(Number(SEED), Number(NUMBER ?? 1));
const ROUNDS = PLANS.length;
/** Rounds under way at once: their runs suffer each other's crashes, too. */
const LANES = 3;
const START_LIMIT_MS = patient(120_000);
/** Per round, with everything that recovery may take on a busy machine. */
const ROUND_LIMIT_MS = patient(60_000);
const CHECK_LIMIT_MS = patient(10_000);

let system: FaultSystem;
let halves: { worker: Half; facade: Half };
let client: PatientClient;
const played: Played[] = [];
let doubtsRaised = 0;

withFaultSystem(async (started) => {
  system = started;
  const [worker, facade] = await Promise.all([system.start('worker'), system.start('serve')]);
  halves = { worker, facade };
  client = patientClient(facade.url);
});

let lastCrash: Promise<void> = Promise.resolve();
/** Crashes of different rounds follow each other. */
function crashInTurn(plan: Parameters<typeof crash>[2]): Promise<void> {
  lastCrash = lastCrash.then(() => crash(system, halves, plan));
  return lastCrash;
}

async function round(plan: Plan): Promise<void> {
  const { effects } = system;
  const startedMs = Date.now();
  const runs = await playRound(plan, { client, effects, crash: crashInTurn });
  played.push({ seed: plan.seed, runIds: runs.map(({ runId }) => runId) });
  for (const run of runs) {
    const doubts = await doubtsOf(client, run.runId);
    await neverByChance(() => checkEffects(run, effects, doubts));
  }
  const doubts = runs.reduce((sum, run) => sum + run.doubts, 0);
  doubtsRaised += doubts;
  const crashes = plan.crashes.map(({ moment, victims }) => [Object.values(moment), victims]);
  const tookMs = Date.now() - startedMs;
  console.log(JSON.stringify({ seed: plan.seed, tookMs, runs: runs.length, doubts, crashes }));
}

type Rows = Record<string, unknown>[];

/** What is in both tables, and then nothing. */
async function dropLog(db: pg.Client): Promise<{ events: Rows; heads: Rows }> {
  const events = await db.query<Rows[number]>('SELECT * FROM run_events ORDER BY run_id, sequence');
  const heads = await db.query<Rows[number]>('SELECT * FROM run_heads ORDER BY run_id');
  await db.query('TRUNCATE run_events, run_heads');
  return { events: events.rows, heads: heads.rows };
}

describe('architecture §8 SIGKILL rounds', () => {
  it.runIf(SEED === undefined)('the fixed rounds hit each part, and leave a doubt', () => {
    const hits = PLANS.map(({ crashes }) =>
      crashes.map(({ moment, victims }) => [moment.kind, [...victims].sort().join()]),
    );
    expect(hits).toEqual([
      [['effect', 'worker']],
      [['creating', 'facade']],
      [['answering', 'facade']],
      [['clock', 'postgres,temporal']],
    ]);
    expect(PLANS.map(leavesDoubt)).toEqual([true, false, false, false]);
  });

  it(
    `${ROUNDS} seeded rounds: every run ends, effects keep their promises`,
    { timeout: START_LIMIT_MS + ROUNDS * ROUND_LIMIT_MS },
    async () => {
      const failures = await playInLanes(PLANS, LANES, round);
      const { worker, facade } = halves;
      await expectNone([...worker.deaths, ...facade.deaths, ...failures]);
      if (PLANS.some(leavesDoubt)) expect(doubtsRaised).toBeGreaterThan(0);
    },
  );

  it(
    'the invariants hold of every run, when all is quiet',
    { timeout: START_LIMIT_MS + ROUNDS * CHECK_LIMIT_MS },
    async () => {
      await lastCrash;
      await expectInvariants(system, played);
    },
  );

  it('architecture §3.6: the log, dropped, comes back byte for byte', async () => {
    // No process may write while the tables are away.
    await Promise.all([halves.worker.kill(), halves.facade.kill()]);
    const connection = connectTemporal(system.temporal);
    const { namespace } = system.temporal;
    const history = createHistoryReader({
      connection,
      namespace,
      codec: createEncryption({ ring: ringOf([]) }),
    });
    const db = new pg.Client({ connectionString: system.databaseUrl });
    await db.connect();
    try {
      const before = await dropLog(db);
      const { stores } = system;
      const parts = { stores, history, logger: silentLogger };
      const { rebuilt, refused } = await rebuildAll(parts);
      expect(refused).toEqual([]);
      expect(rebuilt).toBe(before.heads.length);
      const after = await dropLog(db);
      // The page token of a live head is a place to read on, not content.
      const content = (heads: Rows) => heads.map(({ token: _, ...head }) => head);
      await neverByChance(() => {
        assert.deepEqual(after.events, before.events);
        assert.deepEqual(content(after.heads), content(before.heads));
        // Retries with the same key started no second run.
        expect(before.heads.map(({ run_id }) => run_id)).toEqual(
          played.flatMap(({ runIds }) => runIds).sort(),
        );
      });
    } finally {
      await db.end();
      await history.close();
      await connection.close();
    }
  });
});
