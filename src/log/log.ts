// The log as the rest of the host sees it (architecture §3): catch up, read fresh, follow, rebuild. Nobody else reads
// history, and but for this room and the activities that stream nobody sees the log's store.
import { codeOf, HostError, type ErrorCode } from '../rules/errors.ts';
import type { HistoryReader } from '../ports/history.ts';
import type { Recording } from '../rules/recording.ts';
import type { Head, LogRow } from '../ports/log.ts';
import type { OverviewQuery, RunRef, StartFailure } from '../ports/runs.ts';
import type { Logger } from '../ports/logger.ts';
import type { Stores } from '../ports/stores.ts';
import { advance, type Advanced, type Goal } from './advance.ts';
import { causesOf, effectsOf } from './causation.ts';
import { createChanges } from './changes.ts';
import { coalesce } from './coalesce.ts';
import { conversationPage, type ConversationQuery } from './conversation.ts';
import { createFollowers, type FollowOptions } from './followers.ts';
import { overview, waitingRuns, type WaitingQuery } from './overview.ts';
import { rebuild, rebuildAll, type Rebuilt } from './rebuild.ts';
import { readRecording } from './recording.ts';
import { readQuestions, readRows, type RowsQuery } from './rows.ts';
import { resumeSession, type Resuming } from './session-resume.ts';
import { createSessions, type Sessions } from './session-stream.ts';
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
  /** With `stale`: what this read failed with, which a problem that was noted before need not be. */
  readonly code?: ErrorCode;
}

export interface Log {
  /**
   * To the tail of the run's history as it is after the call; joins others that ask at the same time. Throws HostError
   * run_not_found, service_unavailable, history_undecodable, key_unavailable, history_missing.
   */
  catchUp(run: RunRef): Promise<Head>;
  /** For reads: closed runs cost no call to Temporal. Throws HostError run_not_found. */
  fresh(run: RunRef): Promise<Fresh>;
  /** As it is stored, without a look into history. */
  head(run: RunRef): Promise<Head | undefined>;
  /** Stored rows page by page, ascending; no page is empty. It ends where the log ends now. */
  rows(run: RunRef, query?: RowsQuery): AsyncIterable<readonly LogRow[]>;
  /** Of the rows, in the same way, those that tell what became of a node's questions. */
  questions(run: RunRef, nodeId: string): AsyncIterable<readonly LogRow[]>;
  /** Sequence of an eventId of this run. */
  sequenceOf(run: RunRef, eventId: string): Promise<number | undefined>;
  /** Rows after a sequence: backlog, then live, ends behind the terminal row or on abort. */
  follow(run: RunRef, options: FollowOptions): AsyncIterable<readonly LogRow[]>;
  /** Rows of all runs of a session after an event of it: backlog, then live, until `signal`. */
  followSession: Sessions['follow'];
  /** Where the stream of a session goes on after an event (session-resume.ts). */
  resumeSession(resuming: Resuming): ReturnType<typeof resumeSession>;
  /** What was said in a session, in order, as it is stored (conversation.ts). */
  conversationPage(query: ConversationQuery): ReturnType<typeof conversationPage>;
  /** What an event of the run follows from, and what followed from it (causation.ts). */
  causesOf(run: RunRef, eventId: string): ReturnType<typeof causesOf>;
  effectsOf(run: RunRef, eventId: string): ReturnType<typeof effectsOf>;
  /** Ends the log of a run that no workflow ever ran for. False: it has ended already, or there is none. */
  endUnstarted(run: RunRef, failure: StartFailure): Promise<boolean>;
  /** Runs whose projection stopped, and the code of what stopped it. */
  problems(limit: number): ReturnType<Stores['log']['problems']>;
  /** Lists of runs with what each waits for, as they are stored. */
  overview(tenant: string, query: OverviewQuery): ReturnType<typeof overview>;
  /** Those that wait for a person, and how many there are, counted no further than `countTo`. */
  waitingRuns(tenant: string, query: WaitingQuery): ReturnType<typeof waitingRuns>;
  /** Yields when something of the tenant's runs may have changed, the first time at once, until `signal` (changes.ts). */
  changes(tenant: string, signal: AbortSignal): AsyncIterable<'changed'>;
  /** Waits for a hinted piece of history. For the projector. */
  advance(run: RunRef, goal: Goal): Promise<Advanced>;
  /** Throws HostError run_state_conflict while the run streams. */
  rebuild(run: RunRef): Promise<Rebuilt>;
  /** What the first `length` entries of its log came of: for forks and bundles (recording.ts). */
  recording(run: RunRef, length: number, maxBytes?: number): Promise<Recording>;
  rebuildAll(): ReturnType<typeof rebuildAll>;
  /** Calls when the database is back after it was away, and may have lost what it confirmed last; returns what ends it. */
  onReconnect: Stores['log']['onReconnect'];
  /** Stops listening. */
  close(): void;
}

