// Agents as processes (seed 004): calls of one agent and of many against the same function called in this process, what
// connected agents cost the host, and runs whose tool is an agent's against runs whose tool is the host's own.
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { echoCall, ECHO_TEXT, startBenchCore, type BenchCore } from './agent-core.ts';
import { measureAgentRuns, type AgentRunsReport } from './agent-runs.ts';
import { MAX_INFLIGHT_REQUESTS } from '../src/opensentience/messages.ts';
import type { BenchHost } from './bench-host.ts';
import { echo } from './echo.ts';
import type { Sizes } from './sizes.ts';
import { latencyOf, median, rounded, type Latency } from './statistics.ts';
import { atOnce } from './throughput.ts';

/** Calls at one time: some, and as many as one connection takes with a hundred that wait (seed 004 §2.2). */
const IN_FLIGHT = { some: 64, full: MAX_INFLIGHT_REQUESTS + 100 } as const;
/** As activities have it. */
const CONNECT_MS = 30_000;
const BYTES_PER_MIB = 1024 ** 2;
const MS_PER_SECOND = 1_000;
const DIGITS = 3;

type Load = keyof typeof IN_FLIGHT;

export interface AgentCalls {
  readonly agents: number;
  /** One call after the other. */
  readonly inProcess: Latency;
  readonly agent: Latency;
  /** Medians of agent less in process, and the same of the 95th percentiles. */
  readonly addedP50Ms: number;
  readonly addedP95Ms: number;
  /** Medians of the rounds, calls at one time over all agents. */
  readonly callsPerSecond: Readonly<Record<Load, number>>;
  /** CPU time of this process, in ms. */
  readonly cpuMsPerCall: Readonly<Record<Load, number>>;
}

export interface AgentsReport {
  readonly inFlight: typeof IN_FLIGHT;
  readonly alone: AgentCalls;
  readonly many: AgentCalls;
  /** Of this process, after garbage collection: heap with what hangs on it, and resident memory. */
  readonly memory: {
    readonly oneAgent: HostMemory;
    readonly allAgents: HostMemory;
    readonly heapKiBPerAgent: number;
  };
  readonly runs: AgentRunsReport;
}

interface HostMemory {
  readonly heapMiB: number;
  readonly residentMiB: number;
}

type AgentSizes = Pick<
  Sizes,
  | 'agentCalls'
  | 'agentCallRounds'
  | 'agentCallsPerRound'
  | 'connectedAgents'
  | 'agentRunRounds'
  | 'callsPerAgentRun'
>;

export async function measureAgents(
  bench: BenchHost,
  folder: string,
  sizes: AgentSizes,
): Promise<AgentsReport> {
  const home = join(folder, 'agent-host');
  await mkdir(home, { recursive: true });
  const bed = await startBenchCore(bench, home, sizes.connectedAgents);
  const alone = await measureCalls(bed, [bed.launched], sizes);
  const oneAgent = hostMemory();
  await bed.attach();
  const allAgents = hostMemory();
  const many = await measureCalls(bed, [bed.launched, ...bed.attached], sizes);
  const runs = await measureAgentRuns(bench, bed, {
    rounds: sizes.agentRunRounds,
    calls: sizes.callsPerAgentRun,
  });
  await bed.stop();
  const addedKiB = (allAgents.heapMiB - oneAgent.heapMiB) * 1_024;
  const heapKiBPerAgent = rounded(addedKiB / bed.attached.length, 0);
  return {
    inFlight: IN_FLIGHT,
    alone,
    many,
    memory: { oneAgent, allAgents, heapKiBPerAgent },
    runs,
  };
}

/** A tenth of the calls first, which is not counted. */
async function measureCalls(
  { core }: BenchCore,
  agentIds: readonly string[],
  sizes: AgentSizes,
): Promise<AgentCalls> {
  const call = (index: number) => {
    const agentId = agentIds[index % agentIds.length] ?? '';
    return core.call(agentId, echoCall(agentId), CONNECT_MS);
  };
  for (let index = 0; index < sizes.agentCalls / 10; index++) await call(index);
  const inProcess: number[] = [];
  const agent: number[] = [];
  for (let index = 0; index < sizes.agentCalls; index++) {
    inProcess.push(await timed(async () => echo({ text: ECHO_TEXT })));
    agent.push(await timed(() => call(index)));
  }
  const [here, there] = [latencyOf(inProcess, DIGITS), latencyOf(agent, DIGITS)];
  const some = await measureLoad('some', call, sizes);
  const full = await measureLoad('full', call, sizes);
  return {
    agents: agentIds.length,
    inProcess: here,
    agent: there,
    addedP50Ms: rounded(there.p50Ms - here.p50Ms, DIGITS),
    addedP95Ms: rounded(there.p95Ms - here.p95Ms, DIGITS),
    callsPerSecond: { some: some.perSecond, full: full.perSecond },
    cpuMsPerCall: { some: some.cpuMs, full: full.cpuMs },
  };
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now();
  await work();
  return performance.now() - startedMs;
}

async function measureLoad(
  load: Load,
  call: (index: number) => Promise<unknown>,
  { agentCallRounds, agentCallsPerRound }: AgentSizes,
): Promise<{ perSecond: number; cpuMs: number }> {
  const rounds: { perSecond: number; cpuMs: number }[] = [];
  for (let round = 0; round < agentCallRounds; round++) {
    const cpuBefore = process.cpuUsage();
    const ms = await timed(() => atOnce(agentCallsPerRound, IN_FLIGHT[load], call));
    const { user, system } = process.cpuUsage(cpuBefore);
    rounds.push({
      perSecond: (agentCallsPerRound * MS_PER_SECOND) / ms,
      cpuMs: (user + system) / MS_PER_SECOND / agentCallsPerRound,
    });
  }
  return {
    perSecond: rounded(median(rounds.map(({ perSecond }) => perSecond)), 0),
    cpuMs: rounded(median(rounds.map(({ cpuMs }) => cpuMs)), DIGITS),
  };
}

function hostMemory(): HostMemory {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  // Twice: what the first finds unreachable may have held more.
  collect();
  collect();
  const { heapUsed, external, rss } = process.memoryUsage();
  return {
    heapMiB: rounded((heapUsed + external) / BYTES_PER_MIB, 2),
    residentMiB: rounded(rss / BYTES_PER_MIB, 0),
  };
}
