// One agent's connection as a machine without clock, socket or chance of its own (seed 004 §4 to §6):
//
//   connected ──hello──▶ checking ──admitted──▶ ready ──drain, agent.goodbye──▶ draining ──▶ closed
//       └──────────────────┴── anything else, too slow, refused ──▶ closed ◀── frame fault, lost, ended
//
// TABLE is complete: every state before the end has a reaction to every input. Time and ids come in; effects go out, in
// order.
import type { AgentSessionView } from '../../ports/agents.ts';
import type { JsonObject } from '../../rules/json.ts';
import { CallTable, type NewCall } from './calls.ts';
import type { Effect, Outgoing, SessionRules } from './effects.ts';
import type { FrameFault } from '../frame.ts';
import type { AgentMessageType, AgentPayloads, Envelope, ProtocolErrorCode } from '../messages.ts';
import type { Admission } from '../parts.ts';
import type { MessageFault } from './read-message.ts';
import type { ToolTable } from './registration.ts';
import { closed, frameFault, over, unroutable } from './end.ts';
import { admitted, awaitCheck, awaitHello, early, hello, invalidHello, refused } from './hello.ts';
import {
  addCall,
  agentError,
  drain,
  goodbye,
  heartbeat,
  invalid,
  pong,
  register,
  registerTooLate,
  secondHello,
  unknownType,
  unregister,
  watch,
  watchDrain,
} from './open.ts';

export type SessionState = 'connected' | 'checking' | 'ready' | 'draining' | 'closed';

export type SessionInputs = {
  [Type in AgentMessageType]: Envelope<Type, AgentPayloads[Type]>;
} & {
  invalid: MessageFault;
  'unknown-type': MessageFault;
  'frame-fault': { readonly fault: FrameFault };
  admitted: { readonly sessionId: string; readonly admission: Extract<Admission, { ok: true }> };
  refused: { readonly code: ProtocolErrorCode };
  call: NewCall;
  cancel: { readonly callId: string };
  tick: object;
  drain: { readonly reason: string; readonly deadlineMs: number };
  /** A limit of the connection, or the word of Core. */
  close: { readonly reason: string; readonly code?: ProtocolErrorCode };
  /** The socket is gone. */
  ended: object;
};
export type InputName = keyof SessionInputs;
export type SessionInput = {
  [Name in InputName]: { readonly name: Name; readonly of: SessionInputs[Name] };
}[InputName];

type Reaction<Name extends InputName> = (session: Session, input: SessionInputs[Name]) => void;
type Row = { readonly [Name in InputName]: Reaction<Name> };

/** In every state, unless it says otherwise. */
const ANYTIME = {
  'frame-fault': frameFault,
  admitted: nothing,
  refused: nothing,
  call: unroutable,
  close: closed,
  ended: (session: Session) => over(session, 'ended'),
} as const;

const EARLY = {
  ...ANYTIME,
  'agent.hello': early,
  'agent.tools.register': early,
  'agent.tools.unregister': early,
  'agent.tool.stream': early,
  'agent.tool.result': early,
  'agent.tool.cancel_ack': early,
  'agent.heartbeat': early,
  'agent.pong': early,
  'agent.goodbye': early,
  'agent.error': early,
  invalid: early,
  'unknown-type': early,
  cancel: nothing,
  drain: closed,
} as const;

const OPEN = {
  ...ANYTIME,
  'agent.hello': secondHello,
  'agent.tools.unregister': unregister,
  'agent.tool.stream': (session, message) => session.calls.onStream(message),
  'agent.tool.result': (session, message) => session.calls.onResult(message, session.nowMs),
  'agent.tool.cancel_ack': (session, message) => session.calls.onCancelAck(message),
  'agent.heartbeat': heartbeat,
  'agent.pong': pong,
  'agent.error': agentError,
  invalid: invalid,
  'unknown-type': unknownType,
  cancel: (session, { callId }) => session.calls.cancel(callId, session.nowMs),
  drain: drain,
} as const satisfies Partial<Row>;

