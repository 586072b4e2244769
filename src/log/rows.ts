// Rows of a stored log, page by page (architecture §3.3): whoever reads a whole log holds no more of it than one page.
import type { LogRow, LogStore } from '../ports/log.ts';
import type { RunRef } from '../ports/runs.ts';

/** Rows of a page that names no other number. */
const PAGE_ROWS = 500;
/** Of questions: each row may hold all that was asked. */
const PAGE_QUESTIONS = 100;

export interface RowsQuery {
  /** Exclusive sequence; default -1: from the first row. */
  readonly after?: number;
  /** Rows in all at most; default all. */
  readonly limit?: number;
  /** Rows of one page at most; default 500. */
  readonly pageRows?: number;
}

/**
 * Ascending; no page is empty. What is appended meanwhile is read as well, until a page is not full. The next page is
 * read when the last was taken.
 */
export async function* readRows(
  log: Pick<LogStore, 'read'>,
  run: RunRef,
  { after = -1, limit = Infinity, pageRows = PAGE_ROWS }: RowsQuery = {},
): AsyncGenerator<readonly LogRow[], void, void> {
  let behind = after;
  for (let left = limit; left > 0;) {
    const asked = Math.min(pageRows, left);
    const rows = await log.read(run, { after: behind, limit: asked });
    const last = rows.at(-1);
    if (last) yield rows;
    if (!last || rows.length < asked) return;
    behind = last.sequence;
    left -= rows.length;
  }
}

/** Those that tell what became of a node's questions. */
export function readQuestions(
  log: Pick<LogStore, 'questions'>,
  run: RunRef,
  nodeId: string,
): AsyncIterable<readonly LogRow[]> {
  const ofNode: Pick<LogStore, 'read'> = {
    read: (asked, query) => log.questions(asked, { ...query, nodeId }),
  };
  return readRows(ofNode, run, { pageRows: PAGE_QUESTIONS });
}
