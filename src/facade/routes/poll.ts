// GET /v1/runs/{runId}/events/poll (version-negotiation.md §events/poll): everything behind an exclusive cursor,
// waiting for it if need be.
import { isTerminalEvent } from '../../rules/status.ts';
import type { LogRow } from '../../ports/log.ts';
import type { RunRef } from '../../ports/runs.ts';
import { rowsShown, type ShownRows } from '../../wire/major.ts';
import type { FacadeDeps } from '../deps.ts';
import { integer } from '../parameters.ts';
import {
  shape,
  streamed,
  type Declaration,
  type Exchange,
  type InputOf,
  type Route,
} from '../route.ts';
import { readHead } from '../read-head.ts';
import { abortAfter } from '../../system/time.ts';
import type { StreamRegistry } from '../stream-registry.ts';
import { shownRunId } from '../urls.ts';

/** Rows in one answer unless the client asks for fewer. */
const POLL_ROWS = 10_000;
/** An answer above this many bytes ends there and is not complete: the next poll goes on behind it. */
export const POLL_BYTES = 4 * 1024 * 1024;
/** Rows read from the store at once. */
const PAGE_ROWS = 100;
/** A poll without `timeout` waits at most this long: clients give a request 20 s. */
const DEFAULT_WAIT_SECONDS = 10;
const MAX_WAIT_SECONDS = 60;

const CURSOR = { min: -1, max: Number.MAX_SAFE_INTEGER, example: 17 };

export const POLL_RUN_EVENTS = {
  method: 'get',
  path: '/runs/{runId}/events/poll',
  operationId: 'pollRunEvents',
  summary: 'Events behind a cursor; waits for the next one.',
  access: 'runs:read',
  about: 'run',
  parameters: {
    lastSequence: {
      ...integer('Exclusive cursor; absent: from the first event.', CURSOR),
      otherwise: {
        ...integer('Old name of `lastSequence`, beside which it is not read.', CURSOR),
        ...{ name: 'since', deprecated: true, schema: {} },
      },
    },
    timeout: integer('Longest wait in seconds.', {
      ...{ min: 1, max: MAX_WAIT_SECONDS, default: DEFAULT_WAIT_SECONDS, example: 5 },
    }),
    limit: integer('Events in one answer.', {
      ...{ min: 1, max: POLL_ROWS, default: POLL_ROWS, example: 100 },
    }),
  },
  success: { status: 200, description: 'The events.', schema: shape('EventPollResponse') },
} as const satisfies Declaration;

export function pollRoute(deps: FacadeDeps, streams: StreamRegistry): Route {
  return streamed(POLL_RUN_EVENTS, (input, exchange) =>
    answerPoll({ ...deps, streams }, input, exchange),
  );
}

/** A stream because it waits: it must know when its client goes. */
async function answerPoll(
  deps: FacadeDeps & { readonly streams: StreamRegistry },
  input: InputOf<typeof POLL_RUN_EVENTS>,
  { response }: Exchange,
): Promise<void> {
  const { caller, run, parameters } = input;
  const { lastSequence: after = -1, timeout: seconds, limit } = parameters;
  const read = await readHead(deps, run);
  response.set(read.headers);
  let { head } = read;
  let rows = await readRows(deps, run, { after, limit });
  if (rows.length === 0 && !head.closed) {
    const stream = deps.streams.open(caller.subject, response);
    if (stream.signal.aborted) return;
    const over = abortAfter(seconds * 1000);
    const until = AbortSignal.any([stream.signal, over.signal]);
    // A cursor after the end is of events that were lost: what comes next ends the wait.
    const behind = Math.min(after, head.nextSequence - 1);
    await nextRows(deps, { run, after: behind }, until).finally(over.clear);
    rows = await readRows(deps, run, { after, limit });
    head = (await deps.log.head(run)) ?? head;
  }
  if (response.destroyed) return;
  sendPoll(response, {
    runId: shownRunId(input, run.runId),
    shown: rowsShown(input.major, run),
    status: head.status,
    after,
    rows,
    complete: isComplete(head, rows, after),
  });
}

/** At least one row where there is one, then as many as fit. */
async function readRows(
  { log }: FacadeDeps,
  run: RunRef,
  { after, limit }: { after: number; limit: number },
): Promise<readonly LogRow[]> {
  const all: LogRow[] = [];
  let bytes = 0;
  for await (const rows of log.rows(run, { after, limit, pageRows: PAGE_ROWS })) {
    for (const row of rows) {
      bytes += Buffer.byteLength(row.payload);
      if (bytes > POLL_BYTES && all.length > 0) return all;
      all.push(row);
    }
  }
  return all;
}

/** Complete is an answer after which nothing is left to ask for. */
function isComplete(
  head: { closed: boolean; nextSequence: number },
  rows: readonly LogRow[],
  after: number,
): boolean {
  const last = rows.at(-1);
  if (last) return isTerminalEvent(last.type);
  return head.closed && after >= head.nextSequence - 1;
}

/** Returns when there is something behind the cursor, or at the signal. */
async function nextRows(
  deps: FacadeDeps,
  { run, after }: { run: RunRef; after: number },
  signal: AbortSignal,
): Promise<void> {
  for await (const rows of deps.log.follow(run, { after, signal })) {
    if (rows.length > 0) return;
  }
}

interface PollAnswer {
  readonly runId: string;
  readonly shown: ShownRows;
  readonly status: string;
  readonly after: number;
  readonly rows: readonly LogRow[];
  readonly complete: boolean;
}

/** The union of the two documented shapes; events are the same bytes as in the JSON read. */
function sendPoll(
  response: Exchange['response'],
  { runId, shown, status, after, rows, complete }: PollAnswer,
): void {
  const rest = {
    isComplete: complete,
    runId,
    lastEventSeq: rows.at(-1)?.sequence ?? after,
    runStatus: status,
    isTerminal: complete,
  };
  const events = rows.map((row) => shown.textOf(row)).join(',');
  response
    .status(200)
    .type('application/json')
    .send(`{"events":[${events}],${JSON.stringify(rest).slice(1)}`);
}
