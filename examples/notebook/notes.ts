// The notebook's store: SQLite in WebAssembly, one writer, safe against the death of its process. A note that was added
// under an idempotency key is kept with the key, so a repeat finds it instead of adding another.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import sqlite from 'node-sqlite3-wasm';

export interface Note {
  readonly id: number;
  readonly title: string;
  readonly text: string;
  readonly addedAt: string;
}

const COLUMNS = 'id, title, text, added_at AS addedAt';

export class Notes {
  readonly #db: InstanceType<typeof sqlite.Database>;
  readonly #lock: string;

  /** Throws when another process has the notebook open. */
  constructor(folder: string) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    this.#lock = join(folder, 'notes.pid');
    const file = join(folder, 'notes.db');
    takeLock(this.#lock);
    // What a killed process leaves: the library takes it for a lock that is held.
    rmSync(`${file}.lock`, { recursive: true, force: true });
    this.#db = new sqlite.Database(file);
    // Exclusive, since this build has no shared memory; the log is what a killed process recovers from.
    this.#db.all('PRAGMA locking_mode = EXCLUSIVE');
    this.#db.all('PRAGMA journal_mode = WAL');
    this.#db.exec('PRAGMA synchronous = FULL');
    this.#db.exec(`CREATE TABLE IF NOT EXISTS notes (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      title TEXT NOT NULL, text TEXT NOT NULL, added_at TEXT NOT NULL, key TEXT UNIQUE)`);
  }

  /** The same key gives the same note, however often it comes. */
  add(title: string, text: string, key?: string): { note: Note; repeated: boolean } {
    const known = key === undefined ? undefined : this.#one('key = ?', key);
    if (known) return { note: known, repeated: true };
    const row = [title, text, new Date().toISOString(), key ?? null];
    this.#db.run('INSERT INTO notes (title, text, added_at, key) VALUES (?, ?, ?, ?)', row);
    const note = this.#one('id = last_insert_rowid()');
    if (!note) throw new Error('The note was not kept.');
    return { note, repeated: false };
  }

  search(words: string, limit: number): Note[] {
    const where = 'instr(lower(title || char(10) || text), lower(?)) > 0';
    return this.#all(`WHERE ${where} ORDER BY id DESC LIMIT ?`, [words, limit]);
  }

  /** In the order of their ids, behind one of them. */
  page(afterId: number, size: number): Note[] {
    return this.#all('WHERE id > ? ORDER BY id LIMIT ?', [afterId, size]);
  }

  /** False when there is no such note. */
  delete(id: number): boolean {
    return this.#db.run('DELETE FROM notes WHERE id = ?', [id]).changes > 0;
  }

  close(): void {
    this.#db.close();
    rmSync(this.#lock, { force: true });
  }

  #one(where: string, value?: string): Note | undefined {
    return this.#all(`WHERE ${where}`, value === undefined ? [] : [value])[0];
  }

  #all(rest: string, values: readonly (string | number)[]): Note[] {
    return this.#db.all(`SELECT ${COLUMNS} FROM notes ${rest}`, [...values]) as unknown as Note[];
  }
}

/** Taken over from a process that is gone. */
function takeLock(path: string): void {
  const owner = readOwner(path);
  if (owner !== undefined && owner !== process.pid && isAlive(owner))
    throw new Error(`The notebook is in use by process ${owner}.`);
  writeFileSync(path, String(process.pid), { mode: 0o600 });
}

function readOwner(path: string): number | undefined {
  try {
    return Number(readFileSync(path, 'utf8')) || undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
