// Parts of OpenSentience tests: messages as an agent writes them, rules with small limits, a server with a scripted gate,
// and an agent that says over a real socket exactly what a test tells it to.
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRedactor } from '../../../src/rules/redaction.ts';
import type { SessionRules } from '../../../src/opensentience/session/effects.ts';
import { encodeFrame, FrameDecoder } from '../../../src/opensentience/frame.ts';
import { DEFAULT_LIMITS, type ProtocolLimits } from '../../../src/opensentience/limits.ts';
import type {
  AgentMessageType,
  AgentPayloads,
  CoreMessage,
  CoreMessageType,
  Correlation,
  DeclaredTool,
  Envelope,
  JsonMap,
} from '../../../src/opensentience/messages.ts';
import type {
  AgentServer,
  AuditNote,
  Gate,
  LiveSession,
  SessionCall,
} from '../../../src/opensentience/parts.ts';
import { placeSocket } from '../../../src/opensentience/socket/place.ts';
import { createAgentServer } from '../../../src/opensentience/socket/server.ts';

export const AGENT = 'org.example.notes';
/** A known secret: must be seen nowhere. */
export const CANARY = 'canary-7f3e9a-secret-value';
const redactor = createRedactor([{ id: 'canary', value: CANARY }]);

export function rulesOf(limits: Partial<ProtocolLimits> = {}): SessionRules {
  return {
    limits: { ...DEFAULT_LIMITS, ...limits },
    instanceId: 'core-1',
    coreVersion: '0.1.0',
    redactor,
  };
}

export function message<Type extends AgentMessageType>(
  type: Type,
  payload: AgentPayloads[Type],
  more: Partial<Envelope> = {},
): Envelope<Type, AgentPayloads[Type]> {
  return { v: 1, id: randomUUID(), ts: '2026-01-16T12:00:00Z', ...more, type, payload };
}

export function helloOf(
  agentId = AGENT,
  token = 'right',
): Envelope<'agent.hello', AgentPayloads['agent.hello']> {
  return message('agent.hello', {
    session_token: token,
    agent_id: agentId,
    agent_version: '1.0.0',
    protocol: { supported_versions: [1], capabilities: ['tools', 'streaming', 'cancellation'] },
  });
}

export function toolOf(
  name: string,
  more: Partial<DeclaredTool> = {},
  agentId = AGENT,
): DeclaredTool {
  return {
    tool_id: `${agentId}/${name}`,
    name,
    description: `Does ${name}.`,
    input_schema: { type: 'object', properties: { n: { type: 'integer' } } },
    ...more,
  };
}

export function callOf(toolId: string, more: Partial<SessionCall> = {}): SessionCall {
  return {
    toolId,
    input: { n: 1 },
    sideEffects: true,
    timeoutMs: 30_000,
    maxInputBytes: 10_000,
    maxOutputBytes: 100_000,
    idempotencyKey: 'effect-1',
    requestId: 'request-1',
    correlationId: 'run-1',
    causationId: 'event-1',
    actor: { type: 'system', id: 'host' },
    caller: { type: 'agent', id: 'desk' },
    context: {},
    runId: 'run-1',
    signal: new AbortController().signal,
    ...more,
  };
}

/** An agent that says what it is told to. */
export class RawAgent {
  readonly socket: Socket;
  readonly received: CoreMessage[] = [];
  readonly ended: Promise<void>;
  readonly #decoder = new FrameDecoder(64 * 1024 * 1024);
  #waiting: (() => void)[] = [];
  /** Called with every message of Core, before a test looks at it. */
  onMessage: (message: CoreMessage) => void = () => undefined;

  constructor(address: string | { port: number }) {
    this.socket =
      typeof address === 'string' ? connect(address) : connect(address.port, '127.0.0.1');
    this.socket.on('error', () => undefined);
    this.socket.on('data', (chunk) => {
      for (const frame of this.#decoder.push(chunk)) {
        if (!frame.ok) throw new Error(`Core sent a bad frame: ${frame.fault}`);
        const one = frame.value as unknown as CoreMessage;
        this.received.push(one);
        this.onMessage(one);
      }
      this.#wake();
    });
    this.ended = new Promise((resolve) => this.socket.once('close', () => resolve()));
    void this.ended.then(() => this.#wake());
  }

  #wake(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  write(bytes: Uint8Array): void {
    if (this.socket.writable) this.socket.write(bytes);
  }

  send(one: object): void {
    this.write(encodeFrame(one, 64 * 1024 * 1024));
  }

