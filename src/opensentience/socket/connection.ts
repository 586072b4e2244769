// One socket and its session (seed 004 §1 to §6): bytes become inputs of the machine, effects become bytes, promises
// and events. Reading is paced, writing bounded. What goes wrong here ends this connection and touches no other.
import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import type { JsonObject } from '../../rules/json.ts';
import type { AgentSessionView } from '../../ports/agents.ts';
import type { AgentToolMetrics } from '../../rules/tool-metrics.ts';
import type { ToolProgress } from '../../ports/tools.ts';
import { callFailure } from '../call-failure.ts';
import { nowMs } from '../../system/time.ts';
import type { CallOutcome, Effect, Outgoing } from '../session/effects.ts';
import { encodeFrame, FrameDecoder, type Frame } from '../frame.ts';
import {
  PROTOCOL_VERSION,
  type AgentPayloads,
  type DeclaredTool,
  type ProtocolErrorCode,
} from '../messages.ts';
import { CONTENT_READING } from './frame-content.ts';
import { AuditQuota, Pace } from '../session/pace.ts';
import type { Admission, AgentServerOptions, LiveSession, SessionCall } from '../parts.ts';
import { readMessage } from '../session/read-message.ts';
import { Session, type SessionInput } from '../session/session.ts';

/** Messages handled before others get their turn. */
const FRAMES_PER_TURN = 256;
/** From the last word to the end of a connection whose other side does not close it. */
const CLOSE_MS = 1_000;

export interface ConnectionParts {
  readonly options: AgentServerOptions;
  readonly transport: 'unix' | 'tcp';
  /** Takes the agent's place in the server; a code when there is none. `attached`: by the operator's hand. */
  readonly claim: (connection: Connection, attached: boolean) => ProtocolErrorCode | undefined;
  /** The session, or what was to be one, is over. */
  readonly release: (connection: Connection) => void;
}

interface PendingCall {
  readonly resolve: (output: JsonObject) => void;
  readonly reject: (error: Error) => void;
  readonly onProgress: ((progress: ToolProgress) => void) | undefined;
  /** Ends the watch over the caller's signal. */
  readonly release: () => void;
}

export class Connection implements LiveSession {
  readonly #parts: ConnectionParts;
  readonly #socket: Socket;
  readonly #session: Session;
  readonly #decoder: FrameDecoder;
  readonly #pace: Pace;
  readonly #quota: AuditQuota;
  readonly #pending = new Map<string, PendingCall>();
  readonly #inputs: SessionInput[] = [];
  /** Resolves when the socket is gone. */
  readonly gone: Promise<void>;
  /** Handled from the front; no more than one chunk's. */
  readonly #frames: Frame[] = [];
  #stepping = false;
  #opened = false;
  #released = false;
  #endSeen = false;
  /** Reading rests until messages at hand are handled. */
  #held = false;
  #resumedAtMs = 0;
  #wake: NodeJS.Timeout | undefined;
  #bytesIn = 0;
  #bytesOut = 0;

