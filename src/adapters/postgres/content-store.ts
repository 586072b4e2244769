// Content in a table, where facade and worker share no folder (design §3.6). Its twin is content/file-content-store.ts.
import type { ContentStore } from '../../ports/content.ts';
import { checkedHash, requireHash, verified } from '../content/content-rules.ts';
import type { Db } from './db.ts';

export function createTableContentStore(db: Db): ContentStore {
  return {
    async put(tenant, bytes) {
      const hash = checkedHash(bytes);
      await db.query(
        `INSERT INTO contents (tenant_id, hash, bytes, created_at_ms) VALUES ($1, $2, $3, openwop_now_ms())
         ON CONFLICT DO NOTHING`,
        [tenant, hash, bytes],
      );
      return hash;
    },
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
