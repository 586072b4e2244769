// Which agent's calls go where (seed 004 §4.5: no calls to a silent or unhealthy agent): sessions by agent, who is told
// when one can be called, and calls that wait for one.
import type { HostError } from '../rules/errors.ts';
import type { JsonObject } from '../rules/json.ts';
import { rest } from '../system/time.ts';
import { callFailure } from './call-failure.ts';
import { nowMs } from './clock.ts';
import type { LiveSession, SessionCall } from './parts.ts';

/** Calls of one Core that wait for an agent; above it `rate_limited`. */
export const MAX_WAITING_CALLS = 4_096;
/** What a session that was just opened has to register its tools, in ms, before a call says that there is no such tool. */
const REGISTRATION_MS = 2_000;
/** From a call that a session did not take any more to the look for another session, in ms. */
const AGAIN_MS = 100;

export type RoutableListener = (agentId: string, routable: boolean) => void;

interface Wait {
  readonly agentId: string;
  readonly toolId: string;
  readonly endsAtMs: number;
  readonly signal: AbortSignal;
}

export class Routing {
  readonly #sessions = new Map<string, LiveSession>();
  readonly #open = new Set<string>();
  readonly #listeners = new Set<RoutableListener>();
  /** Called when something about an agent's session changed. */
  readonly #waiting = new Set<(agentId: string) => void>();
  #stopped = false;

  session(agentId: string): LiveSession | undefined {
    return this.#sessions.get(agentId);
  }

  opened(session: LiveSession): void {
    this.#sessions.set(session.agentId, session);
    this.changed(session.agentId);
  }

  closed(session: LiveSession): void {
    if (this.#sessions.get(session.agentId) === session) this.#sessions.delete(session.agentId);
    this.changed(session.agentId);
  }

  changed(agentId: string): void {
    const now = this.#sessions.get(agentId)?.routable() ?? false;
    if (now !== this.#open.has(agentId)) {
      if (now) this.#open.add(agentId);
      else this.#open.delete(agentId);
      for (const listener of this.#listeners) listener(agentId, now);
    }
    for (const look of [...this.#waiting]) look(agentId);
  }

  routable(): readonly string[] {
    return [...this.#open].sort();
  }

  onRoutable(listener: RoutableListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Calls that wait end, new ones are refused. */
  stop(): void {
    this.#stopped = true;
    for (const look of [...this.#waiting]) look('');
  }

  /** As Core.call (parts.ts). A session that goes before the call was sent costs time, not the call. */
  async call(agentId: string, call: SessionCall, connectMs: number): Promise<JsonObject> {
    const { toolId, signal } = call;
    const wait: Wait = { agentId, toolId, endsAtMs: nowMs() + connectMs, signal };
    for (;;) {
      const session = await this.#sessionFor(wait);
      try {
        return await session.call(call);
      } catch (error) {
        if (!wasNotSent(error) || nowMs() >= wait.endsAtMs) throw error;
        await rest(AGAIN_MS);
      }
    }
  }

  #sessionFor(wait: Wait): Promise<LiveSession> {
    const refusal = this.#refusal(wait);
    if (refusal) return Promise.reject(refusal);
    const ready = this.#ready(wait);
    if (ready) return Promise.resolve(ready);
    if (this.#waiting.size >= MAX_WAITING_CALLS)
      return Promise.reject(callFailure('rate_limited', false));
    return new Promise((resolve, reject) => {
      const look = (agentId?: string) => {
        if (agentId !== undefined && agentId !== '' && agentId !== wait.agentId) return;
        const refused = this.#refusal(wait);
        const session = refused ? undefined : this.#ready(wait);
        if (!refused && !session) return arm();
        this.#waiting.delete(look);
        clearTimeout(timer);
        wait.signal.removeEventListener('abort', aborted);
        if (refused) reject(refused);
        else if (session) resolve(session);
      };
      const aborted = () => look();
      let timer: NodeJS.Timeout | undefined;
      const arm = () => {
        clearTimeout(timer);
        timer = setTimeout(look, this.#nextLookMs(wait));
      };
      this.#waiting.add(look);
      wait.signal.addEventListener('abort', aborted);
      arm();
    });
  }

  #refusal({ endsAtMs, signal, agentId, toolId }: Wait): HostError | undefined {
    if (signal.aborted) return callFailure('cancelled', false);
    if (this.#stopped) return callFailure('agent_unavailable', false);
    const late = nowMs() >= endsAtMs;
    return late && !this.#ready({ agentId, toolId, endsAtMs, signal })
      ? callFailure('agent_unavailable', false)
      : undefined;
  }

  /** A session that takes the call now, or whose word on it is final. */
  #ready({ agentId, toolId, endsAtMs }: Wait): LiveSession | undefined {
    const session = this.#sessions.get(agentId);
    if (!session?.routable()) return undefined;
    if (session.tools().some((tool) => tool.tool_id === toolId)) return session;
    // A view is dear: it lists every call. Each call comes by here, few come further.
    const settlesAtMs = Math.min(endsAtMs, session.view().connectedAtMs + REGISTRATION_MS);
    return nowMs() >= settlesAtMs ? session : undefined;
  }

  #nextLookMs({ agentId, endsAtMs }: Wait): number {
    const now = nowMs();
    const session = this.#sessions.get(agentId);
    const settlesAtMs = session?.routable()
      ? session.view().connectedAtMs + REGISTRATION_MS
      : endsAtMs;
    return Math.max(1, Math.min(endsAtMs, settlesAtMs) - now);
  }
}

/** Connection lost before the call was written: another session may take it. */
function wasNotSent(error: unknown): boolean {
  const { code, sent } = (error ?? {}) as { code?: unknown; sent?: unknown };
  return code === 'agent_unavailable' && sent === false;
}
