// Core of one worker (seed 004; architecture §5): joins the server that speaks the protocol, the gate that admits, the
// supervisor that runs processes and the registry that every process of the deployment reads.
import { join } from 'node:path';
import type { Redactor } from '../rules/redaction.ts';
import type { AgentRegistry } from '../ports/agents.ts';
import type { AgentToolMetrics } from '../rules/tool-metrics.ts';
import type { Logger } from '../ports/logger.ts';
import { GivenUpAgents } from './given-up.ts';
import { instanceRow, addMetrics } from './instance-row.ts';
import { DEFAULT_LIMITS, type ProtocolLimits } from './limits.ts';
import {
  agentToolOf,
  isRefused,
  permissionsOf,
  readAgentFolders,
  type AgentFolder,
} from './manifest.ts';
import type {
  AgentServer,
  AgentServerOptions,
  AuditNote,
  Core,
  LiveSession,
  SessionEvents,
} from './parts.ts';
import { DEFAULT_PROCESS_LIMITS, type ProcessLimits } from './process/limits.ts';
import { RegistryWriter } from './registry-writer.ts';
import { Routing } from './routing.ts';
import { createAgentServer } from './socket/server.ts';
import { placeSocket, type SocketPlace } from './socket/place.ts';
import { createSupervisor, type Supervisor } from './process/supervisor.ts';
import { createTokenDesk, withTokens, type TokenDesk } from './tokens.ts';

export interface CoreOptions {
  /** Holds a folder per agent, each with opensentience.agent.json. */
  readonly agentsDir: string;
  /** Made with mode 0700. Where its path is too long for a Unix socket a fresh folder in os.tmpdir() is used. */
  readonly socketDir: string;
  /** Gets `opensentience/children.json` and `opensentience/logs/<agentId>.log`. */
  readonly dataDir: string;
  readonly tenant: string;
  readonly registry: AgentRegistry;
  readonly redactor: Redactor;
  readonly logger: Logger;
  readonly coreVersion: string;
  readonly instanceId: string;
  /** Core's own environment: agents get the variables of it that their manifests name. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Absent: no loopback TCP. 0 takes a free port. */
  readonly tcpPort?: number;
  readonly limits?: Partial<ProtocolLimits>;
  readonly processLimits?: Partial<ProcessLimits>;
}

/** How an agent is that is refused: nothing of it runs. */
const REFUSED = { status: 'refused', restarts: 0 } as const;

/** What the parts of one Core share while it is put together. */
interface Parts {
  readonly options: CoreOptions;
  readonly limits: ProcessLimits;
  readonly agents: ReadonlyMap<string, AgentFolder>;
  readonly socket: SocketPlace;
  readonly routing: Routing;
  readonly writer: RegistryWriter;
  readonly desk: TokenDesk;
  readonly supervisor: Supervisor;
  readonly givenUp: GivenUpAgents;
  /** Metrics of sessions that ended, by agent. */
  readonly former: Map<string, readonly AgentToolMetrics[]>;
}

/** Reads the manifests, listens, ends what a former Core left running, and starts the agents. */
export async function createCore(options: CoreOptions): Promise<Core> {
  const agents = await readAgentFolders(options.agentsDir, options.logger);
  tellRefused(agents, options.logger);
  const parts = putTogether(options, agents);
  const { socket, writer, supervisor, routing, givenUp } = parts;
  let server: AgentServer;
  try {
    server = await createAgentServer(serverOptions(parts));
  } catch (error) {
    socket.remove();
    throw error;
  }
  writer.start();
  await supervisor.start();
  options.logger.info('agents may connect', {
    agents: agents.size,
    socket: server.socketPath,
    ...(server.tcpAddress === undefined ? {} : { tcp: server.tcpAddress }),
  });
  let stopped: Promise<void> | undefined;
  return {
    instanceId: options.instanceId,
    routable: () => routing.routable(),
    onRoutable: (listener) => routing.onRoutable(listener),
    call: async (agentId, call, connectMs) => {
      // Another Core may have it by now: then the call is that one's.
      const mayWait = await givenUp.look(agentId);
      const agent = agents.get(agentId);
      const withContext = { ...call, context: { ...agent?.manifest.context, ...call.context } };
      // Refused, without a manifest, or left to another Core: it is not to be waited for here. The call goes back to its queue.
      const isAwaited = mayConnect(agent) && mayWait;
      return routing.call(agentId, withContext, isAwaited ? connectMs : 0);
    },
    stop: () => (stopped ??= stop(parts, server)),
  };
}

