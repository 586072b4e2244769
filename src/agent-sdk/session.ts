// One session with Core (seed 004 §4, §6): hello, welcome, registration, then calls until either side says goodbye.
//
//   connect -> agent.hello -> core.welcome -> agent.tools.register -> core.tools.registered -> ready
//   core.welcome with error, or another version -> refused        connection gone -> lost
//   core.goodbye -> calls in flight end, then closed               drain -> agent.goodbye, the same
import {
  PROTOCOL_VERSION,
  type AgentHealth,
  type AgentMessageType,
  type AgentPayloads,
  type CoreMessageType,
  type CorePayloads,
  type Envelope,
  type JsonMap,
  type ProtocolError,
  type ProtocolErrorCode,
} from '../opensentience/messages.ts';
import { Calls } from './calls.ts';
import { correlationOf, envelope, isMap, readEnvelope } from './envelope.ts';
import { AgentError, protocolError } from './errors.ts';
import { exactJson, HEALTH_LEVELS } from './exact-json.ts';
import { HEARTBEAT_MS, MAX_HEALTH_BYTES, MAX_TIMER_MS, type AgentLimits } from './limits.ts';
import { batchesOf, readRegistration, type Registration } from './registration.ts';
import type { Tool } from './tool.ts';
import { openWire, type Wire } from './wire.ts';

export interface Health {
  readonly status: AgentHealth;
  /** Small and free of secrets. */
  readonly details?: JsonMap;
}

export interface SessionSetup {
  readonly id: string;
  readonly version: string;
  readonly manifestHash?: string;
  /** By name; shared by all sessions of the agent. */
  readonly tools: ReadonlyMap<string, Tool>;
  readonly health: () => AgentHealth | Health;
  readonly limits: AgentLimits;
  /** Of performance.now(), when the agent began. */
  readonly startedAtMs: number;
}

export interface SessionEnd {
  /** `goodbye`: Core's; `stopped`: the agent's own; `lost`: neither said so. */
  readonly how: 'goodbye' | 'stopped' | 'lost';
  readonly reason: string;
  /** Core's wish before the next connection. */
  readonly retryAfterMs?: number;
}

const SDK = { name: 'openwop_temporal_agent_sdk', version: '1.0.0' };
const CAPABILITIES = ['tools', 'streaming', 'cancellation'];
type Handlers = { [Type in CoreMessageType]: (message: Envelope) => void };
type Reply = 'core.welcome' | 'core.tools.registered' | 'core.tools.unregistered';

interface Waiting {
  readonly type: Reply;
  readonly sentId: string;
  settle(reply: Envelope | AgentError): void;
}

