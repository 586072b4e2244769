// One connection per process that only listens (architecture §3.4). It is checked, comes back by itself when it breaks,
// and says so: whoever watches must then read again, because notifications in between are gone.
import pg from 'pg';
import type { Logger } from '../../ports/logger.ts';
import { BackOff } from '../../system/time.ts';

/** Waits in ms before the first and at most before each later attempt to reconnect. */
const FIRST_BACKOFF_MS = 100;
const LONGEST_BACKOFF_MS = 2_000;
/** How often the connection is asked whether it lives, and how long it may take to say so. */
const CHECK_EVERY_MS = 15_000;
const CHECK_LIMIT_MS = 5_000;

export interface PgListener {
  listen(channel: string, callback: (payload: string) => void): Promise<void>;
  onReconnect(callback: () => void): () => void;
  close(): Promise<void>;
}

/** Connects. Throws when the first connection fails; later failures are retried without end. */
export async function startListening(config: pg.ClientConfig, logger: Logger): Promise<PgListener> {
  const listener = new ReconnectingListener(config, logger);
  await listener.connect();
  return listener;
}

class ReconnectingListener implements PgListener {
  readonly #config: pg.ClientConfig;
  readonly #logger: Logger;
  readonly #callbacks = new Map<string, Set<(payload: string) => void>>();
  readonly #reconnected = new Set<() => void>();
  #client: pg.Client | undefined;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(config: pg.ClientConfig, logger: Logger) {
    this.#config = config;
    this.#logger = logger;
  }

  async connect(): Promise<void> {
    const client = new pg.Client({ ...this.#config, query_timeout: CHECK_LIMIT_MS });
    let over = false;
    const lost = (error?: Error): void => {
      if (over) return;
      over = true;
      if (this.#client === client) this.#lost(error);
      // Ends the socket too when it was only silent.
      client.end().catch(() => undefined);
    };
    client.on('error', lost);
    client.on('end', () => lost());
    client.on('notification', ({ channel, payload }) => this.#notify(channel, payload ?? ''));
    try {
      await client.connect();
      for (const channel of this.#callbacks.keys())
        await client.query(`LISTEN ${pg.escapeIdentifier(channel)}`);
    } catch (error) {
      lost();
      throw error;
    }
    if (this.#closed) return lost();
    // It broke with its first word, before anybody waited for more: nothing would ever tell of it again.
    if (over) throw new Error('The connection broke as it was made.');
    this.#client = client;
    this.#check(client, lost);
  }

  #check(client: pg.Client, lost: (error?: Error) => void): void {
    this.#timer = setTimeout(() => {
      client.query('SELECT 1').then(
        () => {
          if (this.#client === client) this.#check(client, lost);
        },
        (error: Error) => lost(error),
      );
    }, CHECK_EVERY_MS);
    this.#timer.unref();
  }

  #lost(error?: Error): void {
    this.#client = undefined;
    clearTimeout(this.#timer);
    if (this.#closed) return;
    this.#logger.warn('the notification connection broke; reconnecting', { error: error?.message });
    this.#reconnect(new BackOff(FIRST_BACKOFF_MS, LONGEST_BACKOFF_MS));
  }

  #reconnect(backOff: BackOff): void {
    this.#timer = setTimeout(() => {
      this.connect().then(
        () => {
          if (this.#closed) return;
          this.#logger.info('the notification connection is back');
          for (const callback of this.#reconnected) this.#guarded(callback);
        },
        () => {
          if (!this.#closed) this.#reconnect(backOff);
        },
      );
    }, backOff.next());
  }

  async listen(channel: string, callback: (payload: string) => void): Promise<void> {
    const callbacks = this.#callbacks.get(channel) ?? new Set();
    this.#callbacks.set(channel, callbacks.add(callback));
    // While the connection is away the next one listens to every channel.
    await this.#client?.query(`LISTEN ${pg.escapeIdentifier(channel)}`);
  }

  #notify(channel: string, payload: string): void {
    for (const callback of this.#callbacks.get(channel) ?? [])
      this.#guarded(() => callback(payload));
  }

  #guarded(callback: () => void): void {
    try {
      callback();
    } catch (error) {
      this.#logger.error('a notification listener failed', { error: String(error) });
    }
  }

  onReconnect(callback: () => void): () => void {
    this.#reconnected.add(callback);
    return () => this.#reconnected.delete(callback);
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.#client?.end().catch(() => undefined);
  }
}
