// The log as the rest of the host sees it (design §3): catch up, read fresh, follow, rebuild. Nobody else reads history.
import { codeOf, HostError } from '../rules/errors.ts';
import type { HistoryReader } from '../ports/history.ts';
import type { Head, LogRow } from '../ports/log.ts';
import type { Logger } from '../ports/logger.ts';
import type { Stores } from '../ports/stores.ts';
import { advance, type Advanced, type Goal } from './advance.ts';
import { coalesce } from './coalesce.ts';
import { createFollowers, type FollowOptions } from './followers.ts';
import { rebuild, rebuildAll, type Rebuilt } from './rebuild.ts';

export interface LogDeps {
  readonly stores: Stores;
  readonly history: HistoryReader;
  readonly logger: Logger;
  /** Names this process among all: watches and leases are held under it. */
  readonly processId: string;
}

export interface Fresh {
  readonly head: Head;
  /** The run is open and its history could not be read: there may be more than what is stored. */
  readonly stale: boolean;
}

export interface Log {
  /**
   * To the tail of the run's history as it is after the call; joins others that ask at the same time. Throws HostError
   * run_not_found, service_unavailable, history_undecodable, history_missing.
   */
  catchUp(runId: string): Promise<Head>;
  /** For reads: closed runs cost no call to Temporal. Throws HostError run_not_found. */
  fresh(runId: string): Promise<Fresh>;
  /** Rows after a sequence: backlog, then live, ends behind the terminal row or on abort. */
  follow(runId: string, options: FollowOptions): AsyncIterable<readonly LogRow[]>;
  /** Waits for a hinted piece of history. For the projector. */
  advance(runId: string, goal: Goal): Promise<Advanced>;
  /** Throws HostError run_state_conflict while the run streams. */
  rebuild(runId: string): Promise<Rebuilt>;
  rebuildAll(): ReturnType<typeof rebuildAll>;
  /** Stops listening. */
  close(): void;
}

export function createLog({ stores, history, logger, processId }: LogDeps): Log {
  const parts = { stores, history, logger };
  const catchUp = coalesce(async (runId: string) => (await advance(parts, runId)).head);
  const followers = createFollowers({ stores, logger, processId, catchUp });

  async function fresh(runId: string): Promise<Fresh> {
    const stored = await stores.log.head(runId);
    if (!stored) throw new HostError('run_not_found', { runId });
    if (stored.closed) return { head: stored, stale: false };
    try {
      return { head: await catchUp(runId), stale: false };
    } catch (error) {
      // Temporal away, or a fault that is noted with the run (design §3.3): what is stored is still true.
      logger.debug('a read is served from what is stored', { runId, code: codeOf(error) });
      return { head: (await stores.log.head(runId)) ?? stored, stale: true };
    }
  }

  return {
    catchUp,
    fresh,
    follow: (runId, options) => followers.follow(runId, options),
    advance: (runId, goal) => advance(parts, runId, goal),
    rebuild: (runId) => rebuild(parts, runId),
    rebuildAll: () => rebuildAll(parts),
    close: () => followers.close(),
  };
}
