// The retention contract on its twins (architecture §8): PGlite, PGlite with content in files, PostgreSQL.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe } from 'vitest';
import {
  openDatabase,
  storesOn,
  type OpenDatabase,
  type OpenStoresOptions,
} from '../../src/adapters/postgres/index.ts';
import type { Stores } from '../../src/ports/stores.ts';
import { retentionContract } from '../contract/retention.ts';
import { retentionNotesContract } from '../contract/retention-notes.ts';
import { sharePostgres } from '../support/shared-postgres.ts';
import { quietLogger } from '../support/quiet-logger.ts';
import { pgliteDatabase } from '../support/databases.ts';
const postgres = await sharePostgres();
const dir = await mkdtemp(join(tmpdir(), 'openwop-retention-'));

afterAll(async () => {
  if (!('missing' in postgres)) await postgres.stop();
  await rm(dir, { recursive: true, force: true });
});

function onTwin(options: () => Promise<Omit<OpenStoresOptions, 'logger'>>): void {
  let open: { readonly stores: Stores; readonly db: OpenDatabase['db'] } | undefined;
  beforeAll(async () => {
    const all = { ...(await options()), logger: quietLogger };
    const opened = await openDatabase(all.database, quietLogger);
    open = { stores: await storesOn(opened, all), db: opened.db };
  });
  afterAll(async () => open?.stores.close());
  const opened = () => {
    if (!open) throw new Error('the stores did not open');
    return open;
  };
  for (const contract of [retentionContract, retentionNotesContract])
    contract(
      () => opened().stores,
      () => opened().db,
    );
}

describe('PGlite', () => {
  onTwin(async () => ({ database: await pgliteDatabase() }));
});

describe('PGlite with content in files', () => {
  onTwin(async () => ({ database: await pgliteDatabase(), contentDir: join(dir, 'content') }));
});

describe.skipIf('missing' in postgres)('PostgreSQL', () => {
  onTwin(async () => {
    if ('missing' in postgres) throw new Error(postgres.missing);
    return { database: { kind: 'postgres', url: await postgres.createDatabase() } };
  });
});
