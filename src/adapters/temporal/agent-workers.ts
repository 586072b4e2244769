// Workers of agents' queues (architecture §5): one activity-only worker for each agent that this process has, so that
// calls of its tools come here while it is here, wait durably while nobody has it, and move to whoever has it next.
import type { DataConverter } from '@temporalio/common';
import { Worker, type NativeConnection } from '@temporalio/worker';
import { agentTaskQueue } from '../../rules/run-input.ts';
import type { Logger } from '../../ports/logger.ts';
import type { TemporalTarget } from './connection.ts';
import { keepWorker, type KeptWorker } from './kept-worker.ts';
import { HEARTBEAT_THROTTLE_MS, SHUTDOWN_FORCE_MS, SHUTDOWN_GRACE_MS } from './worker.ts';

/** Polls of one agent's queue that are open at once. */
const MAX_POLLERS = 2;
/** Calls of one agent that this process takes at once: those in flight on its connection, and some that queue there. */
const MAX_CALLS = 512;
/** An agent that went is still polled for this long in ms: one that comes back soon finds its calls waiting here. */
const LINGER_MS = 30_000;

export interface AgentWorkersOptions {
  readonly target: TemporalTarget;
  readonly tenant: string;
  /** `callTool` alone is called on these queues. */
  readonly activities: object;
  readonly dataConverter: DataConverter;
  readonly logger: Logger;
  /** Tests only. Default LINGER_MS. */
  readonly lingerMs?: number;
}

export interface AgentWorkers {
  /** Whether calls of the agent are taken here now (`Core.routable`). Repeats change nothing. */
  note(agentId: string, isTaken: boolean): void;
  /** Agents whose queue is polled, those that linger included. */
  polled(): readonly string[];
  /** Drains all, within the limits of a worker. */
  stop(): Promise<void>;
}

interface Polled {
  readonly worker: KeptWorker;
  leaving?: NodeJS.Timeout;
}

export function createAgentWorkers(options: AgentWorkersOptions): AgentWorkers {
  const { target, tenant, logger, lingerMs = LINGER_MS } = options;
  const polled = new Map<string, Polled>();
  const ending = new Set<Promise<void>>();
  let stopped = false;

  function leave(agentId: string): void {
    const worker = polled.get(agentId)?.worker;
    polled.delete(agentId);
    if (!worker) return;
    const end = worker
      .stop()
      .catch((error: unknown) => logger.warn("an agent's worker did not stop", { agentId, error }))
      .finally(() => ending.delete(end));
    ending.add(end);
  }

  return {
    note(agentId, isTaken) {
      const known = polled.get(agentId);
      if (isTaken) {
        clearTimeout(known?.leaving);
        if (known) known.leaving = undefined;
        else if (!stopped) {
          const create = (connection: NativeConnection) =>
            createAgentWorker(options, connection, agentTaskQueue(tenant, agentId));
          polled.set(agentId, { worker: keepWorker({ target, logger, create }) });
        }
      } else if (known && !known.leaving) {
        known.leaving = setTimeout(() => leave(agentId), lingerMs);
      }
    },
    polled: () => [...polled.keys()].sort(),
    async stop() {
      stopped = true;
      for (const [agentId, { leaving }] of [...polled]) {
        clearTimeout(leaving);
        leave(agentId);
      }
      await Promise.all(ending);
    },
  };
}

function createAgentWorker(
  { target, activities, dataConverter }: AgentWorkersOptions,
  connection: NativeConnection,
  taskQueue: string,
): Promise<Worker> {
  return Worker.create({
    connection,
    namespace: target.namespace,
    taskQueue,
    activities,
    dataConverter,
    activityTaskPollerBehavior: { type: 'simple-maximum', maximum: MAX_POLLERS },
    maxConcurrentActivityTaskExecutions: MAX_CALLS,
    maxHeartbeatThrottleInterval: HEARTBEAT_THROTTLE_MS,
    defaultHeartbeatThrottleInterval: HEARTBEAT_THROTTLE_MS,
    shutdownGraceTime: SHUTDOWN_GRACE_MS,
    shutdownForceTime: SHUTDOWN_FORCE_MS,
  });
}
