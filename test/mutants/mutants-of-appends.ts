// Mutants of appends that share a transaction (architecture §3.2), as mutants.ts has them.
import type { Row } from './mutants.ts';

const OF_STORES = 'test/adapters/postgres-stores.test.ts';

export const OF_APPENDS: readonly Row[] = [
  [
    82,
    [
      'src/adapters/postgres/log-append.ts',
      'AND h.run_id = m.run_id AND h.tenant_id = m.tenant_id',
      'AND h.tenant_id = m.tenant_id',
    ],
    [
      OF_STORES,
      'PGlite with content in a table.*appends at one time give each run what it gets alone',
    ],
  ],
  [
    83,
    [
      'src/adapters/postgres/append-groups.ts',
      'else if (await together([one])) isOfOne = ++late < TOO_LATE;',
      'else one.reject(error);',
    ],
    [
      OF_STORES,
      'PGlite with content in a table.*one that cannot be stored keeps no other from its place',
    ],
  ],
];