export class Session {
  readonly #setup: SessionSetup;
  readonly #calls: Calls;
  readonly #waiting = new Set<Waiting>();
  #wire!: Wire;
  #sessionId = '';
  #heartbeat: NodeJS.Timeout | undefined;
  #goodbye: SessionEnd | undefined;
  #end!: (end: SessionEnd) => void;
  /** Resolves once, when the connection is closed. */
  readonly ended = new Promise<SessionEnd>((resolve) => {
    this.#end = resolve;
  });
  readonly #handlers: Handlers = {
    'core.welcome': (message) => this.#answered('core.welcome', message),
    'core.tools.registered': (message) => this.#answered('core.tools.registered', message),
    'core.tools.unregistered': (message) => this.#answered('core.tools.unregistered', message),
    'core.tool.call': (message) => this.#calls.start(message),
    'core.tool.cancel': (message) => this.#calls.cancel(message),
    'core.ping': (message) => this.#send('agent.pong', {}, replyTo(message)),
    'core.goodbye': (message) => void this.#takeGoodbye(message),
    'core.error': (message) => this.#takeError(message),
  };

  private constructor(setup: SessionSetup) {
    this.#setup = setup;
    const { limits, tools, id } = setup;
    this.#calls = new Calls({
      limits,
      send: (type, payload, echoed) => this.#send(type, payload, echoed),
      refuse: (message, code) => this.#refuse(message, code),
      toolOf: (toolId) =>
        toolId.startsWith(`${id}/`) ? tools.get(toolId.slice(id.length + 1)) : undefined,
      crowded: () => this.#wire.crowded,
    });
  }

  /** Rejects with AgentError: unreachable, refused, too slow. The token is kept no longer than this takes. */
  static async open(
    credentials: { readonly socket: string; readonly token: string },
    setup: SessionSetup,
  ): Promise<Session> {
    const session = new Session(setup);
    session.#wire = await openWire(credentials.socket, setup.limits, {
      message: (value) => session.#take(value),
      ended: (reason) => session.#closed(reason),
    });
    try {
      session.#welcomed(await session.#hello(credentials.token));
      return session;
    } catch (error) {
      session.#wire.end();
      throw error;
    }
  }

  /**
   * Core's word on each tool. Rejects with AgentError when it gives none. `replace`: these are all tools of the agent,
   * and Core forgets what was declared before; else a name that Core knows is refused.
   */
  async register(tools: readonly Tool[], replace = false): Promise<Registration> {
    const declared = tools.map((one) => one.declare(this.#setup.id));
    const all: Registration = { registered: [], rejected: [] };
    for (const [at, batch] of batchesOf(declared, this.#wire.maxFrameBytes).entries()) {
      // Only the first forgets: the others belong to the same set.
      const payload = { tools: batch, ...(replace && at === 0 && { replace }) };
      const reply = await this.#ask('agent.tools.register', payload, 'core.tools.registered');
      const { registered, rejected } = readRegistration(reply.payload);
      all.registered.push(...registered);
      all.rejected.push(...rejected);
    }
    return all;
  }

  async unregister(names: readonly string[]): Promise<void> {
    const tool_ids = names.map((name) => `${this.#setup.id}/${name}`);
    await this.#ask('agent.tools.unregister', { tool_ids }, 'core.tools.unregistered');
  }

  /** Says goodbye, lets calls in flight end within drainMs, closes. Resolves with `ended`. */
  async drain(reason: string): Promise<void> {
    if (!this.#goodbye) {
      this.#goodbye = { how: 'stopped', reason };
      this.#send('agent.goodbye', { reason });
    }
    await this.#calls.drain();
    this.#wire.end();
    await this.ended;
  }

  #hello(token: string): Promise<Envelope> {
    const { id, version, manifestHash } = this.#setup;
    const hello: AgentPayloads['agent.hello'] = {
      session_token: token,
      agent_id: id,
      agent_version: version,
      ...(manifestHash !== undefined && { manifest_hash: manifestHash }),
      protocol: { supported_versions: [PROTOCOL_VERSION], capabilities: CAPABILITIES },
      sdk: SDK,
    };
    return this.#ask('agent.hello', hello, 'core.welcome');
  }

  #welcomed(message: Envelope): void {
    const welcome = message.payload as Partial<CorePayloads['core.welcome']>;
    if (welcome.accepted_version !== PROTOCOL_VERSION)
      throw new AgentError('protocol.unsupported_version', 'Core speaks no version of this agent.');
    this.#sessionId = String(welcome.session_id);
    const { max_frame_bytes: frame, heartbeat_interval_ms: interval } = welcome;
    if (typeof frame === 'number' && frame > 0) this.#wire.useMaxFrameBytes(frame);
    const everyMs = typeof interval === 'number' ? interval : HEARTBEAT_MS.most;
    const bounded = Math.min(Math.max(everyMs, HEARTBEAT_MS.least), HEARTBEAT_MS.most);
    this.#heartbeat = setInterval(() => this.#beat(), bounded);
  }

  #beat(): void {
    const { status, details } = healthOf(this.#setup.health);
    this.#send('agent.heartbeat', {
      session_id: this.#sessionId,
      uptime_ms: Math.round(performance.now() - this.#setup.startedAtMs),
      inflight_calls: this.#calls.inflight,
      status,
      ...(details && { details }),
    });
  }

  #take(value: { [key: string]: unknown }): void {
    const message = readEnvelope(value);
    // Nothing in it can be answered with certainty.
    if (!message) return;
    if (Object.hasOwn(this.#handlers, message.type))
      return this.#handlers[message.type as CoreMessageType](message);
    // Seed 004 §6.2: answered when a reply is expected, else ignored.
    const asks = typeof message.request_id === 'string' && message.in_reply_to === undefined;
    if (asks) this.#refuse(message, 'protocol.unknown_type');
  }

  async #takeGoodbye(message: Envelope): Promise<void> {
    const { reason, retry_after_ms } = message.payload as Partial<CorePayloads['core.goodbye']>;
    const wait = typeof retry_after_ms === 'number' && { retryAfterMs: retry_after_ms };
    this.#goodbye ??= { how: 'goodbye', reason: String(reason ?? ''), ...wait };
    await this.#calls.drain();
    this.#wire.end();
  }

  #takeError(message: Envelope): void {
    const asked = [...this.#waiting].find(({ sentId }) => sentId === message.in_reply_to);
    asked?.settle(agentError(message.error));
  }

  #answered(type: Reply, message: Envelope): void {
    const asked = [...this.#waiting].filter((one) => one.type === type);
    // Replies come in the order of what was asked; a Core that names the message is believed first.
    const meant = asked.find(({ sentId }) => sentId === message.in_reply_to) ?? asked[0];
    meant?.settle(message.error ? agentError(message.error) : message);
  }

  /** Sends, and waits for the reply at most replyMs. */
  #ask<Type extends AgentMessageType>(
    type: Type,
    payload: AgentPayloads[Type],
    reply: Reply,
  ): Promise<Envelope> {
    return new Promise((resolve, reject) => {
      const message = envelope(type, payload);
      this.#wire.send(message);
      const waiting: Waiting = {
        type: reply,
        sentId: message.id,
        settle: (answer) => {
          clearTimeout(timer);
          this.#waiting.delete(waiting);
          if (answer instanceof AgentError) reject(answer);
          else resolve(answer);
        },
      };
      const late = new AgentError('protocol.too_slow', `Core did not answer ${type}.`);
      const timer = setTimeout(
        () => waiting.settle(late),
        Math.min(this.#setup.limits.replyMs, MAX_TIMER_MS),
      );
      this.#waiting.add(waiting);
    });
  }

  #send<Type extends AgentMessageType>(
    type: Type,
    payload: AgentPayloads[Type],
    extras: Parameters<typeof envelope>[2] = {},
  ): void {
    this.#wire.send(envelope(type, payload, extras));
  }

  #refuse(message: Envelope, code: ProtocolErrorCode): void {
    this.#send('agent.error', {}, { ...replyTo(message), error: protocolError(code) });
  }

  #closed(reason: string): void {
    clearInterval(this.#heartbeat);
    // Nobody awaits what the calls give: their signal is all that can still be done.
    this.#calls.abort(0);
    for (const waiting of this.#waiting)
      waiting.settle(new AgentError('agent.connection_lost', 'Core closed the connection.'));
    this.#end(this.#goodbye ?? { how: 'lost', reason });
  }
}

function replyTo(message: Envelope): Pick<Envelope, 'in_reply_to'> & object {
  return { in_reply_to: message.id, ...correlationOf(message) };
}

function agentError(error: ProtocolError | undefined): AgentError {
  return new AgentError(
    error?.code ?? 'protocol.invalid_message',
    error?.message ?? 'Core said no.',
  );
}

/** A health that cannot be told is not good. */
function healthOf(health: SessionSetup['health']): Health {
  try {
    const told = health();
    if (typeof told === 'string') return { status: told };
    const { status, details } = told;
    const json = exactJson(details, HEALTH_LEVELS);
    const small = json && Buffer.byteLength(json.text) <= MAX_HEALTH_BYTES && isMap(json.value);
    return small ? { status, details: json.value } : { status };
  } catch {
    return { status: 'degraded' };
  }
}
