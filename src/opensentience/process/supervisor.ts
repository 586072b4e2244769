// Runs the agents of one Core (seed 004 §4.5, §5): one life each (supervised-agent.ts), started, watched and ended
// together. What a former Core left running is ended first.
import { rest, within } from '../../system/time.ts';
import { join } from 'node:path';
import { openChildren } from './children.ts';
import { openLogFile } from './log-file.ts';
import type { AgentFolder } from '../manifest.ts';
import { createMemoryWatch } from './memory-watch.ts';
import type { LiveSession } from '../parts.ts';
import { SupervisedAgent, type LifeSupport, type LifeView } from './supervised-agent.ts';

/** Size of an agent's log file, and of its predecessor. */
const LOG_BYTES = 1024 * 1024;
/** Processes that have not said hello yet, when Core starts; the next one waits, so that each has its time. */
const MAX_STARTING = 16;
const LOOK_EVERY_MS = 50;

export interface SupervisorOptions extends Omit<LifeSupport, 'children' | 'memory'> {
  readonly agents: ReadonlyMap<string, AgentFolder>;
  /** Holds children.json and logs/<agentId>.log. */
  readonly folder: string;
}

export interface Supervisor {
  /** Resolves when orphans are ended; then each agent that has something to launch is started, a few at a time. */
  start(): Promise<void>;
  opened(session: LiveSession): void;
  toolsChanged(session: LiveSession): void;
  healthChanged(session: LiveSession): void;
  closed(session: LiveSession): void;
  view(agentId: string): LifeView | undefined;
  /** Why the agent is not started any more: sentences. */
  givenUp(agentId: string): string | undefined;
  /** Nothing is started any more; processes without a session are asked to end. */
  retire(): void;
  /** Resolves when all processes ended, by SIGKILL at the latest. */
  ended(): Promise<void>;
}

export function createSupervisor(options: SupervisorOptions): Supervisor {
  const { agents, folder, limits, logger, audit } = options;
  const children = openChildren(join(folder, 'children.json'), logger);
  const memory = createMemoryWatch(limits.memoryEveryMs);
  const support: LifeSupport = { ...options, children, memory };
  const lives = new Map(
    [...agents].map(([id, agent]) => {
      const file = openLogFile(join(folder, 'logs', `${id}.log`), LOG_BYTES);
      return [id, new SupervisedAgent(agent, support, file)] as const;
    }),
  );
  let retired = false;
  const starting = () =>
    [...lives.values()].filter((life) => life.view().status === 'starting').length;
  async function startAll(): Promise<void> {
    for (const life of lives.values()) {
      while (!retired && starting() >= MAX_STARTING) await rest(LOOK_EVERY_MS);
      if (retired) return;
      life.start();
    }
  }
  const of = (session: LiveSession) => lives.get(session.agentId);
  return {
    async start() {
      for (const agentId of await children.endOrphans()) {
        audit({ agentId, kind: 'agent.orphan_ended', details: {} });
        logger.warn('ended an agent that a former process left running', { agentId });
      }
      void startAll();
    },
    opened: (session) => of(session)?.opened(session),
    toolsChanged: (session) => of(session)?.toolsChanged(session),
    healthChanged: (session) => of(session)?.healthChanged(session),
    closed: (session) => of(session)?.closed(session),
    view: (agentId) => lives.get(agentId)?.view(),
    givenUp: (agentId) => lives.get(agentId)?.givenUp,
    retire() {
      retired = true;
      for (const life of lives.values()) life.stop();
    },
    async ended() {
      // leave, SIGTERM, SIGKILL: more than that only a kernel that does not let go can take.
      const longestMs = limits.leaveMs + limits.terminateMs + limits.lingerMs;
      const ended = Promise.all([...lives.values()].map((life) => life.ended));
      await within(longestMs, ended, () => undefined);
      for (const life of lives.values()) life.kill();
    },
  };
}