export function createLog({ stores, history, logger, processId }: LogDeps): Log {
  const parts = { stores, history, logger };
  const caughtUp = coalesce(
    async ({ run, stored }: { readonly run: RunRef; readonly stored?: Head }) =>
      (await advance(parts, run, { from: stored })).head,
    ({ run: { tenant, runId } }) => JSON.stringify([tenant, runId]),
  );
  const catchUp = (run: RunRef) => caughtUp({ run });
  const changes = createChanges(stores, logger);
  const followers = createFollowers({ stores, logger, processId, catchUp });

  async function fresh(run: RunRef): Promise<Fresh> {
    const { runId } = run;
    const stored = await stores.log.head(run);
    if (!stored) throw new HostError('run_not_found', { runId });
    if (stored.closed) return { head: stored, stale: false };
    try {
      return { head: await caughtUp({ run, stored }), stale: false };
    } catch (error) {
      // Temporal away, or a fault that is noted with the run (architecture §3.3): what is stored is still true.
      const code = codeOf(error);
      logger.debug('a read is served from what is stored', { runId, code });
      const head = (await stores.log.head(run)) ?? stored;
      return { head, stale: true, ...(code === undefined ? {} : { code }) };
    }
  }

  async function endUnstarted(run: RunRef, failure: StartFailure): Promise<boolean> {
    const head = await stores.log.head(run);
    if (!head || head.closed) return false;
    const { kind } = await stores.log.append(startFailedBatch(run, head, failure));
    return kind === 'appended';
  }

  return {
    catchUp,
    fresh,
    head: (run) => stores.log.head(run),
    onReconnect: (listener) => stores.log.onReconnect(listener),
    rows: (run, query) => readRows(stores.log, run, query),
    questions: (run, nodeId) => readQuestions(stores.log, run, nodeId),
    sequenceOf: (run, eventId) => stores.log.sequenceOf(run, eventId),
    follow: (run, options) => followers.follow(run, options),
    followSession: createSessions(stores).follow,
    resumeSession: (resuming) => resumeSession({ stores, fresh }, resuming),
    conversationPage: (query) => conversationPage(stores, query),
    causesOf: (run, eventId) => causesOf(stores, run, eventId),
    effectsOf: (run, eventId) => effectsOf(stores, run, eventId),
    endUnstarted,
    problems: (limit) => stores.log.problems(limit),
    overview: (tenant, query) => overview(stores.runs, tenant, query),
    waitingRuns: (tenant, query) => waitingRuns(stores.runs, tenant, query),
    changes: (tenant, signal) => changes.watch(tenant, signal),
    advance: (run, goal) => advance(parts, run, { goal }),
    rebuild: (run) => rebuild(parts, run),
    recording: (run, length, maxBytes) => readRecording(parts, run, { length, maxBytes }),
    rebuildAll: () => rebuildAll(parts),
    close() {
      followers.close();
      changes.close();
    },
  };
}
