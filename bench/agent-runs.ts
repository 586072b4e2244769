// The same run twice: its model calls an agent's tool on the agent's own task queue, or the same function as a tool of
// the host. Real worker, real activities, the effect ledger; rounds take turns.
import { createAgentWorkers, type AgentWorkers } from '../src/adapters/temporal/agent-workers.ts';
import { coreTools } from '../src/adapters/tools/core-tools.ts';
import { createTools } from '../src/adapters/tools/index.ts';
import { createAgentTools } from '../src/opensentience/agent-tools.ts';
import type { Tools } from '../src/ports/tools.ts';
import type { AgentScript, AgentScriptTurn } from '../schemas/types.generated.ts';
import { echoCall, ECHO_TEXT, type BenchCore } from './agent-core.ts';
import { startRealWorker, TENANT, type BenchHost, type RealWorker } from './bench-host.ts';
import { agentNode, between } from './cases.ts';
import { benchLogger } from './closing.ts';
import { ECHO_TOOL } from './echo.ts';
import { measured, type Measured } from './overhead.ts';
import { median, rounded } from './statistics.ts';

const KINDS = ['inProcess', 'agent'] as const;
type Kind = (typeof KINDS)[number];

export interface AgentRunsReport {
  /** Tool calls of one run, one after the other, a model turn before each. */
  readonly calls: number;
  readonly rounds: number;
  readonly historyEvents: Readonly<Record<Kind, number>>;
  /** Agent over in process. */
  readonly historyEventsRatio: number;
  /** Medians: the run's time by its calls. */
  readonly wallMsPerCall: Readonly<Record<Kind, number>>;
  /** Medians of each round's own difference and ratio. */
  readonly addedMsPerCall: number;
  readonly wallRatio: number;
}

interface Bed {
  readonly bench: BenchHost;
  readonly calls: number;
  readonly workers: Readonly<Record<Kind, RealWorker>>;
}

export async function measureAgentRuns(
  bench: BenchHost,
  { core, launched }: BenchCore,
  { rounds, calls }: { rounds: number; calls: number },
): Promise<AgentRunsReport> {
  bench.hint = () => {};
  const { agents: registry } = bench.host.stores;
  const tools = createTools([...coreTools(), ECHO_TOOL], createAgentTools({ registry, core }));
  const workerOf = (toolId: string) => workerFor(bench, { tools, toolId, calls });
  const workers = {
    inProcess: await workerOf(ECHO_TOOL.toolId),
    agent: await workerOf(echoCall(launched).toolId),
  };
  const queues = pollFor(bench, launched, workers.agent);
  const bed: Bed = { bench, calls, workers };
  const results: Record<Kind, Measured>[] = [];
  // The first round is not counted.
  for (let round = 0; round <= rounds; round++) {
    const agentFirst = round % 2 === 1;
    const first = await play(bed, agentFirst ? 'agent' : 'inProcess');
    const second = await play(bed, agentFirst ? 'inProcess' : 'agent');
    const both = agentFirst
      ? { agent: first, inProcess: second }
      : { inProcess: first, agent: second };
    if (round > 0) results.push(both);
  }
  await Promise.all([queues.stop(), ...KINDS.map((kind) => workers[kind].stop())]);
  return reportOf(results, calls);
}

function workerFor(
  bench: BenchHost,
  { tools, toolId, calls }: { tools: Tools; toolId: string; calls: number },
): Promise<RealWorker> {
  const calling = (index: number): AgentScriptTurn => ({
    calls: [{ toolId, arguments: { text: `${index} ${ECHO_TEXT}` } }],
  });
  const middle = Array.from({ length: calls - 1 }, (_, index) => calling(index + 1));
  const last = { final: { decision: 'done', confidence: 1 } };
  const turns: AgentScript['turns'] = [calling(0), ...middle, last];
  return startRealWorker(bench, { turns }, { tools, toolAllowlist: [toolId] });
}

/** As src/app does for agents that are here. */
function pollFor(bench: BenchHost, agentId: string, { activities }: RealWorker): AgentWorkers {
  const queues = createAgentWorkers({
    target: bench.target,
    tenant: TENANT,
    activities,
    dataConverter: {},
    logger: benchLogger,
  });
  bench.closing.add(() => queues.stop());
  queues.note(agentId, true);
  return queues;
}

async function play({ bench, calls, workers }: Bed, kind: Kind): Promise<Measured> {
  const worker = workers[kind];
  const input = worker.input({ definition: between('agent-calls', [agentNode('agent')]) });
  const result = await measured(async () => {
    await bench.start(input, worker.taskQueue);
    return bench.client.workflow.getHandle(input.runId);
  });
  const effects = await bench.host.stores.effects.ofRun(
    bench.host.stores.runs.ref(TENANT, input.runId),
  );
  const done = effects.filter(({ state }) => state === 'done').length;
  if (done !== calls) throw new Error(`${done} of ${calls} calls of a run were performed`);
  return result;
}

function reportOf(results: readonly Record<Kind, Measured>[], calls: number): AgentRunsReport {
  const middle = (of: (round: Record<Kind, Measured>) => number) => median(results.map(of));
  const both = (of: (one: Measured) => number): Record<Kind, number> => ({
    inProcess: rounded(
      middle(({ inProcess }) => of(inProcess)),
      2,
    ),
    agent: rounded(
      middle(({ agent }) => of(agent)),
      2,
    ),
  });
  return {
    calls,
    rounds: results.length,
    historyEvents: both(({ historyEvents }) => historyEvents),
    historyEventsRatio: rounded(
      middle(({ agent, inProcess }) => agent.historyEvents / inProcess.historyEvents),
      3,
    ),
    wallMsPerCall: both(({ wallMs }) => wallMs / calls),
    addedMsPerCall: rounded(
      middle(({ agent, inProcess }) => (agent.wallMs - inProcess.wallMs) / calls),
      2,
    ),
    wallRatio: rounded(
      middle(({ agent, inProcess }) => agent.wallMs / inProcess.wallMs),
      3,
    ),
  };
}
