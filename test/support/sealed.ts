// A database whose stores seal nothing: no run in it has a subject.
import type { Db, SealedDb } from '../../src/adapters/postgres/db.ts';
import { withSeals } from '../../src/adapters/postgres/sealed-db.ts';
import { createSeals } from '../../src/adapters/postgres/seals.ts';

const seals = createSeals({
  ofRun: async () => undefined,
  byId: () => Promise.reject(new Error('nothing is sealed here')),
});

export function unsealed(db: Db): SealedDb {
  return withSeals(db, seals);
}
