// The calls of one session (seed 004 §2.2, §3.1, §4.3, §4.4), with no clock, socket or chance of its own:
//
//   queued ──place free──▶ in-flight ──result──────────────▶ ended
//     │                        │ cancel or timeout ▲
//     │                        ▼                   │ result, or cancelMs over
//     │                    canceling ──────────────┘
//     └──cancel, timeout, drain, connection lost──▶ ended (never sent)
//
// Every call ends once. What an agent says of a call that has ended, or never was, is dropped and audited.
import type { AgentCallView } from '../../ports/agents.ts';
import type { AgentToolMetrics } from '../../rules/tool-metrics.ts';
import type { JsonObject } from '../../rules/json.ts';
import { CallMetrics, type CallEnding } from './call-metrics.ts';
import {
  failedOutcome,
  refusedCall,
  succeededOutcome,
  unanswered,
  unreadableResult,
  uselessOutput,
} from './call-outcomes.ts';
import { CallStream } from './call-stream.ts';
import type { CallOutcome, Emit, SessionRules } from './effects.ts';
import type { AgentPayloads, Correlation, Envelope, ProtocolError } from '../messages.ts';
import type { SessionCall } from '../parts.ts';
import { CORRELATION, correlationOf, type MessageFault } from './read-message.ts';
import type { AcceptedTool } from './registration.ts';

/** Bytes of a frame that the names of a call's fields, and the ids that Core gives, may take. */
const ENVELOPE_BYTES = 8 * 1024;

export type CallRequest = Omit<SessionCall, 'signal' | 'onProgress'>;

/** A call as it enters the session: `messageId` is the `id` of its core.tool.call. */
export interface NewCall {
  readonly callId: string;
  readonly messageId: string;
  readonly request: CallRequest;
}

interface Canceling {
  readonly code: 'cancelled' | 'tool_timeout';
  readonly untilMs: number;
}

interface Call extends NewCall {
  readonly tool: AcceptedTool;
  readonly stream: CallStream;
  readonly deadlineMs: number;
  state: AgentCallView['state'];
  sinceMs: number;
  sentAtMs: number;
  /** Why it is being canceled, and until when the agent may still say how it ended. */
  canceling?: Canceling;
  mismatchNoted: boolean;
}

/** How a remembered call ended. */
type Ended = 'result' | 'given-up' | 'error';

type UnreadableResult = Pick<MessageFault, 'callId' | 'hasUselessOutput'>;

type AboutCall = 'agent.tool.stream' | 'agent.tool.result' | 'agent.tool.cancel_ack';
type OfCall<Type extends AboutCall = AboutCall> = Envelope<Type, AgentPayloads[Type]>;

export class CallTable {
  readonly #rules: SessionRules;
  readonly #emit: Emit;
  readonly #metrics = new CallMetrics();
  readonly #queued = new Map<string, Call>();
  readonly #sent = new Map<string, Call>();
  readonly #ended = new Map<string, Ended>();
  maxInflight: number;

  constructor(rules: SessionRules, emit: Emit) {
    this.#rules = rules;
    this.#emit = emit;
    this.maxInflight = rules.limits.maxInflightRequests;
  }

  /** Calls that the agent has. */
  get inFlight(): number {
    return this.#sent.size;
  }

  /** Sends it, lets it wait its turn, or says why not. */
  add(entry: NewCall, tool: AcceptedTool | undefined, nowMs: number): void {
    const { callId, request } = entry;
    if (!tool) return this.#settle(callId, unanswered('tool_not_found', false));
    const refusal = this.#refusal(request, tool);
    if (refusal) return this.#settle(callId, refusal);
    const times = { sinceMs: nowMs, sentAtMs: nowMs, deadlineMs: nowMs + request.timeoutMs };
    const stream = new CallStream(this.#rules);
    const call: Call = { ...entry, tool, stream, ...times, state: 'queued', mismatchNoted: false };
    this.#queued.set(callId, call);
    this.#sendNext(nowMs);
    this.#emit({ kind: 'changed', what: 'calls' });
  }

  /** Input is checked before anything is sent (§4.3.1): no agent sees what its schema does not allow. */
  #refusal(request: CallRequest, tool: AcceptedTool): CallOutcome | undefined {
    const { limits } = this.#rules;
    const bytes = Buffer.byteLength(JSON.stringify(request.input));
    if (bytes > request.maxInputBytes)
      return refusedCall('payload_too_large', false, { bytes, maxBytes: request.maxInputBytes });
    // All else that goes into the frame: an id of a caller's choosing may be long, too.
    const rest = Buffer.byteLength(JSON.stringify({ ...request, input: null })) + ENVELOPE_BYTES;
    if (bytes + rest > limits.maxFrameBytes)
      return refusedCall('payload_too_large', false, { bytes, maxBytes: limits.maxFrameBytes });
    const checked = tool.input.validate(request.input);
    if (!checked.ok)
      return refusedCall('tool_invalid_input', false, {
        errors: checked.errors.map(({ pointer, message }) => ({ pointer, message })),
      });
    const waits = this.#sent.size >= this.maxInflight || this.#queued.size > 0;
    if (waits && this.#queued.size >= limits.maxQueuedRequests)
      return unanswered('rate_limited', false, { queued: this.#queued.size });
    return undefined;
  }

  #sendNext(nowMs: number): void {
    for (const [callId, call] of this.#queued) {
      if (this.#sent.size >= this.maxInflight) return;
      this.#queued.delete(callId);
      this.#sent.set(callId, call);
      call.state = 'in-flight';
      call.sinceMs = nowMs;
      call.sentAtMs = nowMs;
      this.#metrics.began(call.request.toolId);
      this.#send(call, Math.max(1, call.deadlineMs - nowMs));
    }
  }

  #send({ callId, messageId, request }: Call, timeoutMs: number): void {
    this.#emit({
      kind: 'send',
      id: messageId,
      message: {
        type: 'core.tool.call',
        ...idsOf(request),
        actor: request.actor,
        payload: {
          call_id: callId,
          tool_id: request.toolId,
          input: request.input,
          timeout_ms: Math.ceil(timeoutMs),
          idempotency_key: request.idempotencyKey,
          caller: request.caller,
          context: request.context,
        },
      },
    });
  }

