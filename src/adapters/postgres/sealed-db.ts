// A database with something of another's put to it, or in the place of one of its parts.
import type { Db, SealedDb } from './db.ts';
import type { Seals } from './seals.ts';

/** The database as it is: an object whose parts are its methods. */
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

/** Together with what seals in it: what stores of runs are built on. */
export function withSeals(db: Db, seals: Seals): SealedDb {
  return { ...throughDb(db), seals };
}
