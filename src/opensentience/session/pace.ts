// Brakes on an agent (seed 004 §2.2: Core may throttle): how fast it is read, how much work its schemas may make, how
// much its process may print, and how many notes of one kind the audit takes of it. Time comes in as ms.

export interface Rate {
  readonly perSecond: number;
  /** What may come at once. */
  readonly burst: number;
}

/** Tokens that are taken, and come back by time. */
export class Pace {
  readonly #rate: Rate;
  #tokens: number;
  #atMs: number;

  constructor(rate: Rate, nowMs: number) {
    this.#rate = rate;
    this.#tokens = rate.burst;
    this.#atMs = nowMs;
  }

  /** 0: taken, go on. Otherwise the ms until `cost` could be taken. */
  take(nowMs: number, cost = 1): number {
    const { perSecond, burst } = this.#rate;
    // A clock that is set back gives nothing, and takes nothing.
    const gained = (Math.max(0, nowMs - this.#atMs) / 1000) * perSecond;
    this.#tokens = Math.min(burst, this.#tokens + gained);
    this.#atMs = nowMs;
    if (this.#tokens < cost) return Math.ceil(((cost - this.#tokens) / perSecond) * 1000);
    this.#tokens -= cost;
    return 0;
  }

  /** What is known only when it is done: the next one waits until it is paid. */
  spend(cost: number): void {
    this.#tokens -= cost;
  }
}

/** Notes of one kind that one connection may add to the audit within AUDIT_WINDOW_MS; the rest is counted. */
export const MAX_AUDITS_PER_KIND = 100;
const AUDIT_WINDOW_MS = 60_000;

export class AuditQuota {
  readonly #counts = new Map<string, number>();
  #windowAtMs: number;
  #suppressed = 0;

  constructor(nowMs: number) {
    this.#windowAtMs = nowMs;
  }

  get suppressed(): number {
    return this.#suppressed;
  }

  takes(kind: string, nowMs: number): boolean {
    if (nowMs - this.#windowAtMs >= AUDIT_WINDOW_MS) {
      this.#windowAtMs = nowMs;
      this.#counts.clear();
    }
    const count = (this.#counts.get(kind) ?? 0) + 1;
    this.#counts.set(kind, count);
    if (count > MAX_AUDITS_PER_KIND) this.#suppressed += 1;
    return count <= MAX_AUDITS_PER_KIND;
  }
}
