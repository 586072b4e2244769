// The log of a run that no workflow ever ran for: one terminal entry, told from what was decided in the registry, so
// that it is rebuilt as it was.
import { ERRORS } from '../rules/errors.ts';
import type { EventOf } from '../rules/events.ts';
import { eventIdOf, TERMINAL_KEY } from '../rules/ids.ts';
import type { JsonObject } from '../rules/json.ts';
import type { AppendBatch, Head, NewRow } from '../ports/log.ts';
import type { RunRef, RunRow, StartFailure } from '../ports/runs.ts';
import { fold, summaryOf } from './fold.ts';

function terminalRow(runId: string, { cause, atMs }: StartFailure): NewRow {
  return failedRow(runId, { code: 'start_failed', details: { cause }, timestampMs: atMs });
}

/** The end of a log that no workflow's code told. */
export function failedRow(
  runId: string,
  of: {
    readonly code: 'start_failed' | 'run_terminated';
    readonly details: JsonObject;
    readonly timestampMs: number;
  },
): NewRow {
  const { code, details, timestampMs } = of;
  const error = { code, message: ERRORS[code].message, details };
  const { type, payload }: EventOf = { type: 'run.failed', payload: { error } };
  return {
    runId,
    eventId: eventIdOf(runId, TERMINAL_KEY),
    key: TERMINAL_KEY,
    type,
    payload: JSON.stringify(payload),
    timestampMs,
  };
}

/** Behind an open head that no history was read for. */
export function startFailedBatch(run: RunRef, head: Head, failure: StartFailure): AppendBatch {
  const { temporalRunId, historyEventId, token, translateState } = head;
  const cursor = { temporalRunId, historyEventId, token };
  return {
    run,
    behind: cursor,
    cursor,
    rows: [terminalRow(run.runId, failure)],
    closedBlocks: [],
    status: 'failed',
    closed: true,
    translateState,
    fold,
    summary: (snapshot) => summaryOf(snapshot, undefined),
  };
}

/** Head and row as they are after that batch. */
export function startFailedLog(run: RunRow, failure: StartFailure) {
  const rows = [{ ...terminalRow(run.runId, failure), sequence: 0 }];
  const head: Head = {
    runId: run.runId,
    tenant: run.tenant,
    temporalRunId: '',
    historyEventId: 0,
    token: '',
    nextSequence: 1,
    lastTimestampMs: failure.atMs,
    status: 'failed',
    closed: true,
    translateVersion: run.input.translateVersion,
    translateState: null,
    snapshot: fold(null, rows),
  };
  return { head, rows };
}
