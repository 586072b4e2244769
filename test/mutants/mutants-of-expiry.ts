// Mutants of what lets runs expire (architecture §3.7), as mutants.ts has them.
import type { Row } from './mutants.ts';

const EXPIRE = 'src/adapters/postgres/retention-expire.ts';
const OF_RETENTION = 'test/adapters/postgres-retention.test.ts';

export const OF_EXPIRY: readonly Row[] = [
  [
    68,
    [EXPIRE, "  'run_watches',\n", ''],
    [OF_RETENTION, 'in no table, and neither in those of its neighbours'],
  ],
  [
    68,
    ['src/adapters/postgres/retention-clean.ts', '  await reindex(db, run);\n', ''],
    [OF_RETENTION, 'its conversation to be indexed anew'],
  ],
  [
    69,
    [
      EXPIRE,
      'bool_or(h.closed IS NOT TRUE OR e.ended_at_ms IS NULL)',
      'bool_or(e.ended_at_ms < 0)',
    ],
    [OF_RETENTION, 'a family as a whole, when its last run has ended'],
  ],
  [
    69,
    [EXPIRE, 'coalesce(max(e.ended_at_ms) >', 'coalesce(min(e.ended_at_ms) >'],
    [OF_RETENTION, 'a family as a whole, when its last run has ended'],
  ],
  [
    70,
    ['src/runs/fork-children.ts', '    await hold(deps, child, run);\n', ''],
    ['test/runs/fork-children.test.ts', 'holds its source, and what that needs'],
  ],
  [
    70,
    [EXPIRE, 'ELSE h.closed IS NOT TRUE END', 'ELSE false END'],
    [OF_RETENTION, 'none whose fork has not ended'],
  ],
  [
    70,
    [
      EXPIRE,
      'EXISTS (SELECT FROM run_holds WHERE',
      'EXISTS (SELECT FROM run_holds WHERE false AND',
    ],
    [OF_RETENTION, 'none that is held, or a relative of it'],
  ],
  [71, [EXPIRE, "  'runs',\n", ''], [OF_RETENTION, 'neither an append, a delta, a rebuild']],
  [
    71,
    [
      'src/adapters/postgres/feed-store.ts',
      "'EXISTS (SELECT FROM runs r WHERE r.run_id = e.run_id)'",
      "'true'",
    ],
    [OF_RETENTION, 'of what a session is told nothing'],
  ],
  [
    71,
    [
      'src/log/followers.ts',
      "if (!tail) throw new HostError('run_not_found', { runId: this.run.runId });",
      'if (!tail) return HostError.length > 0;',
    ],
    ['test/adapters/postgres-expiring.test.ts', 'who reads a log slowly'],
  ],
  [
    72,
    [
      'src/adapters/postgres/content-store.ts',
      'c.hash = u.hash AND NOT ${IS_NEEDED}',
      'c.hash = u.hash',
    ],
    [OF_RETENTION, 'goes with the last run that needs it'],
  ],
  [
    72,
    ['src/adapters/postgres/content-store.ts', 'if (!found.is_needed) await files', 'await files'],
    [OF_RETENTION, 'that nobody needs any more comes back'],
  ],
  [
    72,
    ['src/adapters/postgres/content-refs.ts', 'AND NOT of_archive AND EXISTS', 'AND EXISTS'],
    [OF_RETENTION, 'that a fork takes over from its source'],
  ],
  [
    72,
    [
      'src/adapters/postgres/retention-store.ts',
      'await shareNeeds(db, source, refOf(source.tenant, forkRunId));',
      'if (noted.length < 0) await shareNeeds(db, source, refOf(source.tenant, forkRunId));',
    ],
    [OF_RETENTION, 'that a fork takes over from its source'],
  ],
];
