// Which agent's calls go where (seed 004 §4.5: no calls to a silent or unhealthy agent): sessions by agent, who is told
// when one can be called, and calls that wait for one.
import type { JsonObject } from '../rules/json.ts';
import { callFailure } from './call-failure.ts';
import { Bell, nowMs, rest } from '../system/time.ts';
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
  /** Why nobody will have the agent, by agent. */
  readonly #givenUp = new Map<string, string>();
  /** Rings when something about the agent's session changed. */
  readonly #waiting = new Map<Bell, string>();
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

  /** While there is a reason, calls of the agent fail with it, those that wait as well. */
  giveUp(agentId: string, reason: string | undefined): void {
    if (reason === this.#givenUp.get(agentId)) return;
    if (reason === undefined) this.#givenUp.delete(agentId);
    else this.#givenUp.set(agentId, reason);
    this.changed(agentId);
  }

  changed(agentId: string): void {
    const isHere = this.#sessions.get(agentId)?.routable() ?? false;
    const now = isHere || this.#givenUp.has(agentId);
    if (now !== this.#open.has(agentId)) {
      if (now) this.#open.add(agentId);
      else this.#open.delete(agentId);
      for (const listener of this.#listeners) listener(agentId, now);
    }
    for (const [news, of] of this.#waiting) if (of === agentId) news.ring();
  }

  /** As Core.routable (parts.ts). */
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
    for (const news of this.#waiting.keys()) news.ring();
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

  async #sessionFor(wait: Wait): Promise<LiveSession> {
    let found = this.#find(wait);
    if (typeof found === 'number' && this.#waiting.size >= MAX_WAITING_CALLS)
      throw callFailure('rate_limited', false);
    for (; typeof found === 'number'; found = this.#find(wait)) {
      const news = new Bell();
      this.#waiting.set(news, wait.agentId);
      await news.rung(wait.signal, found);
      this.#waiting.delete(news);
    }
    return found;
  }

  /**
   * A session that takes the call now, or whose word on it is final; else the ms until time alone changes the answer.
   * Throws HostError when there will be none.
   */
  #find({ agentId, toolId, endsAtMs, signal }: Wait): LiveSession | number {
    if (signal.aborted) throw callFailure('cancelled', false);
    if (this.#stopped) throw callFailure('agent_unavailable', false);
    const session = this.#sessions.get(agentId);
    const routable = session?.routable() ? session : undefined;
    if (routable?.tools().some((tool) => tool.tool_id === toolId)) return routable;
    // A view is dear: it lists every call. Each call comes by here, few come further.
    const settlesAtMs = routable ? routable.view().connectedAtMs + REGISTRATION_MS : Infinity;
    const waitMs = Math.min(endsAtMs, settlesAtMs) - nowMs();
    const reason = routable ? undefined : this.#givenUp.get(agentId);
    if (reason !== undefined) throw callFailure('tool_failed', false, { reason, final: true });
    if (waitMs > 0) return waitMs;
    if (routable) return routable;
    throw callFailure('agent_unavailable', false);
  }
}

/** Connection lost before the call was written: another session may take it. */
function wasNotSent(error: unknown): boolean {
  const { code, sent } = (error ?? {}) as { code?: unknown; sent?: unknown };
  return code === 'agent_unavailable' && sent === false;
}
