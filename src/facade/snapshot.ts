// The one wire form of a run's state: the GET answer and the frames of `values` mode are the same bytes.
import { snapshotOf } from '../log/fold.ts';
import type { Head } from '../ports/log.ts';
import type { RunRow } from '../ports/runs.ts';
import type { ServedMajor } from './majors.ts';

/** RunSnapshot (run-snapshot.schema.json) and `atSeq`, the last sequence it has seen; -1 before the first event. */
export function renderSnapshot(major: ServedMajor, head: Head, row: RunRow): object {
  return major.snapshot({ ...snapshotOf(head, row), atSeq: head.nextSequence - 1 }, row);
}
