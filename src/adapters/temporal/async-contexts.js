// The inside of Node that async-stack.js clears. Nothing may depend on it: Node 24 and newer do not give it away.
// JavaScript, because the thread of workflow code loads it before anything else.

/* global process */
/** @typedef {{ clearAsyncIdStack?(): void }} Contexts */

/**
 * Node has no public name for this; a deprecated one is still the only one.
 * @returns {Contexts | undefined} undefined where this Node refuses it
 */
export function contextsOfNode() {
  const { noDeprecation } = process;
  process.noDeprecation = true;
  try {
    const insides = /** @type {{ binding(name: string): Contexts }} */ (
      /** @type {unknown} */ (process)
    );
    return insides.binding('async_wrap');
  } catch {
    return undefined;
  } finally {
    process.noDeprecation = noDeprecation;
  }
}
