// Prints what limited-thread.js answers to four calls, of which two are cut by their limit of time, in a thread that is
// started as the SDK's own thread of workflow code is. Its argument is `traces` where stack traces are wanted.
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import workerThreads from 'node:worker_threads';
import { withWorkflowThreads } from '../../src/adapters/temporal/workflow-threads.ts';

const folder = mkdtempSync(join(tmpdir(), 'openwop-thread-'));
try {
  // By the name of its file it is known for a thread of workflow code.
  const place = join(folder, 'node_modules/@temporalio/worker/lib');
  mkdirSync(place, { recursive: true });
  const file = join(place, 'workflow-worker-thread.js');
  symlinkSync(join(import.meta.dirname, 'limited-thread.js'), file);
  const thread = await withWorkflowThreads(
    process.argv[2] === 'traces',
    async () => new workerThreads.Worker(file),
  );
  const answers: unknown[] = [];
  for (const endless of [true, false, true, false]) {
    thread.postMessage(endless);
    answers.push(...((await once(thread, 'message')) as unknown[]));
  }
  await thread.terminate();
  console.log(JSON.stringify(answers));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
