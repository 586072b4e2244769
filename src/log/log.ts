// The log as the rest of the host sees it (design §3): catch up, read fresh, follow, rebuild. Nobody else reads history,
// and but for this room and the activities that stream nobody sees the log's store.
import { codeOf, HostError } from '../rules/errors.ts';
import type { HistoryReader } from '../ports/history.ts';
import type { Head, LogRow } from '../ports/log.ts';
import type { RunRef, StartFailure } from '../ports/runs.ts';
import type { Logger } from '../ports/logger.ts';
import type { Stores } from '../ports/stores.ts';
import { advance, type Advanced, type Goal } from './advance.ts';
import { coalesce } from './coalesce.ts';
import { createFollowers, type FollowOptions } from './followers.ts';
import { rebuild, rebuildAll, type Rebuilt } from './rebuild.ts';
import { readRows, type RowsQuery } from './rows.ts';
import { startFailedBatch } from './start-failed.ts';

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
  fresh(run: RunRef): Promise<Fresh>;
  /** As it is stored, without a look into history. */
  head(run: RunRef): Promise<Head | undefined>;
  /** Stored rows page by page, ascending; no page is empty. It ends where the log ends now. */
  rows(run: RunRef, query?: RowsQuery): AsyncIterable<readonly LogRow[]>;
  /** Sequence of an eventId of this run. */
  sequenceOf(run: RunRef, eventId: string): Promise<number | undefined>;
  /** Rows after a sequence: backlog, then live, ends behind the terminal row or on abort. */
  follow(run: RunRef, options: FollowOptions): AsyncIterable<readonly LogRow[]>;
  /** Ends the log of a run that no workflow ever ran for. False: it has ended already, or there is none. */
  endUnstarted(run: RunRef, failure: StartFailure): Promise<boolean>;
  /** Runs whose projection stopped, and the code of what stopped it. */
  problems(limit: number): ReturnType<Stores['log']['problems']>;
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

  async function fresh({ runId }: RunRef): Promise<Fresh> {
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

  async function endUnstarted({ runId }: RunRef, failure: StartFailure): Promise<boolean> {
    const head = await stores.log.head(runId);
    if (!head || head.closed) return false;
    const { kind } = await stores.log.append(startFailedBatch(head, failure));
    return kind === 'appended';
  }

  return {
    catchUp,
    fresh,
    head: ({ runId }) => stores.log.head(runId),
    rows: (run, query) => readRows(stores.log, run, query),
    sequenceOf: ({ runId }, eventId) => stores.log.sequenceOf(runId, eventId),
    follow: ({ runId }, options) => followers.follow(runId, options),
    endUnstarted,
    problems: (limit) => stores.log.problems(limit),
    advance: (runId, goal) => advance(parts, runId, goal),
    rebuild: (runId) => rebuild(parts, runId),
    rebuildAll: () => rebuildAll(parts),
    close: () => followers.close(),
  };
}
