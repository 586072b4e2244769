// The socket of Core (seed 004 §1): accepts agents on a Unix socket and, where asked for, on loopback TCP, and keeps one
// session for each. Connections know nothing of each other.
import { once } from 'node:events';
import { chmod } from 'node:fs/promises';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { Connection } from './connection.ts';
import { nowMs } from '../../system/time.ts';
import type { ProtocolErrorCode } from '../messages.ts';
import { AuditQuota } from '../session/pace.ts';
import type { AgentServer, AgentServerOptions, LiveSession } from '../parts.ts';
import type { ProtocolLimits } from '../limits.ts';

const LOOPBACK = '127.0.0.1';
/** Time between two looks at deadlines, in ms: a quarter of the shortest limit, within these. */
const MIN_TICK_MS = 10;
const MAX_TICK_MS = 100;

/** The socket's folder is there (place.ts). Throws the system's error of `listen`. */
export async function createAgentServer(options: AgentServerOptions): Promise<AgentServer> {
  const connections = new Connections(options);
  const unix = createServer((socket) => connections.accept(socket, 'unix'));
  await listening(unix.listen(options.socketPath));
  await chmod(options.socketPath, 0o600);
  const servers = [unix];
  let tcpAddress: string | undefined;
  if (options.tcpPort !== undefined) {
    const tcp = createServer((socket) => connections.accept(socket, 'tcp'));
    try {
      await listening(tcp.listen(options.tcpPort, LOOPBACK));
    } catch (error) {
      unix.close();
      throw error;
    }
    servers.push(tcp);
    tcpAddress = `${LOOPBACK}:${(tcp.address() as AddressInfo).port}`;
  }
  const ticks = setInterval(() => connections.tick(), tickMs(options.limits));
  let stopped: Promise<void> | undefined;
  const stop = async (drainMs: number): Promise<void> => {
    const closed = servers.map(closing);
    await connections.stop(drainMs);
    clearInterval(ticks);
    await Promise.all(closed);
  };
  return {
    socketPath: options.socketPath,
    ...(tcpAddress !== undefined && { tcpAddress }),
    sessions: () => connections.sessions(),
    stop: (drainMs) => (stopped ??= stop(drainMs)),
  };
}

function tickMs({ heartbeatIntervalMs, helloMs, frameMs, cancelMs }: ProtocolLimits): number {
  const shortest = Math.min(heartbeatIntervalMs, helloMs, frameMs, cancelMs) / 4;
  return Math.min(MAX_TICK_MS, Math.max(MIN_TICK_MS, shortest));
}

/** Throws what `listen` failed with. */
async function listening(server: Server): Promise<void> {
  // A failed accept (no file descriptors left) is that connection's end, not the server's.
  server.on('error', () => undefined);
  await once(server, 'listening');
}

function closing(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}

/** ms that the calls of a session have which gave its place to another. */
const REPLACED_MS = 4_000;

/** All connections of one server: who is unknown yet, and which agent has which. */
class Connections {
  readonly #options: AgentServerOptions;
  readonly #all = new Set<Connection>();
  /** By transport: strangers on TCP, which any user of the machine reaches, keep nobody out of the Unix socket. */
  readonly #unknown = { unix: new Set<Connection>(), tcp: new Set<Connection>() };
  readonly #byAgent = new Map<string, Connection>();
  readonly #quota = new AuditQuota(nowMs());
  #stopping = false;

  constructor(options: AgentServerOptions) {
    this.#options = options;
  }

  accept(socket: Socket, transport: 'unix' | 'tcp'): void {
    const { maxUnknownConnections } = this.#options.limits;
    const unknown = this.#unknown[transport];
    if (this.#stopping || unknown.size >= maxUnknownConnections) {
      socket.on('error', () => undefined);
      socket.destroy();
      if (this.#quota.takes('connection.refused', nowMs()))
        this.#options.audit({
          kind: 'connection.refused',
          details: { code: 'protocol.flood', transport, unknown: unknown.size },
        });
      return;
    }
    const connection: Connection = new Connection(socket, {
      options: this.#options,
      transport,
      claim: (one, attached) => this.#claim(one, attached),
      release: (one) => this.#release(one),
    });
    this.#all.add(connection);
    unknown.add(connection);
    void connection.gone.then(() => this.#all.delete(connection));
  }

  sessions(): readonly LiveSession[] {
    return [...this.#byAgent.values()].filter(({ open }) => open);
  }

  tick(): void {
    for (const connection of this.#all) connection.tick();
  }

  async stop(drainMs: number): Promise<void> {
    this.#stopping = true;
    await Promise.all(
      [...this.#all].map((connection) => connection.drain('core.stopping', drainMs)),
    );
  }

  /** One session for an agent. Who comes by the operator's hand goes before the process that Core started. */
  #claim(connection: Connection, attached: boolean): ProtocolErrorCode | undefined {
    const before = this.#byAgent.get(connection.agentId);
    const gives = before !== undefined && attached && !before.attached;
    if (before && !gives) return 'protocol.agent_already_connected';
    if (!before && this.#byAgent.size >= this.#options.limits.maxSessions) return 'protocol.flood';
    if (this.#stopping) return 'protocol.draining';
    this.#forget(connection);
    this.#byAgent.set(connection.agentId, connection);
    void before?.drain('agent.replaced', REPLACED_MS);
    return undefined;
  }

  #forget(connection: Connection): void {
    for (const unknown of Object.values(this.#unknown)) unknown.delete(connection);
  }

  #release(connection: Connection): void {
    this.#forget(connection);
    if (this.#byAgent.get(connection.agentId) === connection)
      this.#byAgent.delete(connection.agentId);
  }
}
