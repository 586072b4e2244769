// How a session ends (seed 004 §2.2, §4.1.3): what was in flight is settled, the connection closed after what was sent.
import { unanswered } from './call-outcomes.ts';
import type { NewCall } from './calls.ts';
import { protocolError } from './effects.ts';
import type { ProtocolErrorCode } from '../messages.ts';
import type { Session, SessionInputs } from './session.ts';

/** After a bad frame the next boundary is not known: close (§2.2). */
export function frameFault(session: Session, { fault }: SessionInputs['frame-fault']): void {
  session.audit(`frame.${fault.replaceAll('-', '_')}`);
  if (fault === 'truncated') return over(session, 'ended');
  const tooLarge = fault === 'too-large';
  farewell(session, tooLarge ? 'protocol.frame_too_large' : 'protocol.invalid_frame');
}

/** core.goodbye with the reason as an error, then the end. */
export function farewell(session: Session, code: ProtocolErrorCode): void {
  session.send({ type: 'core.goodbye', payload: { reason: code }, error: protocolError(code) });
  over(session, code);
}

/** By Core's own word, or a limit of the connection: then with its code. */
export function closed(session: Session, { reason, code }: SessionInputs['close']): void {
  if (code) return farewell(session, code);
  session.send({ type: 'core.goodbye', payload: { reason } });
  over(session, reason);
}

export function over(session: Session, reason: string): void {
  const wasOpen = session.sessionId !== undefined;
  const calls = session.calls.inFlight;
  session.enter('closed');
  session.calls.abandon(session.nowMs);
  session.audit(wasOpen ? 'session.closed' : 'connection.closed', { reason, calls });
  session.emit({ kind: 'close', reason });
}

export function unroutable(session: Session, { callId }: NewCall): void {
  session.emit({ kind: 'settle', callId, outcome: unanswered('agent_unavailable', false) });
}
