// Reactions before core.welcome (seed 004 §4.1, §5.3, §6.1): a hello, the gate's word on it, and nothing else.
import { protocolError, type Outgoing } from './effects.ts';
import { PROTOCOL_VERSION, type ProtocolErrorCode } from '../messages.ts';
import type { MessageFault } from './read-message.ts';
import { ToolTable } from './registration.ts';
import type { Session, SessionInputs } from './session.ts';
import { farewell, over } from './end.ts';

export function hello(session: Session, message: SessionInputs['agent.hello']): void {
  const { payload } = message;
  session.agentId = payload.agent_id;
  // The token goes to the gate and nowhere else.
  session.hello = { ...message, payload: { ...payload, session_token: '' } };
  session.enter('checking');
  session.emit({ kind: 'check', hello: payload });
}

export function admitted(session: Session, input: SessionInputs['admitted']): void {
  const { sessionId, admission } = input;
  const { limits } = session.rules;
  session.sessionId = sessionId;
  session.admission = admission;
  session.tools = new ToolTable(session.agentId ?? '', session.rules, session.nowMs);
  const { attached, pid, manifestMatches, maxInflightRequests = Infinity } = admission;
  session.calls.maxInflight = Math.min(limits.maxInflightRequests, maxInflightRequests);
  session.connectedAtMs = session.nowMs;
  session.enter('ready');
  session.send({ ...welcome(session, sessionId), in_reply_to: session.hello?.id ?? '' });
  session.audit('session.opened', {
    transport: session.transport,
    attached,
    ...(pid !== undefined && { pid }),
    ...(manifestMatches !== undefined && { manifestMatches }),
  });
  session.emit({ kind: 'opened' });
}

function welcome(session: Session, sessionId: string): Extract<Outgoing, { type: 'core.welcome' }> {
  const { limits, coreVersion, instanceId } = session.rules;
  return {
    type: 'core.welcome',
    payload: {
      accepted_version: sessionId ? PROTOCOL_VERSION : 0,
      session_id: sessionId,
      heartbeat_interval_ms: limits.heartbeatIntervalMs,
      max_frame_bytes: limits.maxFrameBytes,
      server: { core_version: coreVersion, instance_id: instanceId },
    },
  };
}

/** core.welcome with a top-level error, then the end (§4.1.2). */
function unwelcome(session: Session, code: ProtocolErrorCode, inReplyTo = session.hello?.id): void {
  session.send({
    ...welcome(session, ''),
    ...(inReplyTo !== undefined && { in_reply_to: inReplyTo }),
    error: protocolError(code),
  });
  over(session, code);
}

export function refused(session: Session, { code }: SessionInputs['refused']): void {
  session.audit('hello.refused', { code });
  unwelcome(session, code);
}

export function invalidHello(session: Session, fault: MessageFault): void {
  if (fault.type !== 'agent.hello') return early(session);
  session.audit('hello.refused', { code: fault.code, pointer: fault.pointer });
  unwelcome(session, fault.code, fault.reply.in_reply_to);
}

/** Nothing is accepted before the token is (§5.3). */
export function early(session: Session): void {
  session.audit('message.before_welcome', { state: session.state });
  farewell(session, 'protocol.unexpected_message');
}

export function awaitHello(session: Session): void {
  if (session.nowMs - session.sinceMs <= session.rules.limits.helloMs) return;
  session.audit('hello.too_slow');
  farewell(session, 'protocol.too_slow');
}

/** The gate has as long as the agent had. */
export function awaitCheck(session: Session): void {
  if (session.nowMs - session.sinceMs <= session.rules.limits.helloMs) return;
  session.audit('hello.unchecked');
  unwelcome(session, 'protocol.too_slow');
}
