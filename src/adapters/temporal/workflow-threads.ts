// The threads that run workflow code, as the SDK starts them, but with a workflow task's limit of time that fails the
// task alone (async-stack.js, BOUND), without promise hooks (workflow-thread.js), and without the loaders of this
// process, which they have no use for.
import workerThreads, { type WorkerOptions } from 'node:worker_threads';

const LIGHT = new URL('./workflow-thread.js', import.meta.url).href;
const TRACED = new URL('./async-stack.js', import.meta.url).href;
/**
 * Node's option for async context frames, which keep no stack that a workflow task cut in the middle could corrupt. They
 * are the default of each Node that has the option, 24 and newer, but NODE_OPTIONS may turn them off for all threads.
 */
const FRAMES = '--async-context-frame';
const BOUND = process.allowedNodeEnvironmentFlags.has(FRAMES) ? [FRAMES] : [];
/** The SDK's own file for such a thread; every other thread is started as it is. */
const WORKFLOW_THREAD = /[\\/]@temporalio[\\/]worker[\\/].*workflow-worker-thread\.js$/;

const { Worker } = workerThreads;

const threadsOf = (preload: string): typeof Worker =>
  class extends Worker {
    constructor(file: string | URL, options?: WorkerOptions) {
      const isWorkflow = WORKFLOW_THREAD.test(String(file));
      super(file, isWorkflow ? { ...options, execArgv: [...BOUND, '--import', preload] } : options);
    }
  };

/** Creations of workers under way: the last one puts Node's own class back. */
let creating = 0;

/**
 * Runs `create`, in which the SDK starts its threads. Without `stackTraces` they cannot answer `__stack_trace` queries.
 */
export async function withWorkflowThreads<T>(
  stackTraces: boolean,
  create: () => Promise<T>,
): Promise<T> {
  creating++;
  workerThreads.Worker = threadsOf(stackTraces ? TRACED : LIGHT);
  try {
    return await create();
  } finally {
    creating--;
    if (creating === 0) workerThreads.Worker = Worker;
  }
}
