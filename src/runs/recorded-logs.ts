// The records that a branch goes by (replay.md §Modes): that of its source, and where that went by recorded tools itself,
// those behind it, since what it took from there stands in its own by the names of there.
import type { RecordedLog } from '../rules/overlay.ts';
import type { RunRow } from '../ports/runs.ts';
import type { Stores } from '../ports/stores.ts';

/** More stand behind each other nowhere: forks of forks have a bound of their own. */
const MAX_RECORDS = 32;

/** From the nearest on; it ends at one that is not there any more. */
export async function* logsBehind(
  runs: Pick<Stores['runs'], 'find'>,
  tenant: string,
  recordedBy: RecordedLog,
): AsyncGenerator<{ readonly row: RunRow; readonly length: number }> {
  let next: RecordedLog | null | undefined = recordedBy;
  for (let count = 0; next && count < MAX_RECORDS; count++) {
    const { runId, length }: RecordedLog = next;
    const row = await runs.find(tenant, runId);
    if (!row) return;
    yield { row, length };
    const { overlay, inherited } = row.input.fork ?? {};
    // What it took before its tools were live again stands in its record, too.
    next = overlay?.recordedTools ?? inherited?.recordedTools;
  }
}
