// What a Temporal server may lack (architecture §7): the dev server and a cluster have everything; the in-memory Java
// test server, the last resort, neither waits at a history's tail nor lists executions (architecture §7).

export interface ServerTraits {
  /** Lists executions by a query. Without it ends that no worker saw show when their run is read. */
  readonly visibility: boolean;
  /** Gives tokens that go on behind a history's tail, and parks reads there. Without it whole histories are read. */
  readonly historyTail: boolean;
  /** False: every run ends with the server's process. */
  readonly keepsRuns: boolean;
}

export const FULL_SERVER: ServerTraits = { visibility: true, historyTail: true, keepsRuns: true };

export const IN_MEMORY_SERVER: ServerTraits = {
  visibility: false,
  historyTail: false,
  keepsRuns: false,
};