function putTogether(options: CoreOptions, agents: ReadonlyMap<string, AgentFolder>): Parts {
  const { registry, tenant, instanceId, logger, environment, redactor, dataDir } = options;
  const limits: ProcessLimits = { ...DEFAULT_PROCESS_LIMITS, ...options.processLimits };
  const socket = placeSocket(options.socketDir);
  const routing = new Routing();
  const former = new Map<string, readonly AgentToolMetrics[]>();
  const writer: RegistryWriter = new RegistryWriter({
    registry,
    tenant,
    instanceId,
    agentIds: [...agents.keys()],
    limits,
    logger,
    row: (agentId) => {
      const agent = agents.get(agentId);
      const life = mayConnect(agent) ? supervisor.view(agentId) : REFUSED;
      const session = routing.session(agentId);
      if (!agent || !life) return undefined;
      return instanceRow({
        tenant,
        instanceId,
        socket: socket.path,
        agent,
        life,
        ...(session ? { session } : {}),
        former: former.get(agentId) ?? [],
      });
    },
  });
  const audit = (note: AuditNote) => writer.note(note);
  const { tokenMs } = limits;
  const desk = createTokenDesk({ tenant, registry, agents, tokenMs, audit });
  const permitted = [...agents].filter(([, agent]) => mayConnect(agent));
  const supervisor = createSupervisor({
    agents: new Map(permitted),
    folder: join(dataDir, 'opensentience'),
    socketPath: socket.path,
    environment,
    desk,
    limits,
    redactor,
    logger,
    audit,
    onChange: (agentId) => {
      writer.touch(agentId, limits.coalesceMs);
      givenUp.changed(agentId);
    },
  });
  const givenUp = new GivenUpAgents({
    ...{ registry, tenant, instanceId, everyMs: limits.renewMs },
    reasonOf: (agentId) => supervisor.givenUp(agentId),
    report: (agentId, reason) => routing.giveUp(agentId, reason),
  });
  return { options, limits, agents, socket, routing, writer, desk, supervisor, givenUp, former };
}

function mayConnect(agent: AgentFolder | undefined): boolean {
  return agent !== undefined && !isRefused(agent.manifest);
}

/** One line for each agent that is refused, with what it asks for. */
function tellRefused(agents: ReadonlyMap<string, AgentFolder>, logger: Logger): void {
  for (const [agentId, { manifest }] of agents) {
    const refused = permissionsOf(manifest).filter(({ state }) => state === 'refused');
    if (refused.length === 0) continue;
    logger.warn(
      'agent refused: it asks for permissions that the host cannot enforce; policy.acknowledgedPermissions of its manifest gives them',
      { agentId, permissions: refused.map(({ permission }) => permission) },
    );
  }
}

function serverOptions(parts: Parts): AgentServerOptions {
  const { options, socket, desk, writer } = parts;
  const { tcpPort, instanceId, coreVersion, redactor, logger } = options;
  return {
    socketPath: socket.path,
    ...(tcpPort === undefined ? {} : { tcpPort }),
    limits: { ...DEFAULT_LIMITS, ...options.limits },
    instanceId,
    coreVersion,
    gate: desk.gate,
    events: sessionEvents(parts),
    audit: (note) => writer.note(note),
    redactor: withTokens(redactor, desk),
    logger,
  };
}

function sessionEvents(parts: Parts): SessionEvents {
  const { agents, routing, supervisor, writer, former, limits } = parts;
  const saveTools = (session: LiveSession) => {
    const agent = agents.get(session.agentId);
    if (!agent) return;
    const tools = session.tools().map((tool) => agentToolOf(agent.manifest, tool));
    writer.saveTools(session.agentId, tools);
  };
  return {
    opened(session) {
      supervisor.opened(session);
      routing.opened(session);
      writer.touch(session.agentId, limits.coalesceMs);
    },
    changed(session, what) {
      if (what === 'tools') {
        supervisor.toolsChanged(session);
        saveTools(session);
      }
      if (what === 'health') supervisor.healthChanged(session);
      if (what !== 'calls') routing.changed(session.agentId);
      writer.touch(session.agentId, what === 'calls' ? limits.coalesceCallsMs : limits.coalesceMs);
    },
    closed(session) {
      const { agentId } = session;
      former.set(agentId, addMetrics(former.get(agentId) ?? [], session.metrics()));
      routing.closed(session);
      supervisor.closed(session);
      writer.touch(agentId, limits.coalesceMs);
    },
  };
}

/** Each step has its limit: drain, end of processes, last words to the registry. */
async function stop(
  { options, limits, routing, supervisor, writer, socket }: Parts,
  server: AgentServer,
): Promise<void> {
  routing.stop();
  supervisor.retire();
  await server.stop(limits.drainMs).catch((error: unknown) => {
    options.logger.warn('the agents could not be told that Core stops', { error });
  });
  await supervisor.ended();
  await writer.stop();
  socket.remove();
}
