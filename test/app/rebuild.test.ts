// `npm run rebuild` on a stopped host's folder: dropped logs and heads come back byte for byte (architecture §3.6).
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Db } from '../../src/adapters/postgres/db.ts';
import { openDatabase } from '../../src/adapters/postgres/index.ts';
import { createDemo, demoRunRequest } from '../../src/demo/index.ts';
import { spawnCommand, startTestHost, TEST_API_KEY } from '../support/host.ts';
import { quietLogger } from '../support/quiet-logger.ts';
import { CACHE_DIR } from '../support/temporal.ts';
import { patient } from '../support/machine.ts';

let dataDir: string;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'openwop-rebuild-'));
});
afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

/** Looks behind the stores of a stopped host. */
async function behind<T>(look: (db: Db) => Promise<T>): Promise<T> {
  const database = { kind: 'pglite', dir: join(dataDir, 'postgres') } as const;
  const { db, close } = await openDatabase(database, quietLogger);
  return look(db).finally(close);
}

const storedRows = (db: Db, runId: string) =>
  db.query('SELECT * FROM run_events WHERE run_id = $1 ORDER BY sequence', [runId]);
const drop = (db: Db) => db.query('TRUNCATE run_events, run_heads', []);

/** What a stopped host knows of a run without its log. */
async function giveTo(db: Db, { tenant, runId }: { tenant: string; runId: string }): Promise<void> {
  for (const table of ['runs', 'run_segments', 'run_blocks'])
    await db.query(`UPDATE ${table} SET tenant_id = $1 WHERE run_id = $2`, [tenant, runId]);
  await db.query(
    `INSERT INTO expired_runs (run_id, tenant_id, workflow_id, session_id, executions, ended_at_ms, expired_at_ms, clean_at_ms)
     VALUES ('expired', $1, 'w', '', '[]', 1, 2, 3)`,
    [tenant],
  );
}

it(
  'writes a run with deltas, a tool and an open question anew',
  { timeout: patient(360_000) },
  async () => {
    const demo = await createDemo({ dataDir, logger: quietLogger });
    const host = await startTestHost({ dataDir, builtIn: demo, temporal: 'own' });
    const runId = await host.startRun({ ...demoRunRequest });
    await host.waitFor(runId, ({ status }) => status === 'waiting-approval');
    await host.stop();
    await demo.stop();

    const before = await behind(async (db) => {
      const rows = await storedRows(db, runId);
      await drop(db);
      return rows;
    });
    expect(before.length).toBeGreaterThan(50);

    const command = spawnCommand('rebuild', {
      OPENWOP_DATA_DIR: dataDir,
      OPENWOP_CACHE_DIR: CACHE_DIR,
      OPENWOP_API_KEY: TEST_API_KEY,
    });
    expect(await command.exited).toBe(0);
    expect(command.stdout()).toContain('1 rebuilt, 0 refused');
    // By its name it is found too, whosever it is.
    const again = await behind(async (db) => {
      const rows = await storedRows(db, runId);
      await drop(db);
      await giveTo(db, { tenant: 'acme', runId });
      return rows;
    });
    expect(again).toEqual(before);
    const named = spawnCommand(
      'rebuild',
      {
        OPENWOP_DATA_DIR: dataDir,
        OPENWOP_CACHE_DIR: CACHE_DIR,
        OPENWOP_API_KEY: TEST_API_KEY,
      },
      [runId, 'nobody', 'expired'],
    );
    expect(await named.exited).toBe(1);
    expect(named.stdout()).toContain(`${runId}: ${before.length} events`);
    expect(named.stdout()).toMatch(/^nobody: .*No such run/im);
    expect(named.stdout()).toMatch(/^expired: .*This run has expired/im);
  },
);
