// What an acceptance costs (architecture §4): trips to the database from the request to its 201, on both twins.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openStores } from '../../src/adapters/postgres/index.ts';
import type { Stores } from '../../src/ports/stores.ts';
import { tripsOf } from '../support/database-trips.ts';
import { openTestStores, silentLogger } from '../support/log-parts.ts';
import { sharePostgres } from '../support/shared-postgres.ts';
import { startFaultHost, type FaultHost } from './fault-host.ts';

const MAX_TRIPS = 5;
const BODY = { workflowId: 'noop' };
const postgres = await sharePostgres();

function tripTests(twin: string, open: () => Promise<Stores>): void {
  describe(twin, () => {
    let host: FaultHost;
    beforeAll(async () => {
      host = await startFaultHost({}, () => ({}), await open());
    });
    afterAll(() => host.stop());

    const post = async (key?: string): Promise<string> => {
      const headers: Record<string, string> = key === undefined ? {} : { 'idempotency-key': key };
      const { status, body } = await host.api<{ runId: string }>('/v1/runs', {
        body: BODY,
        headers,
      });
      expect(status).toBe(201);
      return body.runId;
    };

    it('architecture §4 an accept makes at most five trips to the database, with a key and without', async () => {
      await post();
      const unkeyed = await tripsOf(() => post());
      const keyed = await tripsOf(() => post('counted'));
      expect([unkeyed.length, keyed.length]).toEqual([2, 3]);
      expect(keyed.length).toBeLessThanOrEqual(MAX_TRIPS);
      // A key that nobody has is claimed in the one statement that inserts its run: there is nothing between the two.
      expect(keyed.filter((trip) => /^(BEGIN|begin|COMMIT|commit)$/.test(trip))).toEqual([]);
      const repeated = await tripsOf(() => post('counted'));
      expect(repeated).toHaveLength(2);
    });

    it('idempotency.md §Layer 1: a retry that goes on with its run makes no more than five trips beyond taking the key over', async () => {
      host.temporal.away = true;
      const headers = { 'idempotency-key': 'away' };
      const failed = await host.api<{ details: { runId: string } }>('/v1/runs', {
        body: BODY,
        headers,
      });
      expect(failed.status).toBe(503);
      host.temporal.away = false;
      let runId = '';
      const trips = await tripsOf(async () => {
        runId = await post('away');
      });
      expect(runId).toBe(failed.body.details.runId);
      // The claim and what stands against it; five to take it over; the run, its head, its start, its answer.
      expect(trips.length).toBeLessThanOrEqual(2 + 5 + 4);
    });
  });
}

tripTests('PGlite', openTestStores);

if ('missing' in postgres) {
  describe('PostgreSQL', () => {
    it.skip(postgres.missing, () => undefined);
  });
} else {
  tripTests('PostgreSQL', async () =>
    openStores({
      database: { kind: 'postgres', url: await postgres.createDatabase() },
      logger: silentLogger,
    }),
  );
  afterAll(() => postgres.stop());
}

describe('idempotency.md §Layer 1: what a key keeps of an acceptance', () => {
  let host: FaultHost;
  beforeAll(async () => {
    host = await startFaultHost();
  });
  afterAll(() => host.stop());

  const repeat = (url: string, key: string) =>
    fetch(`${url}/v1/runs`, {
      method: 'POST',
      body: JSON.stringify(BODY),
      headers: {
        authorization: `Bearer ${host.deps.config.apiKey}`,
        'content-type': 'application/json',
        'idempotency-key': key,
      },
    });

  it('is the first answer, byte for byte, also when the repeat comes by another name of the host', async () => {
    const first = await (await repeat(host.url, 'k1')).text();
    const other = await repeat(host.url.replace('127.0.0.1', 'localhost'), 'k1');
    expect([other.status, other.headers.get('openwop-idempotent-replay')]).toEqual([201, 'true']);
    expect(first).toContain(`"${host.url}/v1/runs/`);
    expect(await other.text()).toBe(first);
  });
});
