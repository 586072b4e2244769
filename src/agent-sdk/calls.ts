// The calls of one session (seed 004 §4.3, §4.4): each gets exactly one final result, whatever happens to it. A
// call_id is taken once; one that comes again is refused without touching the first.
//
//   core.tool.call   -> running | result failed (draining, overloaded, unknown tool) | agent.error (no or repeated id)
//   running          -> result, once
//   core.tool.cancel -> cancel_ack accepted, then the result, `canceled` unless the tool ended before
import type {
  AgentPayloads,
  Correlation,
  CorePayloads,
  Envelope,
  ProtocolErrorCode,
} from '../opensentience/messages.ts';
import { correlationOf, isMap } from './envelope.ts';
import { protocolError } from './errors.ts';
import { DETAILS_LEVELS, exactJson, noJson } from './exact-json.ts';
import { MAX_TIMER_MS, type AgentLimits } from './limits.ts';
import { perform, type Outcome, type Stop } from './perform.ts';
import { openStream } from './stream.ts';
import type { Tool, ToolCall } from './tool.ts';

type CallPayload = Partial<CorePayloads['core.tool.call']>;
type Sent = 'agent.tool.stream' | 'agent.tool.result' | 'agent.tool.cancel_ack';

/** What calls need of their session. */
export interface CallSurface {
  send<Type extends Sent>(type: Type, payload: AgentPayloads[Type], echoed: Correlation): void;
  /** Answers a message that can have no result. */
  refuse(message: Envelope, code: ProtocolErrorCode): void;
  toolOf(toolId: string): Tool | undefined;
  crowded(): boolean;
  readonly limits: AgentLimits;
}

interface Running {
  readonly correlation: Correlation;
  stop(stop: Stop): void;
}

export class Calls {
  readonly #surface: CallSurface;
  readonly #running = new Map<string, Running>();
  /** In the order of their ends; the oldest is forgotten. */
  readonly #ended = new Set<string>();
  #draining = false;
  #drained: Promise<void> | undefined;
  #idle: (() => void) | undefined;

  constructor(surface: CallSurface) {
    this.#surface = surface;
  }

  get inflight(): number {
    return this.#running.size;
  }

