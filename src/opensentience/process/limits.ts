// Bounds of agent processes (seed 004 §4.5, §5; architecture §10): every wait and retry of the supervisor by name.

export const DEFAULT_PROCESS_LIMITS = {
  /** From the start of a process to its valid hello, in ms; then it is killed. */
  startMs: 30_000,
  /** A launch token's life in ms (seed 004 §5.1). */
  tokenMs: 5 * 60_000,
  /** core.goodbye to the end of calls in flight, when Core stops, in ms. */
  drainMs: 8_000,
  /** What a process has to end by itself once its connection is gone, in ms; then SIGTERM. */
  leaveMs: 2_000,
  /** SIGTERM to SIGKILL of the group, in ms. */
  terminateMs: 4_000,
  /** How long the connection of an ended process is still read, in ms. */
  lingerMs: 1_000,
  /** Back-off where the manifest does not say: doubled at each exit, without jitter. */
  firstDelayMs: 500,
  maxDelayMs: 30_000,
  /** Connected for so long: the back-off begins anew. */
  stableMs: 60_000,
  /** Crash loop where the manifest does not say: so many exits within that time. */
  crashExits: 5,
  crashWithinMs: 60_000,
  /** So many starts in a row without an accepted tool are a crash loop as well, however long each took. */
  startsWithoutTool: 5,
  /** Health `unhealthy` for so long: the session is closed and the process ended. */
  unhealthyMs: 30_000,
  /** Between looks at the memory of process groups, in ms. */
  memoryEveryMs: 1_000,
  /** Lease of an instance's row and how often it is renewed, in ms. */
  leaseMs: 15_000,
  renewMs: 5_000,
  /** Changes of an agent's row within so many ms are written once; where only its calls changed, the longer time. */
  coalesceMs: 250,
  coalesceCallsMs: 1_000,
};
export type ProcessLimits = Readonly<typeof DEFAULT_PROCESS_LIMITS>;
