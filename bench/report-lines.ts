// The lines of each section of the bench in its table for people: what, how much, and what is aimed at.
import type { DefaultServerRow } from './default-server.ts';
import type { FamiliesReport } from './families.ts';
import type { ForkedOnce, ForksReport } from './forks.ts';
import type { LatencyReport } from './latency.ts';
import type { MemoryReport } from './memory.ts';
import type { OverheadRow } from './overhead.ts';
import type { Latency } from './statistics.ts';
import type { Throughput } from './throughput.ts';
import type { HistoryReport, TranslateReport } from './turns.ts';

export type Line = readonly [what: string, value: string, aim: string];

const EVENTS_AIM = { sequential: 1, parallel: 1.15 };
const WALL_AIM = 1.1;
const MEMORY_AIM_MIB = 60;
const IDLE_AIM_MIB = 450;
const PROJECTED_AIM = 0.85;
const CPU_AIM = 1.5;

function nameOf({ name, activities }: OverheadRow): string {
  if (name.startsWith('sequential')) return `${activities} sequential`;
  return name.startsWith('calls') ? '10 tool calls in one turn' : '10 parallel';
}

export function overheadLines(rows: readonly OverheadRow[]): Line[] {
  return rows.flatMap((row): Line[] => {
    const { bare, run, historyEventsRatio, wallRatio, parallel } = row;
    const aim = parallel ? EVENTS_AIM.parallel : EVENTS_AIM.sequential;
    return [
      [
        `${nameOf(row)}: history events, run / bare`,
        `${run.historyEvents} / ${bare.historyEvents}; ratio ${historyEventsRatio.toFixed(2)}`,
        parallel ? `≤ ${aim.toFixed(2)}` : aim.toFixed(2),
      ],
      [
        `${nameOf(row)}: wall time, run / bare`,
        `${run.wallMs} / ${bare.wallMs} ms; ratio ${wallRatio.toFixed(2)}`,
        `≤ ${WALL_AIM.toFixed(2)}`,
      ],
    ];
  });
}

export function defaultServerLines(rows: readonly DefaultServerRow[]): Line[] {
  return rows.map((row): Line => [
    `${nameOf(row)}: bare workflow on a default dev server`,
    `${row.bare.wallMs} ms, ${row.slowerThanRun.toFixed(1)} × a run on ours`,
    '> 1',
  ]);
}

export function throughputLines({
  cpuMsPerRun,
  inFlight,
  runsPerSecond,
  ratioToBare,
  projectorLagMs,
}: Throughput): Line[] {
  return [
    [
      `Bare workflows per second, ${inFlight} in flight`,
      `${runsPerSecond.bare} (${cpuMsPerRun.bare} ms of CPU each, without the server)`,
      '',
    ],
    [
      'Runs per second without projector',
      `${runsPerSecond.withoutProjector} (${ratioToBare.withoutProjector.toFixed(2)} of bare, ${cpuMsPerRun.withoutProjector} ms)`,
      '',
    ],
    [
      'Runs per second with projector',
      `${runsPerSecond.withProjector} (${ratioToBare.withProjector.toFixed(2)} of bare, ${cpuMsPerRun.withProjector} ms; log complete ${projectorLagMs} ms after the last run)`,
      `≥ ${PROJECTED_AIM} of bare`,
    ],
    [
      'CPU of the host for each short run, with projector / bare',
      `${cpuMsPerRun.withProjector} / ${cpuMsPerRun.bare} ms = ${(cpuMsPerRun.withProjector / cpuMsPerRun.bare).toFixed(2)}`,
      `≤ ${CPU_AIM.toFixed(1)}`,
    ],
    [
      'Runs per second, every run watched',
      `${runsPerSecond.watched} (${ratioToBare.watched.toFixed(2)} of bare, ${cpuMsPerRun.watched} ms)`,
      '',
    ],
  ];
}

function latencyLine(what: string, { p50Ms, p95Ms, samples }: Latency): Line {
  return [`${what}, p50 / p95`, `${p50Ms} / ${p95Ms} ms (${samples} samples)`, ''];
}

export function familyLines(families: FamiliesReport): Line[] {
  const { below, direct, generations, historyBytesPerChild, historyEventsPerChild } = families;
  const { idleMiB, waitingMiB, addedKiBPerRun, settled } = families;
  return [
    [
      `History of a run for each of ${direct} children that it starts and sees end`,
      `${historyBytesPerChild} bytes, ${historyEventsPerChild} events`,
      '',
    ],
    [
      `Memory of all processes, idle → ${below} runs below one, ${generations} generations, all waiting`,
      `${idleMiB} → ${waitingMiB} MiB (${addedKiBPerRun} KiB each)${settled ? '' : ', still moving'}`,
      '',
    ],
  ];
}

export function latencyLines(latency: LatencyReport): Line[] {
  return [
    latencyLine('Emission → committed row', latency.emissionToRow),
    latencyLine('Emission → SSE byte in another process', latency.emissionToSseByte),
    latencyLine('Model token → SSE byte in another process', latency.tokenToSseByte),
    ...latency.tokensOfMany.map((many) =>
      latencyLine(`Model token → SSE byte, ${many.streams} runs speak at once`, many.latency),
    ),
  ];
}

export function translateLines(translate: TranslateReport): Line[] {
  return [
    [
      'translate: history events (log entries) per second',
      `${translate.historyEventsPerSecond} (${translate.entriesPerSecond})`,
      '',
    ],
    [
      'rebuild from Temporal: log rows per second, short runs / long run',
      `${translate.rebuiltRowsPerSecond} / ${translate.rebuiltLongRunRowsPerSecond}`,
      '',
    ],
  ];
}

export function historyLines(history: HistoryReport): Line[] {
  return [
    [
      `History bytes per agent turn over ${history.turns} turns`,
      `${history.bytesPerTurn}; last turns / first turns = ${history.growth.toFixed(2)}`,
      '1.00 (linear)',
    ],
  ];
}

export function memoryLines(memory: MemoryReport): Line[] {
  return [
    [
      'Memory of all processes right after the start / idle behind runs that ended',
      `${memory.startedMiB} / ${memory.idleMiB} MiB`,
      `≤ ${IDLE_AIM_MIB} MiB`,
    ],
    [
      `Memory of all processes, idle → ${memory.waitingRuns} runs waiting for a human`,
      `${memory.idleMiB} → ${memory.waitingMiB} MiB (+${memory.addedMiB})${memory.settled ? '' : ', still moving'}`,
      `< +${MEMORY_AIM_MIB} MiB`,
    ],
  ];
}

export function forkLines({ events, source, replay, branch, diff, bundle }: ForksReport): Line[] {
  const forked = (what: string, { msPerEvent, historyBytesPerEvent }: ForkedOnce): Line => [
    `${what} a run of ${events} events: each event`,
    `${msPerEvent} ms, ${historyBytesPerEvent} bytes of history`,
    '',
  ];
  return [
    forked('Making', source),
    forked('Replaying', replay),
    forked('Branching at the end of', branch),
    [
      `Comparing it with its replay: each event`,
      `${diff.msPerEvent} ms, ${diff.bytes} bytes in all`,
      '',
    ],
    [
      'Exporting it: each event',
      `${bundle.exportMsPerEvent} ms, ${bundle.bytesPerEvent} bytes of the file`,
      '',
    ],
    [
      'Importing that file, a process of its own: each event',
      `${bundle.importMsPerEvent} ms; ${bundle.differs ? 'differs' : 'equal'}`,
      '',
    ],
  ];
}