  start(message: Envelope): void {
    const payload = message.payload as CallPayload;
    const { call_id: callId, tool_id: toolId } = payload;
    if (typeof callId !== 'string' || typeof toolId !== 'string')
      return this.#surface.refuse(message, 'protocol.invalid_message');
    if (this.#running.has(callId) || this.#ended.has(callId))
      return this.#surface.refuse(message, 'protocol.unexpected_message');
    const tool = this.#surface.toolOf(toolId);
    const { limits } = this.#surface;
    const refusal = this.#draining
      ? ('protocol.draining' as const)
      : this.#running.size >= limits.maxInflightCalls
        ? ('tool.overloaded' as const)
        : ('tool.not_found' as const);
    if (tool && refusal === 'tool.not_found') return void this.#run(tool, callId, message);
    const error = protocolError(refusal, { retryable: refusal !== 'tool.not_found' });
    this.#finish({ callId, message }, { status: 'failed', error });
  }

  cancel(message: Envelope): void {
    const { call_id: callId, deadline_ms } = message.payload as { [key: string]: unknown };
    if (typeof callId !== 'string')
      return this.#surface.refuse(message, 'protocol.invalid_message');
    const running = this.#running.get(callId);
    const echoed = running?.correlation ?? correlationOf(message);
    const note = running ? {} : { note: 'The call is not in flight.' };
    const payload = { call_id: callId, accepted: running !== undefined, ...note };
    this.#surface.send('agent.tool.cancel_ack', payload, echoed);
    const graceMs = typeof deadline_ms === 'number' ? withMargin(deadline_ms) : undefined;
    const { cancelMs } = this.#surface.limits;
    running?.stop({ code: 'tool.canceled', graceMs: graceMs ?? cancelMs });
  }

  /** No new calls; resolves when none is in flight, at the latest after drainMs and the calls' grace. */
  drain(): Promise<void> {
    return (this.#drained ??= this.#drain());
  }

  async #drain(): Promise<void> {
    this.#draining = true;
    if (this.#running.size === 0) return;
    const { drainMs, cancelMs } = this.#surface.limits;
    const timer = setTimeout(() => this.abort(cancelMs), drainMs);
    await new Promise<void>((resolve) => {
      this.#idle = resolve;
    });
    clearTimeout(timer);
  }

  /** Ends every call: the agent drains no longer, or nobody awaits the results. */
  abort(graceMs: number): void {
    this.#draining = true;
    for (const running of this.#running.values()) running.stop({ code: 'tool.canceled', graceMs });
  }

  async #run(tool: Tool, callId: string, message: Envelope): Promise<void> {
    const started = new Date().toISOString();
    const correlation = correlationOf(message);
    const payload = message.payload as CallPayload;
    const { limits } = this.#surface;
    const stream = openStream(callId, limits, {
      send: (chunk) => this.#surface.send('agent.tool.stream', chunk, correlation),
      crowded: () => this.#surface.crowded(),
    });
    const abort = new AbortController();
    const timeoutMs = typeof payload.timeout_ms === 'number' ? payload.timeout_ms : undefined;
    let timer: NodeJS.Timeout | undefined;
    const stopped = new Promise<Stop>((resolve) => {
      const stop = (why: Stop): void => {
        resolve(why);
        abort.abort(new DOMException(`The call ended: ${why.code}.`, 'AbortError'));
      };
      this.#running.set(callId, { correlation, stop });
      if (timeoutMs === undefined || timeoutMs <= 0) return;
      const timeout: Stop = { code: 'tool.timeout', graceMs: limits.cancelMs };
      timer = setTimeout(() => stop(timeout), Math.min(timeoutMs, MAX_TIMER_MS));
    });
    const call = { ...describe(message, payload), signal: abort.signal, stream };
    const outcome = await perform(tool, { call, input: payload.input, stopped }, limits);
    clearTimeout(timer);
    this.#running.delete(callId);
    this.#finish({ callId, message, started, log: (text) => stream.log(text) }, outcome);
    stream.close();
    if (this.#running.size === 0) this.#idle?.();
  }

  #finish(
    of: {
      readonly callId: string;
      readonly message: Envelope;
      readonly started?: string;
      readonly log?: (text: string) => void;
    },
    outcome: Outcome,
  ): void {
    this.#ended.add(of.callId);
    for (const oldest of this.#ended) {
      if (this.#ended.size <= this.#surface.limits.rememberedCalls) break;
      this.#ended.delete(oldest);
    }
    const finished = new Date().toISOString();
    const times = { started_at: of.started ?? finished, finished_at: finished };
    const echoed = correlationOf(of.message);
    const send = (ended: Outcome): void =>
      this.#surface.send('agent.tool.result', { call_id: of.callId, ...ended, ...times }, echoed);
    const bare = withoutDetails(outcome);
    const leftOut = (why: string) =>
      of.log?.(`The details of ${bare.error?.code} are left out: ${why}.`);
    const { details } = outcome.error ?? {};
    if (details && !isMap(exactJson(details, DETAILS_LEVELS)?.value)) {
      leftOut(`their object ${noJson(DETAILS_LEVELS)}`);
      return send(bare);
    }
    try {
      send(outcome);
    } catch {
      // Larger than Core takes in one frame.
      if (!bare.error)
        return send({ status: 'failed', error: protocolError('tool.output_too_large') });
      leftOut('they are larger than a frame may be');
      send(bare);
    }
  }
}

/** Details are a help to people; the code says what became of the call, so that they never cost it. */
function withoutDetails(outcome: Outcome): Outcome {
  if (!outcome.error) return outcome;
  const error = { ...outcome.error };
  delete error.details;
  return { ...outcome, error };
}

/** Core waits until its deadline: the result must be there before. */
function withMargin(deadlineMs: number): number {
  return Math.min(Math.max(0, deadlineMs * 0.75), MAX_TIMER_MS);
}

function describe(message: Envelope, payload: CallPayload): Omit<ToolCall, 'signal' | 'stream'> {
  const { request_id, correlation_id, causation_id } = correlationOf(message);
  return {
    callId: payload.call_id ?? '',
    toolId: payload.tool_id ?? '',
    requestId: request_id,
    correlationId: correlation_id,
    causationId: causation_id,
    idempotencyKey: payload.idempotency_key,
    timeoutMs: payload.timeout_ms,
    caller: payload.caller,
    actor: message.actor,
    context: isMap(payload.context) ? payload.context : {},
  };
}