  /** The first message of the type that was not asked for yet; throws when the connection ends without it. */
  async next<Type extends CoreMessageType>(
    type: Type,
  ): Promise<Extract<CoreMessage, { type: Type }>> {
    for (;;) {
      const at = this.received.findIndex((one) => one.type === type);
      if (at >= 0) return this.received.splice(at, 1)[0] as Extract<CoreMessage, { type: Type }>;
      if (this.socket.closed) throw new Error(`The connection ended without ${type}.`);
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  /** Says hello, and declares tools. */
  async join(
    agentId = AGENT,
    tools: readonly DeclaredTool[] = [toolOf('echo', {}, agentId)],
  ): Promise<string> {
    this.send(helloOf(agentId));
    const welcome = await this.next('core.welcome');
    if (welcome.error) throw new Error(welcome.error.code);
    if (tools.length > 0) {
      this.send(message('agent.tools.register', { tools }));
      await this.next('core.tools.registered');
    }
    return welcome.payload.session_id;
  }

  answer(call: Extract<CoreMessage, { type: 'core.tool.call' }>, more: JsonMap = {}): void {
    const { request_id, correlation_id, causation_id } = call;
    const ids = {
      ...(request_id && { request_id }),
      ...(correlation_id && { correlation_id }),
      ...(causation_id && { causation_id }),
    };
    const said = {
      call_id: call.payload.call_id,
      status: 'succeeded' as const,
      output: {},
      ...more,
    };
    this.send(message('agent.tool.result', said as AgentPayloads['agent.tool.result'], ids));
  }
}

export interface Stage {
  readonly server: AgentServer;
  readonly audit: AuditNote[];
  readonly kinds: () => string[];
  readonly logs: unknown[];
  readonly closed: { readonly agentId: string; readonly reason: string }[];
  session(agentId?: string): LiveSession;
  agent(): RawAgent;
  stop(): Promise<void>;
}

/** Admits the token `right`, any number of times. */
const open: Gate = async ({ sessionToken }) =>
  sessionToken === 'right'
    ? { ok: true, attached: true }
    : { ok: false, code: 'protocol.unauthorized', reason: 'wrong token' };

export async function startStage(
  limits: Partial<ProtocolLimits> = {},
  { gate = open, tcp = false }: { gate?: Gate; tcp?: boolean } = {},
): Promise<Stage> {
  const folder = mkdtempSync(join(tmpdir(), 'os-'));
  const audit: AuditNote[] = [];
  const logs: unknown[] = [];
  const closed: { agentId: string; reason: string }[] = [];
  const log = (text: string, fields?: Record<string, unknown>): void =>
    void logs.push([text, fields]);
  const server = await createAgentServer({
    socketPath: placeSocket(join(folder, 'run')).path,
    ...(tcp && { tcpPort: 0 }),
    ...rulesOf(limits),
    gate,
    events: {
      opened: () => undefined,
      changed: () => undefined,
      closed: ({ agentId }, reason) => void closed.push({ agentId, reason }),
    },
    audit: (note) => void audit.push(note),
    logger: { warn: log },
  });
  const agents: RawAgent[] = [];
  return {
    server,
    audit,
    kinds: () => audit.map(({ kind }) => kind),
    logs,
    closed,
    session: (agentId = AGENT) => {
      const found = server.sessions().find((one) => one.agentId === agentId);
      if (!found) throw new Error(`${agentId} has no session.`);
      return found;
    },
    agent: () => {
      const agent = new RawAgent(server.socketPath);
      agents.push(agent);
      return agent;
    },
    stop: async () => {
      for (const agent of agents) agent.socket.destroy();
      await server.stop(0);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The result of a call in a frame, with the text of its output as it is given. */
export function resultText(
  call: Extract<CoreMessage, { type: 'core.tool.call' }>,
  output: string,
): Buffer {
  const payload = { call_id: call.payload.call_id, status: 'succeeded' as const, output: {} };
  const { request_id, correlation_id, causation_id } = call;
  const ids = { request_id, correlation_id, causation_id } as Correlation;
  return frameOf(message('agent.tool.result', payload, ids), ['"output":{}', `"output":${output}`]);
}

/** A frame in which a part of the text is another one. */
export function frameOf(one: object, [part, other]: readonly [string, string]): Buffer {
  const body = Buffer.from(JSON.stringify(one).replace(part, other));
  const length = Buffer.alloc(4);
  length.writeUInt32BE(body.length);
  return Buffer.concat([length, body]);
}