  // --- what the agent says ---------------------------------------------------------------------------------------------

  onStream(message: OfCall<'agent.tool.stream'>): void {
    const { call_id: callId } = message.payload;
    const call = this.#of(message);
    if (!call) return;
    const { progress, fault } = call.stream.take(message.payload);
    if (fault)
      this.#audit(`stream.${fault.kind}`, { callId, seq: fault.seq, expected: fault.expected });
    if (progress) this.#emit({ kind: 'progress', callId, progress });
  }

  onCancelAck(message: OfCall<'agent.tool.cancel_ack'>): void {
    const call = this.#of(message);
    if (!call) return;
    const { call_id: callId, accepted } = message.payload;
    this.#audit(call.canceling ? 'call.cancel_ack' : 'call.unasked_cancel_ack', {
      callId,
      accepted,
    });
  }

  onResult(message: OfCall<'agent.tool.result'>, nowMs: number): void {
    const call = this.#of(message);
    if (!call) return;
    const { status } = message.payload;
    const [outcome, ending] = this.#outcomeOf(call, message);
    if (status === 'succeeded' && !outcome.ok)
      this.#audit('call.refused_output', { callId: call.callId, code: outcome.code });
    this.#end(call, { outcome, ending, ended: 'result' }, nowMs);
  }

  /** A result that breaks its schema still ends its call: nothing better will come. */
  onUnreadableResult({ callId, hasUselessOutput }: UnreadableResult, nowMs: number): void {
    const call = callId === undefined ? undefined : this.#sent.get(callId);
    if (!call) return;
    const outcome = hasUselessOutput ? uselessOutput() : unreadableResult(call.request);
    this.#end(call, { outcome, ending: 'failed', ended: 'result' }, nowMs);
  }

  /** An error that answers a core.tool.call ends it: the agent has no other word for it. */
  onError(inReplyTo: string | undefined, error: ProtocolError | undefined, nowMs: number): boolean {
    const call = [...this.#sent.values()].find(({ messageId }) => messageId === inReplyTo);
    if (!call) return false;
    const { sideEffects } = call.request;
    const rules = { sideEffects, redactor: this.#rules.redactor, isReply: true };
    const outcome = failedOutcome(error, rules);
    this.#end(call, { outcome, ending: 'failed', ended: 'error' }, nowMs);
    return true;
  }

  #outcomeOf(call: Call, message: OfCall<'agent.tool.result'>): [CallOutcome, CallEnding] {
    const { payload } = message;
    const { redactor } = this.#rules;
    const { maxOutputBytes, sideEffects } = call.request;
    const failed = () => failedOutcome(payload.error ?? message.error, { sideEffects, redactor });
    switch (payload.status) {
      case 'succeeded': {
        const outcome = succeededOutcome(payload, { tool: call.tool, maxOutputBytes, redactor });
        return [outcome, outcome.ok ? 'succeeded' : 'failed'];
      }
      case 'failed':
        return [failed(), 'failed'];
      case 'canceled':
        return [call.canceling ? unanswered(call.canceling.code, true) : failed(), 'canceled'];
    }
  }

  /** The call that a message is about, by its payload; the echoed ids are checked against it (§3.1). */
  #of(message: OfCall): Call | undefined {
    const { call_id: callId } = message.payload;
    const call = this.#sent.get(callId);
    if (call) {
      this.#checkEcho(call, message);
      return call;
    }
    const ended = this.#ended.get(callId);
    const what = message.type.replace('agent.tool.', '');
    // An id that Core never gave is the agent's own text: it is not repeated.
    if (ended === undefined) this.#audit(`call.unknown_${what}`, {});
    else if (ended === 'result' && what === 'result') this.#audit('call.second_result', { callId });
    else this.#audit(`call.late_${what}`, { callId });
    return undefined;
  }

  #checkEcho(call: Call, message: Correlation): void {
    const expected = idsOf(call.request);
    const found = correlationOf(message);
    const fields = CORRELATION.filter((field) => expected[field] !== found[field]);
    if (fields.length === 0 || call.mismatchNoted) return;
    call.mismatchNoted = true;
    this.#audit('call.correlation_mismatch', { callId: call.callId, fields });
  }

  // --- cancellation and time -------------------------------------------------------------------------------------------

  cancel(callId: string, nowMs: number, code: Canceling['code'] = 'cancelled'): void {
    if (this.#queued.has(callId)) return this.#leaveQueue(callId, unanswered(code, false));
    const call = this.#sent.get(callId);
    if (!call || call.canceling) return;
    const { cancelMs } = this.#rules.limits;
    call.state = 'canceling';
    call.sinceMs = nowMs;
    call.canceling = { code, untilMs: nowMs + cancelMs };
    const reason = code === 'cancelled' ? 'canceled' : 'timeout';
    this.#emit({
      kind: 'send',
      message: {
        type: 'core.tool.cancel',
        ...idsOf(call.request),
        payload: { call_id: callId, reason, deadline_ms: cancelMs },
      },
    });
    this.#emit({ kind: 'changed', what: 'calls' });
  }

  tick(nowMs: number): void {
    for (const call of [...this.#sent.values(), ...this.#queued.values()])
      if (!call.canceling && nowMs >= call.deadlineMs)
        this.cancel(call.callId, nowMs, 'tool_timeout');
    for (const call of [...this.#sent.values()]) {
      if (!call.canceling || nowMs < call.canceling.untilMs) continue;
      const outcome = unanswered(call.canceling.code, true);
      this.#audit('call.given_up', { callId: call.callId, code: call.canceling.code });
      this.#end(call, { outcome, ending: 'unanswered', ended: 'given-up' }, nowMs);
    }
  }

  // --- the session's own changes ---------------------------------------------------------------------------------------

  /** Calls that wait are told that this session will not send them. */
  dropQueued(): void {
    for (const callId of [...this.#queued.keys()])
      this.#leaveQueue(callId, unanswered('agent_unavailable', false));
  }

  /** Calls that wait for a tool that is no more. */
  dropTools(toolIds: readonly string[]): void {
    const gone = new Set(toolIds);
    for (const [callId, { request }] of [...this.#queued])
      if (gone.has(request.toolId)) this.#leaveQueue(callId, unanswered('tool_not_found', false));
  }

  /** The connection is over. */
  abandon(nowMs: number): void {
    this.dropQueued();
    for (const call of [...this.#sent.values()]) {
      const outcome = unanswered(call.canceling?.code ?? 'agent_unavailable', true);
      this.#end(call, { outcome, ending: 'unanswered', ended: 'given-up' }, nowMs);
    }
  }

  views(): readonly AgentCallView[] {
    return [...this.#sent.values(), ...this.#queued.values()].map((call) => ({
      callId: call.callId,
      toolId: call.request.toolId,
      runId: call.request.runId,
      state: call.state,
      sinceMs: call.sinceMs,
    }));
  }

  metrics(): readonly AgentToolMetrics[] {
    return this.#metrics.rows();
  }

  // --- endings ---------------------------------------------------------------------------------------------------------

  #end(
    call: Call,
    how: { outcome: CallOutcome; ending: CallEnding; ended: Ended },
    nowMs: number,
  ): void {
    this.#sent.delete(call.callId);
    this.#remember(call.callId, how.ended);
    this.#metrics.ended(call.request.toolId, how.ending, nowMs - call.sentAtMs);
    this.#settle(call.callId, how.outcome);
    this.#sendNext(nowMs);
    this.#emit({ kind: 'changed', what: 'calls' });
  }

  #leaveQueue(callId: string, outcome: CallOutcome): void {
    this.#queued.delete(callId);
    this.#settle(callId, outcome);
    this.#emit({ kind: 'changed', what: 'calls' });
  }

  #remember(callId: string, ended: Ended): void {
    this.#ended.set(callId, ended);
    for (const oldest of this.#ended.keys()) {
      if (this.#ended.size <= this.#rules.limits.rememberedCalls) return;
      this.#ended.delete(oldest);
    }
  }

  #settle(callId: string, outcome: CallOutcome): void {
    this.#emit({ kind: 'settle', callId, outcome });
  }

  #audit(what: string, details: JsonObject): void {
    this.#emit({ kind: 'audit', what, details });
  }
}

function idsOf(request: CallRequest): Correlation {
  return {
    request_id: request.requestId,
    correlation_id: request.correlationId,
    ...(request.causationId !== undefined && { causation_id: request.causationId }),
  };
}