  constructor(socket: Socket, parts: ConnectionParts) {
    const { limits, instanceId, coreVersion, redactor } = parts.options;
    const now = nowMs();
    this.#parts = parts;
    this.#socket = socket;
    this.#session = new Session(
      { limits, instanceId, coreVersion, redactor },
      parts.transport,
      now,
    );
    this.#decoder = new FrameDecoder(limits.maxFrameBytes, { now: nowMs, ...CONTENT_READING });
    const { messagesPerSecond } = limits;
    this.#pace = new Pace({ perSecond: messagesPerSecond, burst: messagesPerSecond }, now);
    this.#quota = new AuditQuota(now);
    this.gone = new Promise((resolve) => socket.once('close', () => resolve()));
    socket.setNoDelay(true);
    socket.on('data', (chunk) => this.#guard(() => this.#read(chunk)));
    socket.on('end', () => this.#guard(() => this.#end()));
    // What failed is told by `close`, which follows.
    socket.on('error', () => undefined);
    socket.on('close', () => this.#guard(() => this.#closed()));
  }

  // --- LiveSession ----------------------------------------------------------------------------------------------------

  get sessionId(): string {
    return this.#session.sessionId ?? '';
  }

  get agentId(): string {
    return this.#session.agentId ?? '';
  }

  get attached(): boolean {
    return this.#session.admission?.attached ?? false;
  }

  /** Admitted, and not over. */
  get open(): boolean {
    return this.#session.state === 'ready' || this.#session.state === 'draining';
  }

  tools(): readonly DeclaredTool[] {
    return this.#session.tools?.declarations() ?? [];
  }

  routable(): boolean {
    return this.#session.routable;
  }

  view(): AgentSessionView {
    return this.#session.view({ bytesIn: this.#bytesIn, bytesOut: this.#bytesOut });
  }

  metrics(): readonly AgentToolMetrics[] {
    return this.#session.calls.metrics();
  }

  call({ signal, onProgress, ...request }: SessionCall): Promise<JsonObject> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(callFailure('cancelled', false));
      const callId = randomUUID();
      const onAbort = (): void => this.#step({ name: 'cancel', of: { callId } });
      signal.addEventListener('abort', onAbort, { once: true });
      const release = (): void => signal.removeEventListener('abort', onAbort);
      this.#pending.set(callId, { resolve, reject, onProgress, release });
      this.#step({ name: 'call', of: { callId, messageId: randomUUID(), request } });
    });
  }

  async drain(reason: string, deadlineMs: number): Promise<void> {
    this.#step({ name: 'drain', of: { reason, deadlineMs } });
    await this.gone;
  }

  close(reason: string): void {
    this.#step({ name: 'close', of: { reason } });
  }

  /** Called often: deadlines, heartbeats, slow senders. */
  tick(): void {
    this.#guard(() => {
      const since = this.#decoder.openSinceMs;
      const { frameMs } = this.#parts.options.limits;
      const slow = since !== undefined && nowMs() - Math.max(since, this.#resumedAtMs) > frameMs;
      if (slow && !this.#held) this.#breach('frame.too_slow', 'protocol.too_slow');
      this.#step({ name: 'tick', of: {} });
    });
  }

  // --- bytes in -------------------------------------------------------------------------------------------------------

  #read(chunk: Buffer): void {
    if (this.#session.state === 'closed') return;
    this.#bytesIn += chunk.length;
    for (const frame of this.#decoder.push(chunk)) this.#frames.push(frame);
    this.#pump();
  }

  /** Hands frames to the machine; rests while the gate thinks, the pace is too fast, or others wait. */
  #pump(): void {
    if (this.#wake) return;
    for (let turn = 0; this.#frames.length > 0; turn += 1) {
      if (this.#session.state === 'closed') return;
      if (this.#session.state === 'checking') return this.#hold();
      const waitMs = turn < FRAMES_PER_TURN ? this.#pace.take(nowMs()) : 1;
      if (waitMs > 0) {
        this.#hold();
        this.#wake = setTimeout(() => {
          this.#wake = undefined;
          this.#guard(() => this.#pump());
        }, waitMs);
        return;
      }
      this.#takeNext();
    }
    if (this.#endSeen) return this.#end();
    if (this.#session.state === 'checking') this.#hold();
    else this.#resume();
  }

  #takeNext(): void {
    const frame = this.#frames.shift();
    if (!frame) return;
    if (!frame.ok) return this.#step({ name: 'frame-fault', of: { fault: frame.fault } });
    const read = readMessage(frame.value);
    if (read.ok) {
      const { message } = read;
      return this.#step({ name: message.type, of: message } as SessionInput);
    }
    const { fault } = read;
    const unknown = fault.code === 'protocol.unknown_type';
    this.#step({ name: unknown ? 'unknown-type' : 'invalid', of: fault });
  }

  #hold(): void {
    this.#held = true;
    this.#socket.pause();
  }

  #resume(): void {
    if (!this.#held) return;
    this.#held = false;
    this.#resumedAtMs = nowMs();
    this.#socket.resume();
  }

  #end(): void {
    this.#endSeen = true;
    if (this.#frames.length > 0 && this.#session.state !== 'closed') return;
    const fault = this.#decoder.end();
    if (fault) this.#step({ name: 'frame-fault', of: { fault } });
    this.#step({ name: 'ended', of: {} });
  }

  #closed(): void {
    clearTimeout(this.#wake);
    // What an agent said before it died counts: a result that came is not asked for again.
    while (this.open && this.#frames.length > 0) this.#takeNext();
    this.#step({ name: 'ended', of: {} });
    this.#release();
  }

  // --- the machine ----------------------------------------------------------------------------------------------------

  /** One input after the other: what an effect causes waits until the effects before it are performed. */
  #step(input: SessionInput): void {
    this.#inputs.push(input);
    if (this.#stepping) return;
    this.#stepping = true;
    this.#guard(() => {
      for (let next = this.#inputs.shift(); next; next = this.#inputs.shift())
        for (const effect of this.#session.step(next, nowMs())) this.#perform(effect);
    });
    this.#stepping = false;
  }

  #perform(effect: Effect): void {
    switch (effect.kind) {
      case 'check':
        return void this.#check(effect.hello);
      case 'send':
        return this.#send(effect.message, effect.id ?? randomUUID());
      case 'audit':
        return this.#audit(effect.what, effect.details);
      case 'opened':
        this.#opened = true;
        return this.#tell(() => this.#parts.options.events.opened(this));
      case 'changed':
        return this.#tell(() => this.#parts.options.events.changed(this, effect.what));
      case 'progress':
        return this.#tell(() => this.#pending.get(effect.callId)?.onProgress?.(effect.progress));
      case 'settle':
        return this.#settle(effect.callId, effect.outcome);
      case 'close':
        return this.#shut(effect.reason);
    }
  }

  async #check(payload: AgentPayloads['agent.hello']): Promise<void> {
    this.#hold();
    const admission = await this.#admission(payload);
    // Between two turns nothing changes: who finds the place free has it.
    const taken =
      admission.ok && this.#session.state === 'checking'
        ? this.#parts.claim(this, admission.attached)
        : undefined;
    if (!admission.ok) this.#step({ name: 'refused', of: { code: admission.code } });
    else if (taken) this.#step({ name: 'refused', of: { code: taken } });
    else this.#step({ name: 'admitted', of: { sessionId: randomUUID(), admission } });
    this.#guard(() => this.#pump());
  }

  async #admission(payload: AgentPayloads['agent.hello']): Promise<Admission> {
    const { options, transport } = this.#parts;
    try {
      return await options.gate({
        agentId: payload.agent_id,
        sessionToken: payload.session_token,
        ...(payload.manifest_hash !== undefined && { manifestHash: payload.manifest_hash }),
        transport,
      });
    } catch (error) {
      options.logger.warn('The gate of OpenSentience failed', { transport, error: nameOf(error) });
      return { ok: false, code: 'protocol.unauthorized', reason: 'gate_failed' };
    }
  }

  #send(message: Outgoing, id: string): void {
    const { maxFrameBytes, maxWriteBytes } = this.#parts.options.limits;
    if (this.#socket.destroyed || this.#socket.writableEnded) return;
    const { type, payload, ...rest } = message;
    const ts = new Date().toISOString();
    const envelope = { v: PROTOCOL_VERSION, type, id, ts, ...rest, payload };
    const frame = encodeFrame(envelope, maxFrameBytes);
    this.#bytesOut += frame.length;
    this.#socket.write(frame);
    if (this.#socket.writableLength <= maxWriteBytes) return;
    // It does not read: a last word would not reach it either.
    this.#breach('write.too_slow', 'protocol.too_slow');
    this.#socket.destroy();
  }

  #breach(what: string, code: ProtocolErrorCode): void {
    if (this.#session.state === 'closed') return;
    this.#audit(what, {});
    this.#step({ name: 'close', of: { reason: code, code } });
  }

  #settle(callId: string, outcome: CallOutcome): void {
    const pending = this.#pending.get(callId);
    this.#pending.delete(callId);
    pending?.release();
    if (outcome.ok) pending?.resolve(outcome.output);
    else pending?.reject(callFailure(outcome.code, outcome.sent, outcome.details));
  }

  #shut(reason: string): void {
    if (this.#opened) this.#tell(() => this.#parts.options.events.closed(this, reason));
    if (this.#quota.suppressed > 0)
      this.#note('audit.suppressed', { notes: this.#quota.suppressed });
    this.#release();
    this.#socket.end();
    // What the other side still sends is read and dropped, so that our last word is not lost by a reset.
    this.#socket.resume();
    const timer = setTimeout(() => this.#socket.destroy(), CLOSE_MS);
    this.#socket.once('close', () => clearTimeout(timer));
  }

  #release(): void {
    if (this.#released) return;
    this.#released = true;
    this.#parts.release(this);
  }

  // --- around it ------------------------------------------------------------------------------------------------------

  #audit(what: string, details: JsonObject): void {
    if (this.#quota.takes(what, nowMs())) this.#note(what, details);
  }

  #note(kind: string, details: JsonObject): void {
    const { audit, redactor } = this.#parts.options;
    const { agentId, sessionId } = this.#session;
    this.#tell(() =>
      audit({
        ...(agentId !== undefined && { agentId: redactor.text(agentId) }),
        ...(sessionId !== undefined && { sessionId }),
        kind,
        details,
      }),
    );
  }

  /** A listener's fault is not the agent's. */
  #tell(say: () => void): void {
    try {
      say();
    } catch (error) {
      const { logger } = this.#parts.options;
      logger.warn('A listener of an OpenSentience session failed', { error: nameOf(error) });
    }
  }

  #guard(act: () => void): void {
    try {
      act();
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Nobody foresaw it: this connection ends, its calls end, nothing else does. */
  #fail(error: unknown): void {
    const code = (error as { code?: unknown } | null)?.code;
    const known = code === 'protocol.frame_too_large' ? 'frame.unsendable' : 'session.failed';
    this.#inputs.length = 0;
    this.#parts.options.logger.warn('An OpenSentience connection failed', { error: nameOf(error) });
    this.#note(known, {});
    this.#session.state = 'closed';
    for (const callId of [...this.#pending.keys()])
      this.#settle(callId, { ok: false, code: 'agent_unavailable', sent: true, details: {} });
    if (!this.#released) this.#shut(known);
    this.#socket.destroy();
  }
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : 'unknown';
}
