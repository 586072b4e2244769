// Loaded first in the thread that runs workflow code. The SDK limits the time of a workflow task with `vm`'s own limit,
// which leaves Node's stack of asynchronous contexts behind when it strikes inside a promise's reaction: Node then finds
// the stack corrupted and aborts the whole process (nodejs/node#38503), with every run of this worker. What is left
// behind is cleared here, and the one workflow task fails, as the SDK means it to. Node 24 and newer keep no such stack
// while async context frames are on (workflow-threads.ts), and have nothing to clear.
import vm from 'node:vm';
import { collectWhenIdle } from '../../system/idle-collection.js';
import { contextsOfNode } from './async-contexts.js';

const contexts = contextsOfNode();
collectWhenIdle();

/** @param {unknown} error */
function codeOf(error) {
  return typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
}

class LimitedScript extends vm.Script {
  /**
   * @override
   * @param {vm.Context} context
   * @param {vm.RunningScriptOptions} [options]
   * @returns {unknown}
   */
  runInContext(context, options) {
    try {
      return /** @type {unknown} */ (super.runInContext(context, options));
    } catch (error) {
      // An error of the context's own realm: no instance of this one's Error.
      if (codeOf(error) === 'ERR_SCRIPT_EXECUTION_TIMEOUT') contexts?.clearAsyncIdStack?.();
      throw error;
    }
  }
}

vm.Script = LimitedScript;
