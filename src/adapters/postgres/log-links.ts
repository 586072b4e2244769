// Rows of logs without what they say, for walks along causes (architecture §2.1): up by the ids of causes, over all runs of
// a tenant, and on through one log.
import type { LogStore } from '../../ports/log.ts';
import type { Db } from './db.ts';
import { IS_THERE } from './feed-store.ts';
import { LINK_COLUMNS, linkOf, type LinkRecord } from './rows.ts';

const OF_EVENT = LINK_COLUMNS.split(', ')
  .map((column) => `e.${column}`)
  .join(', ');

export function logLinks(db: Db): Pick<LogStore, 'causes' | 'links'> {
  return {
    async causes(tenant, eventId, limit) {
      const records = await db.query<LinkRecord>(
        `WITH RECURSIVE chain AS (
           SELECT ${OF_EVENT}, 0 AS depth FROM run_events e WHERE event_id = $1 AND tenant_id = $2 AND ${IS_THERE}
           UNION ALL
           SELECT ${OF_EVENT}, chain.depth + 1
           FROM chain JOIN run_events e ON e.event_id = chain.causation_id AND e.tenant_id = $2
           WHERE chain.depth < $3 AND ${IS_THERE}
         )
         SELECT * FROM chain ORDER BY depth`,
        [eventId, tenant, limit],
      );
      return records.map(linkOf);
    },
    async links({ tenant, runId }, { after, limit }) {
      const records = await db.query<LinkRecord>(
        `SELECT ${LINK_COLUMNS} FROM run_events
         WHERE run_id = $1 AND tenant_id = $4 AND sequence > $2 ORDER BY sequence LIMIT $3`,
        [runId, after, limit, tenant],
      );
      return records.map(linkOf);
    },
  };
}
