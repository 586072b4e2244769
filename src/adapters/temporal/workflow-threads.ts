// The threads that run workflow code, as the SDK starts them, but without promise hooks (workflow-thread.js) and without
// the loaders of this process, which they have no use for.
import workerThreads, { type WorkerOptions } from 'node:worker_threads';

const PRELOAD = new URL('./workflow-thread.js', import.meta.url).href;
/** The SDK's own file for such a thread; every other thread is started as it is. */
const WORKFLOW_THREAD = /[\\/]@temporalio[\\/]worker[\\/].*workflow-worker-thread\.js$/;

const { Worker } = workerThreads;

class LightWorker extends Worker {
  constructor(file: string | URL, options?: WorkerOptions) {
    const isWorkflow = WORKFLOW_THREAD.test(String(file));
    super(file, isWorkflow ? { ...options, execArgv: ['--import', PRELOAD] } : options);
  }
}

/** Creations of workers under way: the last one puts Node's own class back. */
let creating = 0;

/** Runs `create`, in which the SDK starts its threads. They cannot answer `__stack_trace` queries. */
export async function withLightThreads<T>(create: () => Promise<T>): Promise<T> {
  creating++;
  workerThreads.Worker = LightWorker;
  try {
    return await create();
  } finally {
    creating--;
    if (creating === 0) workerThreads.Worker = Worker;
  }
}
