// The table of what the bench measures, in the order in which it does: each section by its name (`--only NAME`), what it
// needs, and its lines in the table for people.
import { measureAgents, type AgentsReport } from './agents.ts';
import { measureDefaultServer, type DefaultServerRow } from './default-server.ts';
import { measureFamilies, type FamiliesReport } from './families.ts';
import { measureFirstEvent, type FirstEventReport } from './first-event.ts';
import { measureForks, type ForksReport } from './forks.ts';
import { measureLatency, type LatencyReport } from './latency.ts';
import { measureMemory, type MemoryReport } from './memory.ts';
import type { OverheadRow } from './overhead.ts';
import type { Parts, Stoppable } from './parts.ts';
import { agentLines } from './report-agents.ts';
import {
  defaultServerLines,
  familyLines,
  forkLines,
  historyLines,
  latencyLines,
  memoryLines,
  overheadLines,
  throughputLines,
  translateLines,
  type Line,
} from './report-lines.ts';
import { measureRecovery, type RecoveryReport } from './recovery.ts';
import { firstEventLines, recoveryLines, turnaroundLines } from './report-turnaround.ts';
import { scaleLines, soakLines } from './report-scale.ts';
import { measureScale, type ScaleReport } from './scale.ts';
import { measureSoak, type SoakReport } from './soak.ts';
import { measureThroughput, type Throughput } from './throughput.ts';
import { measureTurnaround, type TurnaroundReport } from './turnaround.ts';
import {
  measureHistory,
  measureTranslate,
  type HistoryReport,
  type TranslateReport,
} from './turns.ts';

export interface Reports {
  readonly memory: MemoryReport;
  readonly families: FamiliesReport;
  readonly forks: ForksReport;
  readonly turnaround: TurnaroundReport;
  readonly recovery: RecoveryReport;
  readonly 'first-event': FirstEventReport;
  readonly scale: ScaleReport;
  readonly soak: SoakReport;
  readonly overhead: readonly OverheadRow[];
  readonly defaultServer: readonly DefaultServerRow[];
  readonly throughput: Throughput;
  readonly latency: LatencyReport;
  readonly history: HistoryReport;
  readonly translate: TranslateReport;
  readonly agents: AgentsReport;
}

export type SectionName = keyof Reports;

interface Section<Report> {
  /** Takes longer than all others together: measured when it is asked for by its name, and by nothing else. */
  readonly byNameOnly?: true;
  readonly needs: readonly Stoppable[];
  measure(parts: Parts): Promise<Report>;
  lines(report: Report): readonly Line[];
}

export const SECTIONS: { readonly [Name in SectionName]: Section<Reports[Name]> } = {
  memory: {
    needs: [],
    measure: (parts) => {
      const { waitingRuns, memoryWarmUpRuns: warmUpRuns, settleMs } = parts.sizes;
      return measureMemory({ ...parts, waitingRuns, warmUpRuns, settleMs });
    },
    lines: memoryLines,
  },
  families: {
    needs: [],
    measure: (parts) => {
      const { wideChildren: wide, chainsOfChildren: chains, settleMs } = parts.sizes;
      return measureFamilies({ ...parts, wide, chains, settleMs });
    },
    lines: familyLines,
  },
  forks: {
    needs: [],
    measure: (parts) => measureForks({ ...parts, agentNodes: parts.sizes.forkedAgentNodes }),
    lines: forkLines,
  },
  turnaround: { needs: [], measure: measureTurnaround, lines: turnaroundLines },
  recovery: {
    needs: [],
    measure: (parts) => {
      const { kills, runsPerKill } = parts.sizes;
      return measureRecovery({ ...parts, kills, runsPerKill });
    },
    lines: recoveryLines,
  },
  'first-event': {
    needs: [],
    measure: (parts) => measureFirstEvent({ ...parts, starts: parts.sizes.demoStarts }),
    lines: firstEventLines,
  },
  scale: { needs: [], measure: measureScale, lines: scaleLines },
  soak: { byNameOnly: true, needs: [], measure: measureSoak, lines: soakLines },
  overhead: { needs: ['pair'], measure: (parts) => parts.overhead(), lines: overheadLines },
  defaultServer: { needs: ['pair'], measure: measureDefaultServer, lines: defaultServerLines },
  throughput: {
    needs: ['pair', 'host'],
    measure: async (parts) => {
      const { throughputRounds: rounds, throughputRuns: runs } = parts.sizes;
      return measureThroughput(await parts.host(), await parts.pair(), { rounds, runs });
    },
    lines: throughputLines,
  },
  latency: {
    needs: ['host'],
    measure: async (parts) => measureLatency(await parts.host(), parts.sizes),
    lines: latencyLines,
  },
  history: {
    needs: ['host'],
    measure: async (parts) => measureHistory(await parts.longRun()),
    lines: historyLines,
  },
  translate: {
    needs: ['pair', 'host'],
    measure: async (parts) => {
      const { translateMs: forMs, rebuildRuns: runs } = parts.sizes;
      const longRun = await parts.longRun();
      return measureTranslate(await parts.host(), await parts.pair(), { longRun, forMs, runs });
    },
    lines: translateLines,
  },
  agents: {
    needs: ['host'],
    measure: async (parts) => measureAgents(await parts.host(), parts.folder, parts.sizes),
    lines: agentLines,
  },
};

export const SECTION_NAMES = Object.keys(SECTIONS) as SectionName[];

/** Of a bench for which none was named. */
export const USUAL_SECTIONS = SECTION_NAMES.filter((name) => !SECTIONS[name].byNameOnly);
