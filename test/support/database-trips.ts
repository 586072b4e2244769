// Trips of this process to its database, as the driver makes them: each statement one, BEGIN and COMMIT too. PostgreSQL's
// are counted where `pg` sends a query, PGlite's where a request is posted to its thread.
import { MessagePort } from 'node:worker_threads';
import pg from 'pg';
import { vi } from 'vitest';

/** What went to the database while `work` ran: the statement, or what else was asked. */
export async function tripsOf(work: () => Promise<unknown>): Promise<string[]> {
  const queries = vi.spyOn(pg.Client.prototype, 'query');
  const posts = vi.spyOn(MessagePort.prototype, 'postMessage');
  try {
    await work();
    const sent = queries.mock.calls.map(([query]) => query as string | { text: string });
    const posted = posts.mock.calls.flatMap(([message]) => {
      const { op, text } = (message ?? {}) as { op?: string; text?: string };
      return op === undefined ? [] : [text ?? op];
    });
    return [...sent.map((query) => (typeof query === 'string' ? query : query.text)), ...posted];
  } finally {
    queries.mockRestore();
    posts.mockRestore();
  }
}
