// Statements of PGlite, each parsed once: the library's own `query` parses anew each time, in six messages where one does
// (docs/performance.md).
import { parse, protocol, type PGlite } from '@electric-sql/pglite';
import type { SqlValue } from './db.ts';

const { serialize } = protocol;
/** Statements that are kept prepared; above it the one that rested longest is forgotten. */
const MAX_PREPARED = 400;

interface Prepared {
  readonly name: string;
  /** Types of its parameters, as OIDs. */
  readonly types: readonly number[];
}

export class Statements {
  readonly #pg: PGlite;
  /** By text; the one that was used last stands last. */
  readonly #prepared = new Map<string, Prepared>();
  #names = 0;

  constructor(pg: PGlite) {
    this.#pg = pg;
  }

  /** Before any other. A plan that was made for an empty table is none for a full one: none is kept. */
  async begin(): Promise<void> {
    await this.#pg.exec('SET plan_cache_mode = force_custom_plan');
  }

  /** Rows of its result. Throws the library's DatabaseError. */
  query(text: string, values: readonly SqlValue[]): Promise<readonly unknown[]> {
    return this.#pg.runExclusive(() => this.#query(text, values));
  }

  /** Behind a change of tables: what was prepared before may be of other columns. */
  forgetAll(): Promise<void> {
    const names = [...this.#prepared.values()].map(({ name }) => name);
    this.#prepared.clear();
    return this.#pg.runExclusive(() => this.#close(names));
  }

  async #query(text: string, values: readonly SqlValue[]): Promise<readonly unknown[]> {
    const { name, types } = await this.#prepare(text);
    const given = values.map((value, index) => this.#shown(value, types[index]));
    const { messages } = await this.#pg.execProtocol(
      joined([
        serialize.bind({ statement: name, values: given }),
        serialize.describe({ type: 'P' }),
        serialize.execute({}),
        serialize.sync(),
      ]),
    );
    return parse.parseResults(messages, this.#pg.parsers)[0]?.rows ?? [];
  }

  async #prepare(text: string): Promise<Prepared> {
    const known = this.#prepared.get(text);
    if (known) {
      this.#prepared.delete(text);
      this.#prepared.set(text, known);
      return known;
    }
    const name = `s${++this.#names}`;
    const { messages } = await this.#pg.execProtocol(
      joined([
        serialize.parse({ name, text }),
        serialize.describe({ type: 'S', name }),
        serialize.sync(),
      ]),
    );
    const made = { name, types: parse.parseDescribeStatementResults(messages) };
    this.#prepared.set(text, made);
    if (this.#prepared.size > MAX_PREPARED) await this.#forgetOldest();
    return made;
  }

  async #forgetOldest(): Promise<void> {
    for (const [text, { name }] of this.#prepared) {
      this.#prepared.delete(text);
      return this.#close([name]);
    }
  }

  async #close(names: readonly string[]): Promise<void> {
    if (names.length === 0) return;
    const closing = names.map((name) => serialize.close({ type: 'S', name }));
    await this.#pg.execProtocol(joined([...closing, serialize.sync()]));
  }

  /** As the library's `query` gives it on. */
  #shown(value: SqlValue, type: number | undefined): string | null {
    if (value === null) return null;
    const serializer = type === undefined ? undefined : this.#pg.serializers[type];
    return serializer ? serializer(value) : String(value);
  }
}

function joined(messages: readonly Uint8Array[]): Uint8Array {
  return Buffer.concat(messages);
}
