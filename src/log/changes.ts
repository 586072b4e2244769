// That something of a tenant's runs changed, for who looks at many (architecture §3.6): one reader of the feed per tenant
// and process, shared by all who watch, and none while nobody does. What changed they read themselves.
import type { Logger } from '../ports/logger.ts';
import type { Stores } from '../ports/stores.ts';
import { BackOff, Bell, rest } from '../system/time.ts';
import { readFeed } from './feed.ts';

/** A watcher is told at most once in this time, in ms, however much changes. */
const CHANGES_INTERVAL_MS = 1_000;
/**
 * And at least once in this one, in ms: a status that moves without a row of a log (a run that is accepted, a cancel that
 * is asked for) is in no feed.
 */
const LOOK_AGAIN_MS = 30_000;
/** Pauses in ms behind a read that failed: the first, and the longest. */
const FIRST_BACKOFF_MS = 500;
const LONGEST_BACKOFF_MS = 15_000;

export interface Changes {
  /** Yields at once, and then whenever something changed, until `signal` or `close`. */
  watch(tenant: string, signal: AbortSignal): AsyncGenerator<'changed', void, void>;
  close(): void;
}

interface Channel {
  readonly bells: Set<Bell>;
  readonly ended: AbortController;
}

type ChangesParts = Pick<Stores, 'feed' | 'log'>;

export function createChanges(parts: ChangesParts, logger: Logger): Changes {
  const channels = new Map<string, Channel>();
  /** What ends each that watches. */
  const watching = new Set<() => void>();
  let isClosed = false;

  function enter(tenant: string, bell: Bell): () => void {
    const channel = channels.get(tenant) ?? { bells: new Set(), ended: new AbortController() };
    channel.bells.add(bell);
    if (!channels.has(tenant)) {
      channels.set(tenant, channel);
      void tell({ parts, logger }, tenant, channel);
    }
    return () => {
      channel.bells.delete(bell);
      if (channel.bells.size > 0) return;
      channel.ended.abort();
      channels.delete(tenant);
    };
  }

  return {
    async *watch(tenant, signal) {
      const over = new AbortController();
      const end = (): void => over.abort();
      if (isClosed || signal.aborted) return;
      watching.add(end);
      signal.addEventListener('abort', end, { once: true });
      const bell = new Bell();
      bell.ring();
      const leave = enter(tenant, bell);
      try {
        for (;;) {
          await bell.rung(over.signal, LOOK_AGAIN_MS);
          if (over.signal.aborted) return;
          yield 'changed';
        }
      } finally {
        leave();
        watching.delete(end);
        signal.removeEventListener('abort', end);
      }
    },
    close() {
      isClosed = true;
      for (const end of watching) end();
    },
  };
}

/**
 * Rings for whatever came into the feed. The place to go on from is taken before it rings: what comes between the two is
 * after that place, and what came before is read by who was rung for. After a failure, and once the database is back, the
 * place is taken again: a failover may have lost it, or given it to another row.
 */
async function tell(
  { parts, logger }: { readonly parts: ChangesParts; readonly logger: Logger },
  tenant: string,
  { bells, ended: { signal } }: Channel,
): Promise<void> {
  const backOff = new BackOff(FIRST_BACKOFF_MS, LONGEST_BACKOFF_MS);
  // One listener for all passes: of each AbortSignal.any that it takes part in, a signal keeps something while it lives.
  let pass = new AbortController();
  const endPass = (): void => pass.abort();
  signal.addEventListener('abort', endPass, { once: true });
  const unsubscribe = parts.log.onReconnect(endPass);
  let after: number | undefined;
  while (!signal.aborted) {
    try {
      if (after !== undefined) await changed(parts, { tenant, after, signal: pass.signal });
      if (signal.aborted) break;
      pass = new AbortController();
      after = await parts.feed.end();
      backOff.reset();
      for (const bell of bells) bell.ring();
      await rest(CHANGES_INTERVAL_MS, signal);
    } catch (error) {
      after = undefined;
      logger.warn('changes of runs cannot be told; trying again', { error: String(error) });
      await rest(backOff.next(), signal);
    }
  }
  unsubscribe();
}

/** Resolves when a row stands behind the place, or on abort. */
async function changed(
  parts: ChangesParts,
  reading: { readonly tenant: string; readonly after: number; readonly signal: AbortSignal },
): Promise<void> {
  const pages = readFeed(parts, reading);
  await pages.next();
  await pages.return();
}
