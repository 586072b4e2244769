// What a server's own processes do for PostgreSQL, and nobody does for PGlite: checkpoints, which free the log of what was
// written and bound what a crash leaves to be read again, and vacuum and analysis of tables that changed much. In turns
// between those of the clients, one table a turn.
import type { PGlite } from '@electric-sql/pglite';
import type { Turns } from './pglite-turns.ts';

export interface UpkeepLimits {
  /** Turns of clients behind which it is looked at the log, and at the tables. */
  readonly turnsPerLog: number;
  readonly turnsPerTables: number;
  /** Bytes of the log behind the last checkpoint that ask for the next one. */
  readonly logBytes: number;
}

const LIMITS: UpkeepLimits = { turnsPerLog: 200, turnsPerTables: 5_000, logBytes: 64 * 1024 ** 2 };

const LOG_BYTES =
  'SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), redo_lsn)::float8 AS bytes FROM pg_control_checkpoint()';
/** By the thresholds of PostgreSQL's autovacuum, whose counters these are. */
const CHANGED_TABLES = `
  SELECT quote_ident(schemaname) || '.' || quote_ident(relname) AS name
  FROM pg_stat_user_tables WHERE n_dead_tup > 50 + 0.2 * n_live_tup OR n_mod_since_analyze > 50 + 0.1 * n_live_tup`;

export class Upkeep {
  readonly #pg: PGlite;
  readonly #turns: Turns;
  readonly #limits: UpkeepLimits;
  #count = 0;
  #isTablesDue = false;
  #working: Promise<void> | undefined;

  constructor(pg: PGlite, turns: Turns, limits = LIMITS) {
    this.#pg = pg;
    this.#turns = turns;
    this.#limits = limits;
  }

  /** Before anything else is asked. */
  async begin(): Promise<void> {
    // A file that is kept for what comes takes the room of what was.
    await this.#pg.exec('SET wal_recycle = off');
  }

  /** A client has had its turn. Returns at once. */
  noteTurn(): void {
    this.#count++;
    this.#isTablesDue ||= this.#count % this.#limits.turnsPerTables === 0;
    if (this.#count % this.#limits.turnsPerLog !== 0 || this.#working) return;
    // What fails is due again the next time: it is told to whoever asks for a statement then.
    this.#working = this.#work()
      .catch(() => undefined)
      .finally(() => (this.#working = undefined));
  }

  async #work(): Promise<void> {
    await this.#inTurn(async () => {
      const { rows } = await this.#pg.query<{ bytes: number }>(LOG_BYTES);
      if ((rows[0]?.bytes ?? 0) > this.#limits.logBytes) await this.#pg.exec('CHECKPOINT');
    });
    if (!this.#isTablesDue) return;
    this.#isTablesDue = false;
    const names = await this.#inTurn(async () => {
      // Counters are written down once a second at most.
      await this.#pg.exec('SELECT pg_stat_force_next_flush()');
      const { rows } = await this.#pg.query<{ name: string }>(CHANGED_TABLES);
      return rows.map(({ name }) => name);
    });
    for (const name of names)
      await this.#inTurn(() => this.#pg.exec(`VACUUM (ANALYZE, PARALLEL 0) ${name}`));
  }

  async #inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const release = await this.#turns.take();
    try {
      return await work();
    } finally {
      release();
    }
  }
}
