// Prints what a thread that begins with the given preload says of four calls into a context like the SDK's, of which
// two are cut by their limit of time inside a promise's reaction.
import { AsyncLocalStorage } from 'node:async_hooks';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import vm from 'node:vm';
import { parentPort, Worker } from 'node:worker_threads';

/* global console, process */
const LIMIT_MS = 100;
/** Of a call that comes to its end: a machine that is busy does not cut it. */
const LONG_LIMIT_MS = 60_000;

/**
 * @param {Worker} thread
 * @returns {Promise<unknown>}
 */
async function answerOf(thread) {
  /** @type {unknown[]} */
  const said = await once(thread, 'message');
  return said[0];
}

/** @param {string} preload */
async function ask(preload) {
  const thread = new Worker(fileURLToPath(import.meta.url), { execArgv: ['--import', preload] });
  /** @type {unknown[]} */
  const said = [];
  for (const endless of [true, false, true, false]) {
    thread.postMessage(endless);
    said.push(await answerOf(thread));
  }
  await thread.terminate();
  console.log(JSON.stringify(said));
}

/** @param {import('node:worker_threads').MessagePort} port */
function answer(port) {
  const scope = new AsyncLocalStorage();
  const context = vm.createContext({ scope }, { microtaskMode: 'afterEvaluate' });
  /** @param {boolean} endless */
  const call = (endless) => `
    said = undefined;
    scope.run('in context', () =>
      Promise.resolve().then(() => {
        while (${endless}) {}
        said = 'done ' + scope.getStore();
      }));`;
  port.on('message', (/** @type {boolean} */ endless) => {
    try {
      new vm.Script(call(endless)).runInContext(context, {
        timeout: endless ? LIMIT_MS : LONG_LIMIT_MS,
      });
      port.postMessage(context.said);
    } catch (error) {
      port.postMessage(/** @type {NodeJS.ErrnoException} */ (error).code);
    }
  });
}

if (parentPort) answer(parentPort);
else await ask(String(process.argv[2]));
