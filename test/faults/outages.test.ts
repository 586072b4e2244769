// Outages of what the host stands on (architecture §4.1): PostgreSQL is gone, silent or full while agents think, tools pay,
// forks play, children begin and a cohort replays. No run fails for it, nothing is paid twice, and one worker that loses it
// leaves its work to the others. `npm run campaign -- outages` takes longer ones; OPENWOP_OUTAGE_SECONDS says how long.
import { Client } from '@temporalio/client';
import pg from 'pg';
import { afterAll, describe, expect, it } from 'vitest';
import type { Cohort } from '../../schemas/types.generated.ts';
import { connectTemporal } from '../../src/adapters/temporal/connection.ts';
import { freePort } from '../../src/adapters/temporal/dev-server.ts';
import { neverByChance } from '../support/broken.ts';
import { patientClient, type PatientClient } from '../support/faults/client.ts';
import { eventsOf } from '../support/faults/lanes.ts';
import { startProxy, type Proxy } from '../support/faults/proxy.ts';
import { sayYesToEnd } from '../support/faults/say-yes.ts';
import { FAMILY, PAY, SCENE, SPEECH } from '../support/faults/scene.ts';
import { type FaultSystem, type Half } from '../support/faults/system.ts';
import { withFaultSystem } from '../support/faults/with-system.ts';
import { until } from '../support/host.ts';
import { checkInvariants } from '../support/invariants.ts';
import { patient } from '../support/machine.ts';
import { quietFor } from '../support/waiting.ts';

const SECONDS = (process.env.OPENWOP_OUTAGE_SECONDS ?? '5').split(',').map(Number);
const LIMIT_MS = patient(180_000);
/** Longest time in ms for all to end behind an outage: a step that met it rests for half a minute at most. */
const RECOVERY_MS = patient(120_000);
const COHORTS = '/v1/host/openwop-temporal/cohorts';
const PAYING = 2;
/** Runs of many steps, of which each may go to the worker that has lost its database. */
const MANY = 12;
/** A few more than the polls for steps that a worker has open at once. */
const POLLS = 16;
/** Time in ms in which a worker knows that its database is away, or back. */
const AWAY_LIMIT_MS = patient(15_000);

let system: FaultSystem;
let client: PatientClient;
let proxy: Proxy;
let temporal: Client;
let facade: Half;
/** The second one reaches the database by a way that can be cut. */
let workers: readonly [Half, Half];
/** A run that has paid and ended, to be forked; its label. */
let source: { readonly runId: string; readonly fromSeq: number };
const SOURCE = 'source';
const made: string[] = [];

withFaultSystem(async (started) => {
  system = started;
  const databaseUrl = new URL(system.databaseUrl);
  proxy = await startProxy(databaseUrl.host);
  databaseUrl.host = proxy.address;
  const healthPort = String(await freePort());
  const [first, second, serve] = await Promise.all([
    system.start('worker'),
    system.start('worker', { DATABASE_URL: databaseUrl.href, OPENWOP_HEALTH_PORT: healthPort }),
    system.start('serve'),
  ]);
  workers = [first, second];
  facade = serve;
  client = patientClient(serve.url);
  temporal = new Client({ connection: connectTemporal(system.temporal) });
  const runId = await begin(SCENE, SOURCE);
  const spoken = await begin(SPEECH);
  await Promise.all([runId, spoken].map(toEnd));
  const events = await eventsOf(client, runId);
  source = { runId, fromSeq: events.findIndex(({ type }) => type === 'agent.toolCalled') };
}, LIMIT_MS);

afterAll(async () => {
  await temporal?.connection.close();
  await proxy?.stop();
}, LIMIT_MS);

async function begin(workflowId: string, label?: string): Promise<string> {
  const runId = await client.start(workflowId, label === undefined ? {} : { label });
  made.push(runId);
  return runId;
}

async function fork(): Promise<string> {
  const { runId, fromSeq } = source;
  const { body } = await client.ask<{ runId: string }>(`/v1/runs/${runId}:fork`, {
    body: { mode: 'branch', fromSeq },
    headers: { 'idempotency-key': `fork-${made.length}` },
  });
  made.push(body.runId);
  return body.runId;
}

const toEnd = (runId: string) => sayYesToEnd(client, runId, RECOVERY_MS);

/** Tries of a run's steps besides the one that ended each. */
async function triesBesides(runId: string): Promise<number> {
  const { events } = await temporal.workflow.getHandle(runId).fetchHistory();
  const attempts = (events ?? []).map((it) => it.activityTaskStartedEventAttributes?.attempt ?? 1);
  return attempts.reduce((sum, attempt) => sum + attempt - 1, 0);
}

interface Kind {
  readonly name: string;
  begin(): Promise<void>;
  end(): Promise<void>;
}

/** Each table in a transaction of its own: one that locks them all is in a deadlock with the host's. */
async function withTables(act: (db: pg.Client, names: readonly string[]) => Promise<void>) {
  const db = new pg.Client({ connectionString: system.databaseUrl });
  await db.connect();
  try {
    const { rows } = await db.query<{ tablename: string }>(
      "SELECT tablename FROM pg_tables WHERE schemaname = 'public'",
    );
    await act(
      db,
      rows.map(({ tablename }) => pg.escapeIdentifier(tablename)),
    );
  } finally {
    await db.end();
  }
}

