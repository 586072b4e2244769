// Words that are planted in what a run leaves, and looked for afterwards everywhere that it rests: in the histories as the
// server has them, in every row of every table, in files.
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Connection } from '@temporalio/client';
import { temporal } from '@temporalio/proto';
import { openDatabase, type DatabaseOptions } from '../../src/adapters/postgres/index.ts';
import { CONNECTION_DEFAULTS } from '../../src/adapters/temporal/rpc.ts';
import type { TestHost } from './host.ts';
import { quietLogger } from './quiet-logger.ts';

/** Begins every planted word; what follows says where it was planted. */
const PLANTED = 'peppermint';
export const word = (place: string): string => `${PLANTED}-${place}`;

export async function rawHistories(host: TestHost, runIds: readonly string[]): Promise<Buffer> {
  const { address, namespace } = host.temporal;
  const connection = await Connection.connect({ ...CONNECTION_DEFAULTS, address });
  try {
    const read = runIds.map(async (runId) => {
      const { history } = await connection.workflowService.getWorkflowExecutionHistory({
        namespace,
        execution: { workflowId: runId },
      });
      return Buffer.from(temporal.api.history.v1.History.encode(history ?? {}).finish());
    });
    return Buffer.concat(await Promise.all(read));
  } finally {
    await connection.close();
  }
}

/** By which keys the payloads of histories are encrypted: the first part of each key's id. */
export function keysOf(raw: Buffer): Set<string> {
  const field = 'encryption-key-id';
  const pieces = raw.toString('latin1').split(field).slice(1);
  // Behind the field's name: a tag and a length, one byte each, then the id.
  return new Set(pieces.map((piece) => /^[a-z]+/.exec(piece.slice(2))?.[0] ?? ''));
}

/** Every row of every table as text, and every file. */
export async function atRest(database: DatabaseOptions, dataDir: string): Promise<string> {
  const { db, close } = await openDatabase(database, quietLogger);
  const tables = await db.query<{ name: string }>(
    "SELECT quote_ident(tablename) AS name FROM pg_tables WHERE schemaname = 'public'",
  );
  const found: string[] = [];
  for (const { name } of tables) {
    const rows = await db.query<{ row: string }>(`SELECT t::text AS row FROM ${name} t`);
    found.push(...rows.map(({ row }) => `${name} ${row}`));
  }
  await close();
  const files = await readdir(dataDir, { recursive: true, withFileTypes: true });
  for (const file of files.filter((entry) => entry.isFile()))
    found.push((await readFile(join(file.parentPath, file.name))).toString('latin1'));
  return found.join('\n');
}

/** Planted words in a text, each with what stands around it, in the forms in which a byte column might hide one. */
export function planted(text: string): string[] {
  const found: string[] = [];
  for (const form of [PLANTED, Buffer.from(PLANTED).toString('hex')])
    for (let at = text.indexOf(form); at >= 0; at = text.indexOf(form, at + 1))
      found.push(text.slice(Math.max(0, at - 60), at + form.length + 30));
  return found;
}
