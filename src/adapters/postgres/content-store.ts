// Content in a table, where facade and worker share no folder (architecture §3.6). Its twin is
// content/file-content-store.ts.
import type { ContentStore } from '../../ports/content.ts';
import { checkedHash, requireHash, verified } from '../content/content-rules.ts';
import type { Db, SqlValue } from './db.ts';

export function createTableContentStore(db: Db): ContentStore {
  async function putAll(tenant: string, contents: readonly Uint8Array[]): Promise<string[]> {
    const hashes = contents.map(checkedHash);
    const values: SqlValue[] = [tenant];
    const bind = (value: SqlValue): string => `$${values.push(value)}`;
    const rows = contents.map(
      (bytes, at) => `($1, ${bind(hashes[at] ?? '')}, ${bind(bytes)}::bytea, openwop_now_ms())`,
    );
    await db.query(
      `INSERT INTO contents (tenant_id, hash, bytes, created_at_ms) VALUES ${rows.join(', ')} ON CONFLICT DO NOTHING`,
      values,
    );
    return hashes;
  }
  return {
    async put(tenant, bytes) {
      const [hash = ''] = await putAll(tenant, [bytes]);
      return hash;
    },
    putAll,
    async get(tenant, hash) {
      requireHash(hash);
      const [row] = await db.query<{ bytes: Uint8Array }>(
        'SELECT bytes FROM contents WHERE tenant_id = $1 AND hash = $2',
        [tenant, hash],
      );
      return verified(hash, row?.bytes);
    },
  };
}
