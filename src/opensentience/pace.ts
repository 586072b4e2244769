// Two brakes of a connection (seed 004 §2.2: Core may throttle): how fast an agent is read, and how many notes of one
// kind the audit takes of it. Time comes in as ms.

/** Tokens that come back by time: one message takes one. A second's worth may come at once. */
export class Pace {
  readonly #perSecond: number;
  #tokens: number;
  #atMs: number;

  constructor(perSecond: number, nowMs: number) {
    this.#perSecond = perSecond;
    this.#tokens = perSecond;
    this.#atMs = nowMs;
  }

  /** 0: go on. Otherwise the ms until the next message may be taken. */
  take(nowMs: number): number {
    const gained = ((nowMs - this.#atMs) / 1000) * this.#perSecond;
    this.#tokens = Math.min(this.#perSecond, this.#tokens + gained);
    this.#atMs = nowMs;
    if (this.#tokens < 1) return Math.ceil(((1 - this.#tokens) / this.#perSecond) * 1000);
    this.#tokens -= 1;
    return 0;
  }
}

/** Notes of one kind that one connection may add to the audit within AUDIT_WINDOW_MS; the rest is counted. */
export const MAX_AUDITS_PER_KIND = 100;
export const AUDIT_WINDOW_MS = 60_000;

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
