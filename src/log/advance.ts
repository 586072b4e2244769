// Brings one run's log up to its history (architecture §3.2): read behind the stored cursor, translate, append. Any
// process, any number at once: an append behind another cursor is refused as stale, and this goes on from where it
// stands.
import { codeOf, HostError } from '../rules/errors.ts';
import type { JsonValue } from '../rules/json.ts';
import { MAY_WAIT } from '../rules/status.ts';
import type { AppendOutcome, Head } from '../ports/log.ts';
import type { RunRef } from '../ports/runs.ts';
import { historyEventIdOf, translate, type Translation } from '../translate/translate.ts';
import { readCutOff } from './cut-off.ts';
import { fold, needsDefinition, summaryOf } from './fold.ts';
import { readPage, type LogParts, type Position } from './pages.ts';
import { beforeClosings } from './places.ts';
import { mend } from './rebuild.ts';

/** Pages that one call reads at most: a bound on a loop that ends at the history's tail. */
const MAX_PAGES = 10_000;
/** How long a read parks for something that a hint announced, in ms. Bounds the stop of a process, too. */
const PARK_MS = 2_000;
/** Times that one call makes a log again that lacks streamed text, while others move it. */
const MAX_MENDS = 10;

/** What a hint promises: the segment's history will be longer than `historyLength` events. */
export interface Goal {
  readonly temporalRunId: string;
  readonly historyLength: number;
}

export interface Advanced {
  readonly head: Head;
  /** The goal is behind the cursor, or its segment is over. True without a goal: the tail was reached. */
  readonly reached: boolean;
}

/** What is not the run's fault: asked again, it may work. */
const PASSING: ReadonlySet<string> = new Set(['service_unavailable', 'run_not_found']);

/** The run's problem, noted until the projection goes on. An unknown error is a fault that must show as well. */
async function noteProblem(
  { stores, logger }: LogParts,
  { run, problem }: { readonly run: RunRef; readonly problem?: string },
  error: unknown,
): Promise<void> {
  const code = codeOf(error) ?? 'internal_error';
  if (PASSING.has(code) || problem === code) return;
  await stores.log.setProblem(run, code);
  logger.error('the projection of a run stopped', {
    runId: run.runId,
    code,
    reason: String(error),
  });
}

function isReached(head: Head, goal: Goal | undefined): boolean {
  if (head.closed) return true;
  return (
    goal !== undefined &&
    head.temporalRunId === goal.temporalRunId &&
    head.historyEventId > goal.historyLength
  );
}

interface Read {
  readonly translated?: Translation;
  readonly token: string;
  readonly atTail: boolean;
  /** Where the log ended that was asked for what an ending cut off. */
  readonly seenSequence?: number;
}

async function readAndTranslate(
  parts: LogParts,
  head: Head,
  at: Position & { readonly waitMs: number },
): Promise<Read> {
  const { translateState } = head;
  const page = await readPage(parts, at, at.waitMs);
  const events = page.events.filter((event) => historyEventIdOf(event) > head.historyEventId);
  const { token, atTail } = page;
  if (events.length === 0) return { token, atTail };
  const translated = translate(events, translateState, head);
  if (translated.cutOff === undefined) return { translated, token, atTail };
  const { openBlocks, nextSequence } = await readCutOff(parts.stores.log, at.run, translated);
  return {
    translated: translate(events, translateState, { ...head, openBlocks }),
    token,
    atTail,
    seenSequence: nextSequence,
  };
}

async function append(
  parts: LogParts,
  head: Head,
  read: Read & { run: RunRef; translated: Translation; temporalRunId: string },
): Promise<AppendOutcome> {
  const { stores } = parts;
  const { run, translated, token, temporalRunId, seenSequence } = read;
  const { next, state, status, closed, closedBlocks, segment } = translated;
  const index = next === undefined ? segment : segment - 1;
  // Nothing can be open in the other statuses: the run's input, which may be large, is read for none of them.
  // Recorded deltas go along: the store skips those that it has.
  const rows = beforeClosings(head.runId, translated.entries, translated.deltas);
  const row =
    MAY_WAIT.has(status) || needsDefinition(rows)
      ? await stores.runs.find(run.tenant, run.runId)
      : undefined;
  return stores.log.append({
    run,
    behind: head,
    seenSequence,
    cursor:
      next === undefined
        ? { temporalRunId, historyEventId: translated.cursorEventId, token }
        : { temporalRunId: next, historyEventId: 0, token: '' },
    ...(head.historyEventId === 0 && { segment: { index, temporalRunId } }),
    rows,
    closedBlocks,
    status,
    closed,
    translateState: state,
    fold: (snapshot: JsonValue, appended) => fold(snapshot, appended, row?.input.definition),
    summary: (snapshot) => summaryOf(snapshot, row),
  });
}

