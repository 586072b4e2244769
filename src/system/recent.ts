// Maps of bounded size: above its limit the entry that was used longest ago is dropped.

export class Recent<Key, Value> {
  readonly #limit: number;
  /** A Map keeps the order in which its keys were set. */
  readonly #entries = new Map<Key, Value>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  has(key: Key): boolean {
    return this.#entries.has(key);
  }

  /** Counts as a use. */
  get(key: Key): Value | undefined {
    const value = this.#entries.get(key);
    if (value !== undefined || this.#entries.has(key)) this.set(key, value as Value);
    return value;
  }

  set(key: Key, value: Value): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    const [oldest] = this.#entries.keys();
    if (this.#entries.size > this.#limit && oldest !== undefined) this.#entries.delete(oldest);
  }

  delete(key: Key): void {
    this.#entries.delete(key);
  }

  /** Of every entry; the order stays. */
  update(change: (key: Key, value: Value) => Value): void {
    for (const [key, value] of this.#entries) this.#entries.set(key, change(key, value));
  }
}

/** As Recent, for what must not stay: an entry that nobody has used for `keptMs` is dropped by a timer, not by who comes next. */
export class Brief<Key, Value> {
  readonly #keptMs: number;
  readonly #limit: number;
  readonly #entries = new Map<Key, { readonly value: Value; readonly timer: NodeJS.Timeout }>();

  constructor({ limit, keptMs }: { readonly limit: number; readonly keptMs: number }) {
    this.#limit = limit;
    this.#keptMs = keptMs;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Counts as a use. */
  get(key: Key): Value | undefined {
    const entry = this.#entries.get(key);
    if (entry) this.set(key, entry.value);
    return entry?.value;
  }

  set(key: Key, value: Value): void {
    this.delete(key);
    const timer = setTimeout(() => this.#entries.delete(key), this.#keptMs).unref();
    this.#entries.set(key, { value, timer });
    const [oldest] = this.#entries.keys();
    if (this.#entries.size > this.#limit && oldest !== undefined) this.delete(oldest);
  }

  delete(key: Key): void {
    clearTimeout(this.#entries.get(key)?.timer);
    this.#entries.delete(key);
  }
}
