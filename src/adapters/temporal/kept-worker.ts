// A worker that comes back by itself when Temporal went away and returned: the run worker, and the ones of agents' queues.
import type { NativeConnection, Worker } from '@temporalio/worker';
import type { Logger } from '../../ports/logger.ts';
import { BackOff, Deadline, rest } from '../../system/time.ts';
import { connectWorker, type TemporalTarget } from './connection.ts';

/** ms before a worker that stopped starts again; doubled up to RESTART_MOST_MS. */
const RESTART_FIRST_MS = 200;
const RESTART_MOST_MS = 5_000;

export interface KeptWorkerOptions {
  readonly target: TemporalTarget;
  readonly create: (connection: NativeConnection) => Promise<Worker>;
  readonly logger: Logger;
}

export interface KeptWorker {
  /** True while it polls. */
  running(): boolean;
  /** Resolves with the first successful start; with `stop` at the latest. */
  readonly ready: Promise<void>;
  /** Drains within the worker's own limits. */
  stop(): Promise<void>;
}

/** Starts at once. While Temporal is away it tries again, at a bounded rate, until it is stopped. */
export function keepWorker(options: KeptWorkerOptions): KeptWorker {
  const stopping = new AbortController();
  const { logger } = options;
  let worker: Worker | undefined;
  let tellReady: () => void = () => undefined;
  const ready = new Promise<void>((resolve) => {
    tellReady = resolve;
  });

  async function runOnce(): Promise<void> {
    const connection = await connectWorker(options.target);
    try {
      const created = await options.create(connection);
      worker = created;
      const done = created.run();
      tellReady();
      if (stopping.signal.aborted) created.shutdown();
      await done;
    } finally {
      worker = undefined;
      await connection
        .close()
        .catch((error: unknown) => logger.debug('worker connection did not close', { error }));
    }
  }

  async function runUntilStopped(): Promise<void> {
    const backOff = new BackOff(RESTART_FIRST_MS, RESTART_MOST_MS);
    while (!stopping.signal.aborted) {
      const longEnough = new Deadline(RESTART_MOST_MS);
      const error = await runOnce().then(
        () => undefined,
        (caught: Error) => caught,
      );
      if (stopping.signal.aborted) return;
      if (longEnough.isOver()) backOff.reset();
      const inMs = backOff.next();
      if (error) logger.warn('the worker stopped and starts again', { error: error.message, inMs });
      await rest(inMs, stopping.signal);
    }
  }

  const running = runUntilStopped().finally(() => tellReady());
  return {
    running: () => worker?.getState() === 'RUNNING',
    ready,
    async stop() {
      stopping.abort();
      if (worker?.getState() === 'RUNNING') worker.shutdown();
      await running;
    },
  };
}