/**
 * The database has lost streamed text that it had confirmed, and history has it: the log is made again. Where somebody else
 * has moved it meanwhile, the head as it is now: an append there says whether the log still lacks something.
 */
async function mended(parts: LogParts, run: RunRef, lacking: Head): Promise<Head> {
  const { runId } = run;
  const reason =
    'The database has lost streamed text of this run. Its log is made again from history.';
  parts.logger.warn(reason, { runId });
  const head = (await mend(parts, run, lacking))?.head ?? (await parts.stores.log.head(run));
  if (!head) throw new HostError('run_not_found', { runId });
  return head;
}

async function segmentOf(
  { stores }: LogParts,
  { tenant, runId }: RunRef,
  head: Head,
): Promise<string> {
  if (head.temporalRunId !== '') return head.temporalRunId;
  return (await stores.runs.find(tenant, runId))?.temporalRunId ?? '';
}

/** Of a read that brought nothing, whether it was the last. What a hint has promised is waited for once more. */
function isOver({ token, atTail }: Read, before: string, promised: boolean): boolean {
  return promised ? token === before || token === '' : atTail;
}

async function walk(
  parts: LogParts,
  { run, first }: { readonly run: RunRef; readonly first: Head },
  goal: Goal | undefined,
): Promise<Advanced> {
  let head = first;
  let token = head.token;
  let mends = 0;
  for (let page = 0; page < MAX_PAGES; page++) {
    if (isReached(head, goal)) return { head, reached: true };
    const temporalRunId = await segmentOf(parts, run, head);
    if (temporalRunId === '') return { head, reached: false };
    const here = goal?.temporalRunId === temporalRunId;
    const waitMs = here ? PARK_MS : 0;
    const read = await readAndTranslate(parts, head, { run, temporalRunId, token, waitMs });
    if (read.translated) {
      const { translated } = read;
      const outcome = await append(parts, head, { ...read, run, translated, temporalRunId });
      if (outcome.kind === 'lost' && ++mends > MAX_MENDS) throw movedTooOften(head);
      head = outcome.kind === 'lost' ? await mended(parts, run, outcome.head) : outcome.head;
      token = head.token;
    } else if (isOver(read, token, here)) {
      return { head, reached: !here };
    } else token = read.token;
  }
  throw new HostError('internal_error', { reason: `history of run ${first.runId} has no end` });
}

function movedTooOften({ runId }: Head): HostError {
  const reason = 'The log of the run cannot be made again now: others change it.';
  return new HostError('service_unavailable', { reason, runId });
}

export interface From {
  readonly goal?: Goal;
  /** The head as somebody has just read it: where others were faster meanwhile, an append says so. */
  readonly from?: Head | undefined;
}

/**
 * Reads to the tail of the run's history, or with a `goal` until that is behind the cursor, waiting a little for it.
 * Throws HostError run_not_found, service_unavailable (Temporal or database away), and whatever stopped the run's
 * projection (history_undecodable, key_unavailable, history_missing, internal_error, …) after noting it as the run's problem.
 */
export async function advance(
  parts: LogParts,
  run: RunRef,
  { goal, from }: From = {},
): Promise<Advanced> {
  const { stores, logger } = parts;
  const { runId } = run;
  const head = from ?? (await storedHead(parts, run));
  if (!head) throw new HostError('run_not_found', { runId });
  try {
    const advanced = await walk(parts, { run, first: head }, goal);
    if (head.problem === undefined) return advanced;
    await stores.log.setProblem(run, undefined);
    logger.info('history can be read again', { runId });
    return advanced;
  } catch (error) {
    await noteProblem(parts, { run, problem: head.problem }, error);
    throw error;
  }
}

async function storedHead(parts: LogParts, run: RunRef): Promise<Head | undefined> {
  try {
    return await parts.stores.log.head(run);
  } catch (error) {
    await noteProblem(parts, { run }, error);
    throw error;
  }
}
