// A host as `npm start` composes it (src/app), on the bench's server, with workers of the bench in its process: one
// with doubles, one with the real activities and a scripted model whose tokens are timed.
import { Context } from '@temporalio/activity';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Client } from '@temporalio/client';
import type { Activities } from '../activities/contract.ts';
import { createActivities } from '../activities/create-activities.ts';
import { createModels } from '../src/adapters/models/index.ts';
import { coreTools } from '../src/adapters/tools/core-tools.ts';
import { createTools } from '../src/adapters/tools/index.ts';
import type { TemporalTarget } from '../src/adapters/temporal/connection.ts';
import { readConfig } from '../src/app/config.ts';
import { createHost, type Host } from '../src/app/host.ts';
import { createChildren } from '../src/runs/children.ts';
import { createRedactor } from '../src/rules/redaction.ts';
import { RUN_WORKFLOW, type RunInput } from '../src/rules/run-input.ts';
import type { ResolvedAgent } from '../src/ports/catalog.ts';
import type { Model, Models } from '../src/ports/models.ts';
import type { Tools } from '../src/ports/tools.ts';
import type { AgentScript } from '../schemas/types.generated.ts';
import { BENCH_AGENT, BENCH_TOOL, pinnedAgent, runInputOf, type BenchCase } from './cases.ts';
import { benchLogger, type Closing } from './closing.ts';
import { nowMs } from './statistics.ts';
import { connect, startWorker, type Bundles, type Hint } from './workers.ts';
import { runRef } from '../test/support/run-ref.ts';

const API_KEY = 'owop_bench_key_of_this_process';
export const TENANT = 'default';
/** Rows lie in the future, in ms: the reaper must not start what the bench will start. */
const AHEAD_MS = 3_600_000;
const PROMPT = 'You decide on refund requests of a shop. Read the order before you decide.';

export interface BenchHost {
  readonly host: Host;
  readonly closing: Closing;
  readonly target: TemporalTarget;
  readonly bundles: Bundles;
  readonly client: Client;
  /** Where the workers' hints go: nowhere until a measurement says so. */
  hint: Hint;
  /** The row of a run, as acceptance writes it. */
  accept(input: RunInput): Promise<void>;
  /** Accepts and starts a run on a worker of this host; resolves when Temporal has it. */
  start(input: RunInput, taskQueue: string): Promise<void>;
}

export interface BenchHostOptions {
  readonly target: TemporalTarget;
  readonly bundles: Bundles;
  readonly folder: string;
  readonly cacheDir: string;
  readonly closing: Closing;
}

export async function startBenchHost(options: BenchHostOptions): Promise<BenchHost> {
  const { target, bundles, folder, cacheDir, closing } = options;
  const dataDir = join(folder, 'host');
  await mkdir(dataDir, { recursive: true });
  const host = await createHost({
    config: readConfig({
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      OPENWOP_PORT: '0',
      OPENWOP_DATA_DIR: dataDir,
      OPENWOP_CACHE_DIR: cacheDir,
      OPENWOP_API_KEY: API_KEY,
      TEMPORAL_ADDRESS: target.address,
      TEMPORAL_NAMESPACE: target.namespace,
    }),
    parts: { facade: true, worker: false },
    logger: benchLogger,
    apiKey: API_KEY,
    report: () => {},
  });
  closing.add(() => host.stop());
  const client = new Client({ connection: connect(closing, target), namespace: target.namespace });
  const accept = async (input: RunInput) => {
    const { runId, definition } = input;
    const row = {
      runId,
      tenant: TENANT,
      workflowId: definition.id,
      input,
      createdAtMs: Date.now() + AHEAD_MS,
    };
    await host.stores.runs.accept(row);
  };
  return {
    host,
    closing,
    target,
    bundles,
    client,
    hint: () => {},
    accept,
    async start(input, taskQueue) {
      await accept(input);
      const { firstExecutionRunId } = await client.workflow.start(RUN_WORKFLOW, {
        workflowId: input.runId,
        taskQueue,
        args: [input],
      });
      await host.stores.runs.markStarted(runRef(input.runId), firstExecutionRunId);
    },
  };
}

export interface RealWorker {
  readonly taskQueue: string;
  /** A run of the agent with this script. */
  input(benchCase: Pick<BenchCase, 'definition'>): RunInput;
  /** The worker's own, for the queues of agents. */
  readonly activities: Pick<Activities, 'callTool'>;
  stop(): Promise<void>;
}

export interface Token {
  readonly text: string;
  readonly atMs: number;
  readonly runId: string;
}

export interface RealWorkerOptions {
  /** Gets each piece as the model says it, with the time and the run that it says it for. */
  readonly onToken?: (token: Token) => void;
  /** Absent: the host's own, of which the agent may call one. */
  readonly tools?: Tools;
  readonly toolAllowlist?: readonly string[];
}

export async function startRealWorker(
  bench: BenchHost,
  script: AgentScript,
  options: RealWorkerOptions = {},
): Promise<RealWorker> {
  const { onToken = () => {}, tools = createTools(coreTools()) } = options;
  const toolAllowlist = [...(options.toolAllowlist ?? [BENCH_TOOL])];
  const { stores, log } = bench.host;
  const agent: ResolvedAgent = {
    packName: 'local.bench',
    packVersion: '1.0.0',
    manifest: {
      agentId: BENCH_AGENT,
      persona: 'Bench',
      modelClass: 'general',
      systemPrompt: PROMPT,
      toolAllowlist,
    },
    systemPrompt: PROMPT,
  };
  const hash = await stores.content.put({ tenant: TENANT }, Buffer.from(JSON.stringify(agent)));
  const parts = {
    stores,
    log,
    models: timed(createModels({ scripts: { [BENCH_AGENT]: script } }), onToken),
    watch: { isThere: () => true, doubt: () => undefined },
    redactor: createRedactor([{ id: 'OPENWOP_API_KEY', value: API_KEY }]),
    logger: benchLogger,
  };
  const children = createChildren({ ...bench.host, ...parts, config: { escalation: true } });
  const activities = createActivities({ ...parts, tools, children });
  const { taskQueue, stop } = await startWorker(bench.closing, {
    target: bench.target,
    bundle: bench.bundles.journal,
    hint: (...hint) => bench.hint(...hint),
    activities,
  });
  return {
    taskQueue,
    input: ({ definition }) => runInputOf(definition, { ...pinnedAgent(hash), toolAllowlist }),
    activities,
    stop,
  };
}

function timed(models: Models, onToken: (token: Token) => void): Models {
  const wrap = (model: Model): Model => ({
    infer(request, options) {
      const runId = Context.current().info.workflowExecution?.workflowId ?? '';
      return model.infer(request, {
        signal: options.signal,
        onReasoning(piece) {
          onToken({ text: piece, atMs: nowMs(), runId });
          options.onReasoning(piece);
        },
      });
    },
  });
  return {
    ...models,
    get: (provider) => wrap(models.get(provider)),
  };
}
