// Bounds of agent processes (seed 004 §4.5, §5; design §1): every wait and retry of the supervisor by name.

export interface ProcessLimits {
  /** From the start of a process to its valid hello, in ms; then it is killed. */
  readonly startMs: number;
  /** A launch token's life in ms (seed 004 §5.1). */
  readonly tokenMs: number;
  /** core.goodbye to the end of calls in flight, when Core stops, in ms. */
  readonly drainMs: number;
  /** What a process has to end by itself once its connection is gone, in ms; then SIGTERM. */
  readonly leaveMs: number;
  /** SIGTERM to SIGKILL of the group, in ms. */
  readonly terminateMs: number;
  /** How long the connection of an ended process is still read, in ms. */
  readonly lingerMs: number;
  /** Back-off where the manifest does not say: doubled at each exit, without jitter. */
  readonly firstDelayMs: number;
  readonly maxDelayMs: number;
  /** Connected for so long: the back-off begins anew. */
  readonly stableMs: number;
  /** Crash loop where the manifest does not say: so many exits within that time. */
  readonly crashExits: number;
  readonly crashWithinMs: number;
  /** Health `unhealthy` for so long: the session is closed and the process ended. */
  readonly unhealthyMs: number;
  /** Between looks at the memory of process groups, in ms. */
  readonly memoryEveryMs: number;
  /** Lease of an instance's row and how often it is renewed, in ms. */
  readonly leaseMs: number;
  readonly renewMs: number;
  /** Changes of an agent's row within so many ms are written once; where only its calls changed, the longer time. */
  readonly coalesceMs: number;
  readonly coalesceCallsMs: number;
}

export const DEFAULT_PROCESS_LIMITS: ProcessLimits = {
  startMs: 30_000,
  tokenMs: 5 * 60_000,
  drainMs: 8_000,
  leaveMs: 2_000,
  terminateMs: 4_000,
  lingerMs: 1_000,
  firstDelayMs: 500,
  maxDelayMs: 30_000,
  stableMs: 60_000,
  crashExits: 5,
  crashWithinMs: 60_000,
  unhealthyMs: 30_000,
  memoryEveryMs: 1_000,
  leaseMs: 15_000,
  renewMs: 5_000,
  coalesceMs: 250,
  coalesceCallsMs: 1_000,
};
