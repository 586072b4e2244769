// The lines of a database of years, and of load that goes on and on, in the bench's table for people.
import type { Line } from './report-lines.ts';
import type { ScaleReport } from './scale.ts';
import type { SoakReport } from './soak.ts';

const AIMS = { readMs: 20, waitingKB: 22 };
const BYTES_PER_KB = 1_000;

export function scaleLines(report: ScaleReport): Line[] {
  const { missing, ended, waiting, reads } = report;
  const what = `${ended.toLocaleString('en')} ended and ${waiting.toLocaleString('en')} waiting runs on PostgreSQL`;
  if (missing !== undefined) return [[what, `not measured: ${missing}`, '']];
  const rows = [
    ['a page of the list', report.listPage],
    ['a snapshot', report.snapshot],
    ['a page of events', report.eventsPage],
  ] as const;
  return [
    ...rows.map(([name, { p50Ms, p99Ms }]): Line => [
      `${what}: ${name}, p50 / p99 over HTTP`,
      `${p50Ms} / ${p99Ms} ms (${reads} samples)`,
      `p99 ≤ ${AIMS.readMs} ms`,
    ]),
    [
      `${what}: answer → end of the run's stream, p50 / p99`,
      `${report.answerToEnd.p50Ms} / ${report.answerToEnd.p99Ms} ms`,
      '',
    ],
    [
      `${what}: start, and memory at rest without PostgreSQL`,
      `${report.startMs} ms; ${report.restMiB} MiB`,
      '',
    ],
    ['A waiting run in the database', `${report.kBPerWaitingRun} kB`, `≤ ${AIMS.waitingKB} kB`],
  ];
}

export function soakLines(report: SoakReport): Line[] {
  const { minutes, runs, runsPerSecond, earlyMiB, lateMiB, slopeMiBPerHour, noiseMiB } = report;
  return [
    [
      `${minutes} minutes of full load: memory of all processes, behind the first sixth`,
      `${earlyMiB} → ${lateMiB} MiB; ${slopeMiBPerHour} MiB an hour, noise ± ${noiseMiB} MiB (${report.samples} samples)`,
      'no slope',
    ],
    [
      'The same, by program: first, last',
      `${byProgram(report.earlyByProcess)}; ${byProgram(report.lateByProcess)} MiB`,
      '',
    ],
    [
      'The same: runs that ended; disk for each, nothing being deleted',
      `${runs}, ${runsPerSecond} a second; ${(report.bytesPerRun / BYTES_PER_KB).toFixed(1)} kB`,
      '',
    ],
  ];
}

function byProgram(mib: Readonly<Record<string, number>>): string {
  return Object.entries(mib)
    .map(([name, value]) => `${name} ${value.toFixed(0)}`)
    .join(', ');
}
