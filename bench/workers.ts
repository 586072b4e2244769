// Two workers on one server, made alike: one runs runs, the other the bare workflow, each on a task queue of its own.
import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  Client,
  type Connection,
  type WorkflowHandleWithFirstExecutionRunId,
} from '@temporalio/client';
import { bundleWorkflowCode } from '@temporalio/worker';
import type { Activities } from '../activities/contract.ts';
import { workflowBundle } from '../src/adapters/temporal/bundle.ts';
import { connectTemporal, type TemporalTarget } from '../src/adapters/temporal/connection.ts';
import { createRunWorker, type RunWorkerOptions } from '../src/adapters/temporal/worker.ts';
import { RUN_WORKFLOW, type RunInput } from '../src/rules/run-input.ts';
import { pinnedAgent, runInputOf, type BenchCase, createDoubles, type Asked } from './cases.ts';
import { benchLogger, type Closing } from './closing.ts';
import type { BareActivity, BarePlan } from './workflows/bare.ts';

const BARE_WORKFLOWS = fileURLToPath(new URL('./workflows/bare.ts', import.meta.url));
const BARE_WORKFLOW = 'bareWorkflow';
const silent = () => undefined;
const quiet = {
  log: silent,
  trace: silent,
  debug: silent,
  info: silent,
  warn: silent,
  error: silent,
};

export interface Bundles {
  readonly journal: { readonly codePath: string };
  readonly bare: { readonly codePath: string };
}

export async function makeBundles(folder: string, cacheDir: string): Promise<Bundles> {
  const journal = await workflowBundle({ cacheDir });
  const { code } = await bundleWorkflowCode({ workflowsPath: BARE_WORKFLOWS, logger: quiet });
  const codePath = join(folder, 'bare-bundle.js');
  await writeFile(codePath, code);
  return { journal, bare: { codePath } };
}

export type Hint = RunWorkerOptions['hint'];

/** Polls its own task queue until the bench closes. */
export async function startWorker(
  closing: Closing,
  options: Pick<RunWorkerOptions, 'target' | 'bundle' | 'activities'> & { hint?: Hint },
): Promise<{ taskQueue: string; stop: () => Promise<void> }> {
  const taskQueue = `bench-${randomUUID()}`;
  const worker = createRunWorker({
    ...options,
    hint: options.hint ?? (() => {}),
    taskQueue,
    dataConverter: {},
    logger: benchLogger,
  });
  let stopped: Promise<void> | undefined;
  const stop = () => (stopped ??= worker.stop());
  closing.add(stop);
  await worker.ready;
  return { taskQueue, stop };
}

export function connect(closing: Closing, target: TemporalTarget): Connection {
  const connection = connectTemporal(target);
  closing.add(() => connection.close());
  return connection;
}

/** Both kinds of workflow, ready to be started on one server. */
export interface Pair {
  readonly client: Client;
  startRun(input: RunInput): Promise<WorkflowHandleWithFirstExecutionRunId>;
  startBare(plan: BarePlan): Promise<WorkflowHandleWithFirstExecutionRunId>;
  /** What the bare workflow of a case has to do: told by one run of it. */
  planOf(benchCase: BenchCase): Promise<BarePlan>;
  stop(): Promise<void>;
}

export interface PairOptions {
  readonly target: TemporalTarget;
  readonly bundles: Bundles;
  readonly cases: readonly BenchCase[];
  readonly closing: Closing;
  readonly hint?: Hint;
}

export async function startPair({
  target,
  bundles,
  cases,
  closing,
  hint,
}: PairOptions): Promise<Pair> {
  let note: Asked = () => {};
  const activities: Activities = createDoubles(cases, (...asked) => note(...asked));
  const runs = await startWorker(closing, { target, bundle: bundles.journal, activities, hint });
  const bares = await startWorker(closing, { target, bundle: bundles.bare, activities });
  const client = new Client({
    connection: connect(closing, target),
    namespace: target.namespace,
  });
  const startRun = (input: RunInput) =>
    client.workflow.start(RUN_WORKFLOW, {
      workflowId: input.runId,
      taskQueue: runs.taskQueue,
      args: [input],
    });
  return {
    client,
    startRun,
    startBare: (plan) =>
      client.workflow.start(BARE_WORKFLOW, {
        workflowId: `bare-${randomUUID()}`,
        taskQueue: bares.taskQueue,
        args: [plan],
      }),
    async planOf(benchCase) {
      const asked: BareActivity[] = [];
      note = (type, { activityId, nodeId }, inputBytes) =>
        void asked.push({ type, activityId, nodeId, inputBytes });
      const input = runInputOf(benchCase.definition, pinnedAgent());
      await (await startRun(input)).result();
      note = () => {};
      if (asked.length !== benchCase.activities)
        throw new Error(`${benchCase.name} scheduled ${asked.length} activities`);
      return planFor(benchCase, asked, input);
    },
    async stop() {
      await Promise.all([runs.stop(), bares.stop()]);
    },
  };
}

function planFor(benchCase: BenchCase, asked: readonly BareActivity[], input: RunInput): BarePlan {
  const waves: BareActivity[][] = [];
  for (const activity of asked) {
    const last = waves.at(-1);
    if (benchCase.parallel && last?.[0]?.type === activity.type) last.push(activity);
    else waves.push([activity]);
  }
  const plan: BarePlan = { caseName: benchCase.name, waves, padding: '' };
  const missing = JSON.stringify(input).length - JSON.stringify(plan).length;
  return { ...plan, padding: 'x'.repeat(Math.max(0, missing)) };
}
