// The lines of what somebody waits for, and of a host that dies, in the bench's table for people.
import type { FirstEventReport } from './first-event.ts';
import type { RecoveryReport } from './recovery.ts';
import type { Line } from './report-lines.ts';
import type { Latency } from './statistics.ts';
import type { TurnaroundReport } from './turnaround.ts';

const AIMS = { start: 1.5, answer: 1.3, fanOutMs: 250, streamKiB: 40, diskKB: 20 };
const RECOVERY_AIM = '≤ 2 / 5 s';
const START_AIM = '≤ 3 s';
const BYTES_PER_KB = 1_000;

const both = ({ p50Ms, p95Ms }: Latency) => `${p50Ms} / ${p95Ms} ms`;

export function turnaroundLines(report: TurnaroundReport): Line[] {
  const { startToEnd, bareStartToEnd, answerToEnd, bareUpdateToEnd, fanOut, apart, disk } = report;
  return [
    [
      '`POST /v1/runs` → `run.completed` at the client, p50 / p95; bare workflow',
      `${both(startToEnd)}; ${both(bareStartToEnd)}; ratio ${report.startRatio.toFixed(2)} (${startToEnd.samples} samples)`,
      `≤ ${AIMS.start.toFixed(1)}`,
    ],
    [
      'Answer by HTTP → `run.completed` at the client, p50 / p95; bare Update',
      `${both(answerToEnd)}; ${both(bareUpdateToEnd)}; ratio ${report.answerRatio.toFixed(2)} (${answerToEnd.samples} samples)`,
      `≤ ${AIMS.answer.toFixed(1)}`,
    ],
    [
      `${fanOut.subscribers} subscribers of one run: answer → end of each stream, p50 / p99`,
      `${fanOut.p50Ms} / ${fanOut.p99Ms} ms`,
      `p99 ≤ ${AIMS.fanOutMs} ms`,
    ],
    [
      `As many streams of ${fanOut.subscribers} runs, 16 answers at once: answer → end of its stream, p50 / p99`,
      `${apart.p50Ms} / ${apart.p99Ms} ms`,
      '',
    ],
    [
      'Memory of the host for each of these streams',
      `${fanOut.hostKiBPerStream} KiB`,
      `≤ ${AIMS.streamKiB} KiB`,
    ],
    [
      `Disk for each of ${disk.runs} ended short runs: database, server, content`,
      `${(disk.bytesPerRun / BYTES_PER_KB).toFixed(1)} kB`,
      `≤ ${AIMS.diskKB} kB`,
    ],
  ];
}

export function recoveryLines({ killToEvent, start, kills }: RecoveryReport): Line[] {
  return [
    [
      `SIGKILL of the host → first new event of each run, restart included, p50 / p95 over ${kills} kills`,
      `${both(killToEvent)} (${killToEvent.samples} samples)`,
      RECOVERY_AIM,
    ],
    ['`npm start` → its address, its folder being there, p50 / p95', both(start), START_AIM],
  ];
}

export function firstEventLines({ toFirstEvent }: FirstEventReport): Line[] {
  return [
    [
      'Process of `npm start` → first event of the demo, empty folders, binaries cached, p50 / p95',
      `${both(toFirstEvent)} (${toFirstEvent.samples} samples)`,
      START_AIM,
    ],
  ];
}
