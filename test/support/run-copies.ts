// Rows of many runs that have ended, without having run them: what a database of years looks like to a read.
import type { OpenDatabase } from '../../src/adapters/postgres/index.ts';

type Db = OpenDatabase['db'];

const TABLES = ['runs', 'run_heads', 'run_events', 'run_segments'];
/** Columns whose values belong to one run alone. */
const OF_ONE_RUN = ['run_id', 'event_id'];

/** The ids of `count` copies are `copyId(runId, n)`, n from 1. */
export function copyId(runId: string, n: number): string {
  return `${runId}-${n}`;
}

/** Each as if it had ended. Feeds hear nothing of them. The pages of a run's tables are known to the planner behind it. */
export async function copyEnded(db: Db, runId: string, count: number): Promise<void> {
  await db.transaction(async (tx) => {
    await tx.script('ALTER TABLE run_events DISABLE TRIGGER run_events_fed');
  });
  for (const table of TABLES) await copyRows(db, table, { runId, count });
  await db.transaction(async (tx) => {
    await tx.script('ALTER TABLE run_events ENABLE TRIGGER run_events_fed');
  });
  await db.query('ANALYZE');
}

async function copyRows(
  db: Db,
  table: string,
  { runId, count }: { readonly runId: string; readonly count: number },
): Promise<void> {
  const columns = await db.query<{ name: string }>(
    `SELECT column_name::text AS name FROM information_schema.columns
     WHERE table_name = $1 AND table_schema = current_schema() AND is_generated = 'NEVER' ORDER BY ordinal_position`,
    [table],
  );
  const names = columns.map(({ name }) => name);
  const values = names.map((name) => {
    if (OF_ONE_RUN.includes(name)) return `t.${name} || '-' || n`;
    return name === 'closed' ? 'true' : `t.${name}`;
  });
  await db.query(
    `INSERT INTO ${table} (${names.join(', ')})
     SELECT ${values.join(', ')} FROM ${table} t, generate_series(1, ${count}) n WHERE t.run_id = $1`,
    [runId],
  );
}
