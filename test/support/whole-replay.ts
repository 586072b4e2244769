// A run that has ended, played again as a whole from its own histories (architecture §6), without the host around it.
import { randomUUID } from 'node:crypto';
import type { RecordedEntry } from '../../src/rules/recording.ts';
import { livedBy, renamed } from '../../src/rules/recording.ts';
import type { ForkOf, RunInput } from '../../src/rules/run-input.ts';
import { recordingOf } from '../../src/translate/recording.ts';
import { translate } from '../../src/translate/translate.ts';
import type { FinishedRun } from './run-workflow.ts';
import type { WorkflowLab } from './workflow-lab.ts';

/** What the replay comes to; `lab` may be another one than the run's. */
export async function replayWhole(
  lab: WorkflowLab,
  source: FinishedRun,
  input: RunInput,
): Promise<FinishedRun> {
  const entries: RecordedEntry[] = [];
  let state: Parameters<typeof translate>[1] = null;
  for (const events of source.segments) {
    const page = translate(events, state, { runId: input.runId, translateVersion: 1 });
    entries.push(...(page.entries as unknown as RecordedEntry[]));
    state = page.state;
  }
  const { batches } = livedBy(input.runId, recordingOf(source.segments, entries));
  const runId = `replay-${randomUUID()}`;
  const fork: ForkOf = {
    ...{ sourceRunId: input.runId, fromSeq: 0, length: entries.length, mode: 'replay' },
    ...{ generation: 1, isWhole: true },
    clocks: [
      {
        recordEndsMs: entries.at(-1)?.timestampMs ?? 0,
        madeAtMs: await lab.clock.nowMs(),
      },
    ],
  };
  const page = {
    ...{ entries, batches: renamed(batches, input.runId, runId) },
    ...{ sourceRunId: input.runId, prefix: 0, isLast: true },
  };
  const recording = JSON.parse(JSON.stringify(page)) as unknown;
  return lab.run({
    input: { ...input, runId, fork },
    activities: { readRecording: async () => ({ output: null, events: [], recording }) },
  });
}
