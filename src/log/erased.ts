// The log of a run whose key was destroyed (architecture §10.1): no history tells it any more, so its rows are kept in the
// content store as they are stored, sealed, and come back from there.
import { HostError } from '../rules/errors.ts';
import { EMPTY_LOG_DIGEST, extendedDigest } from '../rules/log-digest.ts';
import type { NewRow } from '../ports/log.ts';
import type { RunRef } from '../ports/runs.ts';
import type { ErasedRun, StoredRow } from '../ports/subjects.ts';
import type { Stores } from '../ports/stores.ts';
import { failedRow } from './start-failed.ts';

/** Rows per read. */
const READ_ROWS = 500;
/** A page of kept rows is stored when its payloads have so many UTF-16 units. */
const PAGE_LENGTH = 4 * 1024 * 1024;

/**
 * How the log of a run ends that nobody can read: its key, or what it sealed, is damaged. It holds nothing of the run, and is
 * stored as it is.
 */
export function unreadEnd(run: RunRef, timestampMs: number): NewRow {
  const reason = 'What the host had of it could not be read, and was erased.';
  return failedRow(run.runId, { code: 'run_terminated', details: { reason }, timestampMs });
}

type Parts = { readonly stores: Pick<Stores, 'subjects' | 'content' | 'runs'> };

interface KeptPage {
  /** Of the first page. */
  readonly head?: string;
  readonly rows: readonly StoredRow[];
}

async function* storedRows({ stores }: Parts, run: RunRef): AsyncIterable<readonly StoredRow[]> {
  for (let after = -1; ;) {
    const rows = await stores.subjects.storedRows(run, { after, limit: READ_ROWS });
    const last = rows.at(-1);
    if (!last) return;
    yield rows;
    after = last.sequence;
  }
}

/** How many entries the log has, and the digest over them as they are stored. */
export async function digestLog(
  parts: Parts,
  run: RunRef,
): Promise<Pick<ErasedRun, 'events' | 'root'>> {
  let events = 0;
  let root = EMPTY_LOG_DIGEST;
  for await (const rows of storedRows(parts, run)) {
    events += rows.length;
    for (const row of rows) root = extendedDigest(root, row);
  }
  return { events, root };
}

/** The head that is kept with a log. Undefined: it can come back to no run, since the run's row is not there. */
async function keptHead({ stores }: Parts, run: RunRef): Promise<string | undefined> {
  const { subjects, runs } = stores;
  if ((await runs.locate(run.runId))?.tenant !== run.tenant) return undefined;
  const head = await subjects.storedHead(run);
  if (head !== undefined) return head;
  await subjects.closeUnread(run, unreadEnd(run, Date.now()));
  return subjects.storedHead(run);
}

/**
 * Keeps the log of a run that has ended; what is kept has one hash, however often this is done. A head that is not there is
 * made first. Without the run's row nothing is kept (no pages), and what is left of the log is digested.
 */
export async function keepLog(parts: Parts, run: RunRef, erasureId: string): Promise<ErasedRun> {
  const { content } = parts.stores;
  const head = await keptHead(parts, run);
  if (head === undefined)
    return { runId: run.runId, erasureId, ...(await digestLog(parts, run)), pages: [] };
  const pages: string[] = [];
  let events = 0;
  let root = EMPTY_LOG_DIGEST;
  let page: StoredRow[] = [];
  let length = 0;
  const put = async (): Promise<void> => {
    const kept: KeptPage = { ...(pages.length === 0 ? { head } : {}), rows: page };
    const bytes = new TextEncoder().encode(JSON.stringify(kept));
    // As it is: its rows are sealed already, and no key seals anything new of this run.
    pages.push(...(await content.putAll([{ holder: run, bytes, isArchive: true }])));
    [page, length] = [[], 0];
  };
  for await (const rows of storedRows(parts, run)) {
    events += rows.length;
    for (const row of rows) {
      root = extendedDigest(root, row);
      page.push(row);
      length += row.payload.length;
    }
    if (length >= PAGE_LENGTH) await put();
  }
  if (page.length > 0 || pages.length === 0) await put();
  return { runId: run.runId, erasureId, events, root, pages };
}

/**
 * Rows and head as they were kept. Throws HostError content_missing, history_missing (what is kept is another log, or nothing)
 * and history_undecodable: it is not known where they are kept.
 */
export async function restoreErased(
  { stores }: Parts,
  run: RunRef,
  { pages, root, unreadable }: ErasedRun,
): Promise<void> {
  if (unreadable) throw new HostError(unreadable.code, { reason: unreadable.message });
  const rows: StoredRow[] = [];
  let head: string | undefined;
  for (const hash of pages) {
    const text = new TextDecoder().decode(await stores.content.get(run.tenant, hash));
    const page = JSON.parse(text) as KeptPage;
    head ??= page.head;
    rows.push(...page.rows);
  }
  const kept = rows.reduce(extendedDigest, EMPTY_LOG_DIGEST);
  if (head === undefined || kept !== root)
    throw new HostError('history_missing', {
      reason: 'What is kept of the erased run is not its log.',
    });
  await stores.subjects.restoreStored(run, { head, rows });
}