const TABLE: { readonly [State in Exclude<SessionState, 'closed'>]: Row } = {
  connected: { ...EARLY, 'agent.hello': hello, invalid: invalidHello, tick: awaitHello },
  checking: { ...EARLY, admitted: admitted, refused: refused, tick: awaitCheck },
  ready: {
    ...OPEN,
    'agent.tools.register': register,
    'agent.goodbye': goodbye,
    call: addCall,
    tick: watch,
  },
  draining: {
    ...OPEN,
    'agent.tools.register': registerTooLate,
    'agent.goodbye': nothing,
    tick: watchDrain,
  },
};

type Health = AgentSessionView['health'];

export class Session {
  readonly rules: SessionRules;
  readonly transport: 'unix' | 'tcp';
  readonly calls: CallTable;
  state: SessionState = 'connected';
  /** From a valid hello on. */
  agentId: string | undefined;
  sessionId: string | undefined;
  hello: SessionInputs['agent.hello'] | undefined;
  admission: Extract<Admission, { ok: true }> | undefined;
  tools: ToolTable | undefined;
  /** Of the input that is handled. */
  nowMs: number;
  /** When the present state began. */
  sinceMs: number;
  connectedAtMs: number;
  heartbeat: Pick<AgentSessionView, 'lastHeartbeatAtMs' | 'uptimeMs'> = {};
  /** A heartbeat or an answer to core.ping. */
  lastSignAtMs: number | undefined;
  lastPingAtMs = 0;
  said: 'ok' | 'degraded' | 'unhealthy' = 'ok';
  silent = false;
  faulty = 0;
  drainUntilMs = Infinity;
  #effects: Effect[] = [];

  constructor(rules: SessionRules, transport: 'unix' | 'tcp', nowMs: number) {
    this.rules = rules;
    this.transport = transport;
    this.nowMs = nowMs;
    this.sinceMs = nowMs;
    this.connectedAtMs = nowMs;
    this.calls = new CallTable(rules, (effect) => this.emit(effect));
  }

  /** What is to be done, in order. */
  step(input: SessionInput, nowMs: number): readonly Effect[] {
    this.#effects = [];
    this.nowMs = nowMs;
    if (this.state === 'closed') {
      if (input.name === 'call') unroutable(this, input.of);
      return this.#effects;
    }
    const react = TABLE[this.state][input.name] as Reaction<InputName>;
    react(this, input.of);
    if (this.state === 'draining' && this.calls.inFlight === 0) over(this, 'drained');
    return this.#effects;
  }

  emit(effect: Effect): void {
    this.#effects.push(effect);
  }

  send(message: Outgoing): void {
    this.emit({ kind: 'send', message });
  }

  audit(what: string, details: JsonObject = {}): void {
    this.emit({ kind: 'audit', what, details });
  }

  enter(state: SessionState): void {
    this.state = state;
    this.sinceMs = this.nowMs;
  }

  get health(): Health {
    return this.silent ? 'silent' : this.said;
  }

  /** Ready, signs of life in time, health not `unhealthy` (§4.5.1). */
  get routable(): boolean {
    return this.state === 'ready' && !this.silent && this.said !== 'unhealthy';
  }

  /** Content-free, but for names that the agent gave itself, redacted. */
  view(bytes: { readonly bytesIn: number; readonly bytesOut: number }): AgentSessionView {
    const text = (value: string): string => this.rules.redactor.text(value);
    const said = this.hello?.payload;
    const sdk = said?.sdk;
    const { pid, manifestMatches } = this.admission ?? {};
    return {
      sessionId: this.sessionId ?? '',
      agentVersion: text(said?.agent_version ?? ''),
      ...(sdk && { sdk: { name: text(sdk.name), version: text(sdk.version) } }),
      transport: this.transport,
      attached: this.admission?.attached ?? false,
      ...(pid !== undefined && { pid }),
      state: this.state === 'ready' ? 'ready' : 'draining',
      health: this.health,
      connectedAtMs: this.connectedAtMs,
      ...this.heartbeat,
      ...(manifestMatches !== undefined && { manifestMatches }),
      toolIds: this.tools?.ids() ?? [],
      calls: this.calls.views(),
      ...bytes,
    };
  }
}

function nothing(): void {}
