// The bench's result: as JSON for machines, as one table for people. The machine is named by cores and memory alone.
import { agentLines } from './report-agents.ts';
import type { AgentsReport } from './agents.ts';
import type { FamiliesReport } from './families.ts';
import type { LatencyReport } from './latency.ts';
import type { MemoryReport } from './memory.ts';
import type { OverheadRow } from './overhead.ts';
import type { Latency } from './statistics.ts';
import type { Throughput } from './throughput.ts';
import type { HistoryReport, TranslateReport } from './turns.ts';

export interface DefaultServerRow extends OverheadRow {
  /** Bare workflow there over a run here: how much our server's settings are worth. */
  readonly slowerThanRun: number;
}

export interface BenchReport {
  readonly machine: { readonly cores: number; readonly memoryGiB: number };
  readonly size: string;
  readonly overhead: readonly OverheadRow[];
  readonly defaultServer: readonly DefaultServerRow[];
  readonly throughput: Throughput;
  readonly latency: LatencyReport;
  readonly translate: TranslateReport;
  readonly history: HistoryReport;
  readonly memory: MemoryReport;
  readonly families: FamiliesReport;
  readonly agents: AgentsReport;
  readonly seconds: number;
}

export type Line = readonly [what: string, value: string, aim: string];

const EVENTS_AIM = { sequential: 1, parallel: 1.15 };
const WALL_AIM = 1.1;
const MEMORY_AIM_MIB = 60;

function nameOf({ name, activities }: OverheadRow): string {
  if (name.startsWith('sequential')) return `${activities} sequential`;
  return name.startsWith('calls') ? '10 tool calls in one turn' : '10 parallel';
}

function overheadLines(rows: readonly OverheadRow[]): Line[] {
  return rows.flatMap((row): Line[] => {
    const { bare, run, historyEventsRatio, wallRatio, parallel } = row;
    const aim = parallel ? EVENTS_AIM.parallel : EVENTS_AIM.sequential;
    return [
      [
        `${nameOf(row)}: history events, run / bare`,
        `${run.historyEvents} / ${bare.historyEvents} = ${historyEventsRatio.toFixed(2)}`,
        parallel ? `≤ ${aim.toFixed(2)}` : aim.toFixed(2),
      ],
      [
        `${nameOf(row)}: wall time, run / bare`,
        `${run.wallMs} / ${bare.wallMs} ms = ${wallRatio.toFixed(2)}`,
        `≤ ${WALL_AIM.toFixed(2)}`,
      ],
    ];
  });
}

function defaultServerLines(rows: readonly DefaultServerRow[]): Line[] {
  return rows.map((row): Line => [
    `${nameOf(row)}: bare workflow on a default dev server`,
    `${row.bare.wallMs} ms, ${row.slowerThanRun.toFixed(1)} × a run on ours`,
    '> 1',
  ]);
}

function throughputLines({
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
      '',
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

function familyLines(families: FamiliesReport): Line[] {
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

function linesOf(report: BenchReport): Line[] {
  const { latency, translate, history, memory } = report;
  return [
    ...overheadLines(report.overhead),
    ...defaultServerLines(report.defaultServer),
    ...throughputLines(report.throughput),
    latencyLine('Emission → committed row', latency.emissionToRow),
    latencyLine('Emission → SSE byte in another process', latency.emissionToSseByte),
    latencyLine('Model token → SSE byte in another process', latency.tokenToSseByte),
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
    [
      `History bytes per agent turn over ${history.turns} turns`,
      `${history.bytesPerTurn}; last turns / first turns = ${history.growth.toFixed(2)}`,
      '1.00 (linear)',
    ],
    [
      `Memory of all processes, idle → ${memory.waitingRuns} runs waiting for a human`,
      `${memory.idleMiB} → ${memory.waitingMiB} MiB (+${memory.addedMiB})${memory.settled ? '' : ', still moving'}`,
      `< +${MEMORY_AIM_MIB} MiB`,
    ],
    ...familyLines(report.families),
    ...agentLines(report.agents),
  ];
}

/** A table in Markdown, in columns of equal width. */
export function tableOf(report: BenchReport): string {
  const { cores, memoryGiB } = report.machine;
  const lines: Line[] = [['Measured', 'Result', 'Aim'], ...linesOf(report)];
  const widths = [0, 1, 2].map((column) =>
    Math.max(...lines.map((line) => line[column]?.length ?? 0)),
  );
  const rowOf = (line: readonly string[]) =>
    `| ${line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  const [head = ['', '', ''], ...body] = lines;
  const rule = rowOf(widths.map((width) => '-'.repeat(width)));
  const machine = `Medians of one run on ${cores} cores and ${memoryGiB} GiB of memory.`;
  return `${machine}\n\n${[rowOf(head), rule, ...body.map(rowOf)].join('\n')}\n`;
}