/** Each table refuses what is written, as a server says it that cannot. */
const refusing = (name: string, sqlState: string): Kind => ({
  name,
  begin: () =>
    withTables(async (db, names) => {
      await db.query(
        `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
           $$ BEGIN RAISE EXCEPTION 'no room' USING ERRCODE = '${sqlState}'; END $$`,
      );
      for (const table of names)
        await db.query(
          `CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON ${table}
             FOR EACH STATEMENT EXECUTE FUNCTION refuse()`,
        );
    }),
  end: () =>
    withTables(async (db, names) => {
      for (const table of names) await db.query(`DROP TRIGGER IF EXISTS refuse ON ${table}`);
      await db.query('DROP FUNCTION refuse');
    }),
});

const KINDS: readonly Kind[] = [
  {
    name: 'is gone',
    begin: () => system.postgres.kill(),
    end: () => system.postgres.restart(),
  },
  {
    name: 'says nothing',
    begin: () => system.postgres.freeze(),
    end: () => system.postgres.thaw(),
  },
  refusing('has a full disk', '53100'),
  refusing('has no transaction ids left', '54000'),
];

describe.each(SECONDS)('PostgreSQL, for %i s', (seconds) => {
  it.each(KINDS)(
    '$name: [I98] no run fails for it, [I99] and nothing is paid twice',
    { timeout: LIMIT_MS + RECOVERY_MS + seconds * 1000 },
    async (kind) => {
      const labels = Array.from({ length: PAYING }, (_, at) => `${kind.name} ${seconds} ${at}`);
      let goAway: () => void = () => undefined;
      const isAway = new Promise<void>((resolve) => (goAway = resolve));
      // Each is paid, and its answer comes while nobody can note it.
      const paid = labels.map(
        (label) =>
          new Promise<void>((resolve) =>
            system.effects.at({ tool: PAY, label, stage: 'performed' }, () => {
              resolve();
              return isAway;
            }),
          ),
      );
      const paying = await Promise.all(labels.map((label) => begin(SCENE, label)));
      await Promise.all(paid);
      const sourcePays = system.effects.requests(PAY, SOURCE).length;
      const others = await Promise.all([begin(SPEECH), begin(FAMILY), fork()]);
      const { body: cohort } = await client.ask<Cohort>(COHORTS, {
        body: { select: { workflowId: SPEECH }, parallel: 2, change: {} },
        headers: { 'idempotency-key': `cohort ${kind.name} ${seconds}` },
      });
      await kind.begin();
      goAway();
      await quietFor(seconds * 1000);
      await kind.end();

      const ended = await Promise.all([...paying, ...others].map(toEnd));
      await until(
        async () => {
          const { body } = await client.ask<Cohort>(`${COHORTS}/${cohort.cohortId}`);
          return body.endedAt !== undefined;
        },
        'the cohort has ended',
        { limitMs: RECOVERY_MS },
      );
      const { body } = await client.ask<Cohort>(`${COHORTS}/${cohort.cohortId}`);
      await neverByChance(() => {
        for (const label of labels)
          expect(system.effects.requests(PAY, label).map(({ performed }) => performed)).toEqual([
            true,
          ]);
        // Its answer was kept: nobody is asked whether it was paid.
        expect(ended.slice(0, PAYING).map(({ doubts }) => doubts)).toEqual(labels.map(() => 0));
        expect(system.effects.requests(PAY, SOURCE).length).toBeLessThanOrEqual(
          sourcePays + 1 + (ended.at(-1)?.doubts ?? 0),
        );
        expect(body.totals).toMatchObject({ failed: 0 });
        expect(body.settled).toBeGreaterThan(0);
        expect([...workers, facade].flatMap(({ deaths }) => deaths)).toEqual([]);
      });
    },
  );
});

it(
  'a worker that loses its database takes no more steps, says so, and takes steps again by itself [I98]',
  { timeout: LIMIT_MS },
  async () => {
    const [, second] = workers;
    const readiness = async () => {
      const answer = await fetch(`${second.url}/readyz`);
      const body = (await answer.json()) as { worker: string };
      return [answer.status, body.worker];
    };
    expect(await readiness()).toEqual([200, 'ok']);
    proxy.cut();
    await expect.poll(readiness, { timeout: AWAY_LIMIT_MS }).toEqual([503, 'waits-for-store']);
    expect(second.process().output()).toContain('no more steps of runs are taken here');
    const begun = await Promise.all(Array.from({ length: MANY }, () => begin(SPEECH)));
    await Promise.all(begun.map(toEnd));
    // Only its open polls brought it a step; each was handed back, and performed by the other.
    const handedBack = (await Promise.all(begun.map(triesBesides))).reduce((a, b) => a + b, 0);
    expect(handedBack).toBeLessThanOrEqual(POLLS);
    proxy.mend();
    await expect.poll(readiness, { timeout: AWAY_LIMIT_MS }).toEqual([200, 'ok']);
    expect(await (await fetch(`${facade.url}/readyz`)).json()).not.toHaveProperty('worker');
  },
);

it('the invariants hold of every run, when all is quiet', { timeout: LIMIT_MS }, async () => {
  await checkInvariants(system, made);
});
