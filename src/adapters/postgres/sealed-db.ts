// A database together with what seals in it: what stores of runs are built on.
import type { Db, SealedDb } from './db.ts';
import type { Seals } from './seals.ts';

export function withSeals(db: Db, seals: Seals): SealedDb {
  return {
    seals,
    query: (text, values) => db.query(text, values),
    transaction: (work, limitMs) => db.transaction(work, limitMs),
    maintain: (text, limits) => db.maintain(text, limits),
    listen: (channel, callback) => db.listen(channel, callback),
    onReconnect: (callback) => db.onReconnect(callback),
    close: () => db.close(),
  };
}
