// A database as it is, for a test to put something of its own in the place of one of its parts.
import type { Db } from '../../src/adapters/postgres/db.ts';

export function throughDb(db: Db): Db {
  return {
    query: (text, values) => db.query(text, values),
    transaction: (work, limitMs) => db.transaction(work, limitMs),
    maintain: (text, limits) => db.maintain(text, limits),
    listen: (channel, callback) => db.listen(channel, callback),
    onReconnect: (callback) => db.onReconnect(callback),
    close: () => db.close(),
  };
}
