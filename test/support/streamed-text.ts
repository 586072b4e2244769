// What an activity streams and how it records that, against a log without a worker.
import { deltaPayload } from '../../src/rules/deltas.ts';
import { deltaKey, eventIdOf } from '../../src/rules/ids.ts';
import type { RecordedDeltas } from '../../src/rules/journal.ts';
import type { LogRow, NewDelta } from '../../src/ports/log.ts';
import type { RunRef } from '../../src/ports/runs.ts';
import type { Stores } from '../../src/ports/stores.ts';

const FIRST_MS = 1_025;
const FORM = { type: 'agent.reasoning.delta', nodeId: 'n' };
const BASE = { agentId: 'core.a' };

export interface StreamedText {
  readonly activityId: string;
  readonly pieces: readonly string[];
  /** Pieces of it that came before. */
  readonly k0?: number;
}

function deltasOf(runId: string, { activityId, pieces, k0 = 0 }: StreamedText): NewDelta[] {
  return pieces.map((text, index) => {
    const k = k0 + index;
    const key = deltaKey(activityId, k);
    const payload = deltaPayload({ base: BASE }, { text }, k);
    const timestampMs = FIRST_MS + index;
    return {
      k,
      row: { ...FORM, runId, eventId: eventIdOf(runId, key), key, payload, timestampMs },
    };
  });
}

/** Throws by the reason why it is refused. */
export async function streamText(stores: Stores, run: RunRef, text: StreamedText): Promise<void> {
  const deltas = deltasOf(run.runId, text);
  const outcome = await stores.log.appendDeltas(run, text.activityId, 1, deltas);
  if (outcome.kind === 'refused') throw new Error(outcome.reason);
}

/** As an activity records what it streamed; of text that is stored nowhere `rows` are what it had stored. */
export async function recordText(
  stores: Stores,
  run: RunRef,
  activityId: string,
): Promise<RecordedDeltas> {
  return recordedRows(activityId, await stores.log.closeBlock(run, activityId));
}

/** Of text that stood at these sequences, and is stored nowhere now. */
export function recordedAt(runId: string, text: StreamedText, sequences: readonly number[]) {
  const rows = deltasOf(runId, text).map(({ row }, at) => ({
    ...row,
    sequence: sequences[at] ?? -1,
  }));
  return recordedRows(text.activityId, rows);
}

function recordedRows(activityId: string, rows: readonly LogRow[]): RecordedDeltas {
  const texts = rows.map(({ payload }) => (JSON.parse(payload) as { delta: string }).delta);
  let end = 0;
  return {
    ...{ ...FORM, activityId, base: BASE, text: texts.join('') },
    cuts: texts.map((text) => (end += text.length)),
    sequences: rows.map(({ sequence }) => [sequence, 1] as const),
    times: rows.map(({ timestampMs }, at) => timestampMs - (rows[at - 1]?.timestampMs ?? 0)),
  };
}
