// Reactions of an open session (seed 004 §4.2 to §4.5, §6.2): tools, heartbeats, draining, and what is not understood.
import type { NewCall } from './calls.ts';
import { protocolError } from './effects.ts';
import { replyTo, type MessageFault } from './read-message.ts';
import type { Session, SessionInputs } from './session.ts';
import { farewell, over, unroutable } from './end.ts';

/** Messages of one connection that may be invalid or of unknown type; above it the connection is closed. */
export const MAX_FAULTY_MESSAGES = 1_000;
/** Heartbeat intervals after which the agent is asked by core.ping. */
const PING_AFTER = 1.5;

/** A hello carries a secret: one that comes again is no mistake to live with. */
export function secondHello(session: Session): void {
  session.audit('session.second_hello');
  farewell(session, 'protocol.unexpected_message');
}

type Register = SessionInputs['agent.tools.register'];

export function register(session: Session, message: Register): void {
  const result = session.tools?.register(message.payload, session.nowMs);
  if (!result) return;
  session.calls.dropTools(result.removed);
  session.send({
    type: 'core.tools.registered',
    ...replyTo(message),
    payload: result.answer,
  });
  session.audit('tools.registered', {
    registered: result.answer.registered.length,
    removed: result.removed.length,
    rejected: { ...result.refusals },
  });
  session.emit({ kind: 'changed', what: 'tools' });
}

export function registerTooLate(session: Session, message: Register): void {
  session.audit('tools.registered_too_late');
  session.send({
    type: 'core.error',
    ...replyTo(message),
    payload: {},
    error: protocolError('protocol.draining'),
  });
}

type Unregister = SessionInputs['agent.tools.unregister'];

export function unregister(session: Session, message: Unregister): void {
  const removed = session.tools?.unregister(message.payload.tool_ids) ?? [];
  session.calls.dropTools(removed);
  const payload = { tool_ids: removed };
  session.send({ type: 'core.tools.unregistered', ...replyTo(message), payload });
  session.audit('tools.unregistered', { removed: removed.length });
  session.emit({ kind: 'changed', what: 'tools' });
}

export function heartbeat(session: Session, { payload }: SessionInputs['agent.heartbeat']): void {
  if (payload.session_id !== session.sessionId) return session.audit('heartbeat.wrong_session');
  session.heartbeat = { lastHeartbeatAtMs: session.nowMs, uptimeMs: payload.uptime_ms };
  signOfLife(session, payload.status);
}

/** An answer to core.ping (§4.5.2) says that the agent is there, as a heartbeat does, and nothing of its health. */
export function pong(session: Session): void {
  signOfLife(session, session.said);
}

function signOfLife(session: Session, said: Session['said']): void {
  session.lastSignAtMs = session.nowMs;
  setHealth(session, { said, silent: false });
}

function setHealth(session: Session, health: Pick<Session, 'said' | 'silent'>): void {
  const from = session.health;
  Object.assign(session, health);
  if (session.health === from) return;
  session.audit('session.health', { from, to: session.health });
  session.emit({ kind: 'changed', what: 'health' });
}

/** Calls in time, signs of life in time (§4.5.1): late ones are asked for, missed ones end routing, lost ones the session. */
export function watch(session: Session): void {
  const { nowMs } = session;
  session.calls.tick(nowMs);
  const { heartbeatIntervalMs, missedHeartbeats, lostHeartbeats } = session.rules.limits;
  const quiet = (nowMs - (session.lastSignAtMs ?? session.connectedAtMs)) / heartbeatIntervalMs;
  if (quiet > lostHeartbeats) {
    session.audit('session.lost', { intervals: Math.floor(quiet) });
    return farewell(session, 'protocol.too_slow');
  }
  if (quiet > missedHeartbeats) setHealth(session, { said: session.said, silent: true });
  if (quiet > PING_AFTER && nowMs - session.lastPingAtMs >= heartbeatIntervalMs) {
    session.lastPingAtMs = nowMs;
    session.send({ type: 'core.ping', payload: {} });
  }
}

export function watchDrain(session: Session): void {
  watch(session);
  if (session.state === 'draining' && session.nowMs >= session.drainUntilMs) {
    session.audit('session.drain_cut_short', { calls: session.calls.inFlight });
    over(session, 'drained');
  }
}

/** The agent goes: no further calls, those in flight may end, each within its own time. */
export function goodbye(session: Session): void {
  session.audit('session.goodbye', { by: 'agent' });
  beginDrain(session);
  session.send({ type: 'core.goodbye', payload: { reason: 'agent.goodbye' } });
}

/** When an agent that can come back may try, in ms: Core is most often just being started anew. */
const RETRY_AFTER_MS = 5_000;

/** Core goes (§4.1.3). A second word may shorten the time, not lengthen it. */
export function drain(session: Session, input: SessionInputs['drain']): void {
  session.drainUntilMs = Math.min(session.drainUntilMs, session.nowMs + input.deadlineMs);
  if (session.state === 'draining') return;
  session.audit('session.goodbye', { by: 'core', reason: input.reason });
  beginDrain(session);
  const payload = { reason: input.reason, retry_after_ms: RETRY_AFTER_MS };
  session.send({ type: 'core.goodbye', payload });
}

function beginDrain(session: Session): void {
  session.enter('draining');
  session.calls.dropQueued();
  session.emit({ kind: 'changed', what: 'state' });
}

export function addCall(session: Session, input: NewCall): void {
  if (!session.routable) return unroutable(session, input);
  session.calls.add(input, session.tools?.get(input.request.toolId), session.nowMs);
}

export function invalid(session: Session, fault: MessageFault): void {
  const { code, pointer, type } = fault;
  session.audit('message.invalid', { code, pointer, ...(type && { type }) });
  if (type === 'agent.tool.result') session.calls.onUnreadableResult(fault, session.nowMs);
  answerFault(session, fault);
}

export function unknownType(session: Session, fault: MessageFault): void {
  session.audit('message.unknown_type', { answered: fault.expectsReply });
  answerFault(session, fault);
}

function answerFault(session: Session, fault: MessageFault): void {
  if (fault.expectsReply)
    session.send({
      type: 'core.error',
      ...fault.reply,
      payload: {},
      error: protocolError(fault.code, { pointer: fault.pointer }),
    });
  session.faulty += 1;
  if (session.faulty <= MAX_FAULTY_MESSAGES) return;
  session.audit('session.too_many_faults', { faults: session.faulty });
  farewell(session, 'protocol.flood');
}

export function agentError(session: Session, message: SessionInputs['agent.error']): void {
  const endedCall = session.calls.onError(message.in_reply_to, message.error, session.nowMs);
  session.audit('agent.error', { endedCall });
}
