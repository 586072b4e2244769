// Content by its hash (architecture §2.6): in a table where facade and worker share no folder, else in files. Who needs
// what stands in the database either way (content-refs.ts).
import type { ContentStore, NewContent } from '../../ports/content.ts';
import { checkedHash, requireHash, verified } from '../content/content-rules.ts';
import type { Logger } from '../../ports/logger.ts';
import type { ContentFiles } from '../content/file-content-store.ts';
import {
  IS_NEEDED,
  namesOf,
  noteNeeds,
  requireNeeds,
  shareNeeds,
  storeNeeded,
  type NotedValue,
} from './content-refs.ts';
import { eachByItself, type Db } from './db.ts';

/** Where bytes are kept. */
interface Bytes {
  /** Behind a note that they are needed. Throws run_not_found where that has ended meanwhile. */
  store(values: readonly NotedValue[]): Promise<void>;
  get: ContentStore['get'];
  sweep: ContentStore['sweep'];
}

export function createTableContentStore(db: Db): ContentStore {
  return contentStore(db, inTable(db));
}

export function createFileContentStore(db: Db, files: ContentFiles, logger: Logger): ContentStore {
  return contentStore(db, inFiles(db, files, logger));
}

function contentStore(db: Db, kept: Bytes): ContentStore {
  async function putAll(values: readonly NewContent[]): Promise<string[]> {
    const named = values.map(({ holder, bytes, isArchive }) => ({
      ...{ holder, tenant: holder.tenant, hash: checkedHash(bytes), bytes },
      ...(isArchive ? { isArchive } : {}),
    }));
    if (named.length === 0) return [];
    await noteNeeds(db, named);
    await kept.store(named);
    return named.map(({ hash }) => hash);
  }
  return {
    async put(holder, bytes) {
      const [hash = ''] = await putAll([{ holder, bytes }]);
      return hash;
    },
    putAll,
    get: kept.get,
    share: (from, to) => shareNeeds(db, from, to),
    sweep: kept.sweep,
  };
}

function inTable(db: Db): Bytes {
  return {
    store: (values) => storeNeeded(db, values),
    async get(tenant, hash) {
      requireHash(hash);
      const [row] = await db.query<{ bytes: Uint8Array }>(
        'SELECT bytes FROM contents WHERE tenant_id = $1 AND hash = $2',
        [tenant, hash],
      );
      return verified(hash, row?.bytes);
    },
    sweep: (limit) =>
      db.transaction(async (tx) => {
        const listed = await tx.query<{ tenant_id: string; hash: string }>(
          `DELETE FROM content_unused WHERE (tenant_id, hash) IN (
             SELECT tenant_id, hash FROM content_unused ORDER BY since_ms LIMIT $1 FOR UPDATE SKIP LOCKED)
           RETURNING tenant_id, hash`,
          [limit],
        );
        // A statement of its own: it sees every need that was noted before the values were ours.
        await tx.query(
          `DELETE FROM contents c
           USING json_to_recordset($1::text::json) AS u(tenant_id text, hash text)
           WHERE c.tenant_id = u.tenant_id AND c.hash = u.hash AND NOT ${IS_NEEDED}`,
          [JSON.stringify(listed)],
        );
        return listed.length;
      }),
  };
}

/** The folder has one owner: within this process one value is put or removed at a time. */
function inFiles(db: Db, files: ContentFiles, logger: Logger): Bytes {
  const inTurn = turns();
  return {
    async store(values) {
      for (const { tenant, hash, bytes } of values)
        await inTurn(`${tenant} ${hash}`, () => files.put(tenant, hash, bytes));
      await requireNeeds(db, values);
    },
    get: (tenant, hash) => files.get(tenant, hash),
    async sweep(limit) {
      const listed = await db.query<{ tenant_id: string; hash: string }>(
        'SELECT tenant_id, hash FROM content_unused ORDER BY since_ms LIMIT $1 FOR UPDATE SKIP LOCKED',
        [limit],
      );
      const failed = await eachByItself(db, listed, ({ tenant_id: tenant, hash }) =>
        inTurn(`${tenant} ${hash}`, () => removeUnneeded({ db, files }, tenant, hash)),
      );
      const [first] = failed;
      if (first) {
        const { item, error } = first;
        logger.warn('content that nobody needs cannot be removed, trying again later', {
          ...{ values: failed.length, hash: item.hash, reason: String(error) },
        });
        // Behind all others: they are looked at first.
        await db.query(
          `UPDATE content_unused u SET since_ms = openwop_now_ms()
           FROM (
             SELECT tenant_id, hash FROM content_unused
               JOIN json_to_recordset($1::text::json) AS x(tenant_id text, hash text) USING (tenant_id, hash)
             FOR UPDATE OF content_unused SKIP LOCKED
           ) free
           WHERE u.tenant_id = free.tenant_id AND u.hash = free.hash`,
          [namesOf(failed.map(({ item }) => ({ tenant: item.tenant_id, hash: item.hash })))],
        );
      }
      return listed.length - failed.length;
    },
  };
}

async function removeUnneeded(
  { db, files }: { readonly db: Db; readonly files: ContentFiles },
  tenant: string,
  hash: string,
): Promise<void> {
  const [found] = await db.query<{ is_needed: boolean; since_ms: number }>(
    `SELECT ${IS_NEEDED} AS is_needed, since_ms FROM content_unused u WHERE tenant_id = $1 AND hash = $2`,
    [tenant, hash],
  );
  if (!found) return;
  if (!found.is_needed) await files.remove(tenant, hash);
  // Last: a process that dies before finds the value listed. What was listed again meanwhile stays there.
  await db.query(
    'DELETE FROM content_unused WHERE tenant_id = $1 AND hash = $2 AND since_ms = $3',
    [tenant, hash, found.since_ms],
  );
}

/** Runs what has one name one after the other. */
function turns(): (name: string, work: () => Promise<void>) => Promise<void> {
  const last = new Map<string, Promise<void>>();
  return async (name, work) => {
    const own = (last.get(name) ?? Promise.resolve()).then(work, work);
    last.set(name, own);
    try {
      await own;
    } finally {
      if (last.get(name) === own) last.delete(name);
    }
  };
}
