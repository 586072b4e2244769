// A human who says yes to all that a run asks, until it has completed.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { neverByChance } from '../broken.ts';
import type { PatientClient } from './client.ts';

/** Each look costs the facade. */
const POLL_MS = 200;

/** Throws where it ends otherwise. `doubts`: questions about effects in doubt, each of which was performed again. */
export async function sayYesToEnd(
  client: PatientClient,
  runId: string,
  limitMs: number,
): Promise<{ readonly doubts: number }> {
  const answered = new Set<string>();
  let doubts = 0;
  const limit = Date.now() + limitMs;
  for (;;) {
    const snapshot = await client.snapshot(runId);
    if (['completed', 'failed', 'cancelled'].includes(snapshot.status)) {
      const told = JSON.stringify(snapshot);
      await neverByChance(() => assert.equal(snapshot.status, 'completed', told));
      return { doubts };
    }
    if (Date.now() > limit) throw new Error(`${runId} has not ended: ${JSON.stringify(snapshot)}`);
    const asked = snapshot.interrupt as
      { interruptId: string; nodeId: string; artifactType?: string } | undefined;
    if (asked && !answered.has(asked.interruptId)) {
      answered.add(asked.interruptId);
      if (asked.artifactType === 'effect-in-doubt') doubts++;
      const key = `${runId} ${asked.interruptId}`;
      await client.answer(runId, asked.nodeId, { value: { action: 'accept' }, key });
    } else await sleep(POLL_MS);
  }
}
