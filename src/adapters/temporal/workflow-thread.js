// Loaded first in the thread that runs workflow code. The SDK asks V8 to be told of every promise there, to answer
// `__stack_trace` queries: nearly half of what the thread costs. It takes a refusal as an answer, with a warning on the
// console, which is not where an operator looks, and nothing to warn of.
import './async-stack.js';
import v8 from 'node:v8';

/* global console */
const { createHook } = v8.promiseHooks;

v8.promiseHooks.createHook = (hooks) => {
  // Node's own AsyncLocalStorage comes by here, too, with `before` and `after`: cancellation scopes stand on it.
  if (hooks.before !== undefined || hooks.after !== undefined) return createHook(hooks);
  v8.promiseHooks.createHook = createHook;
  const { warn } = console;
  console.warn = () => {
    console.warn = warn;
  };
  throw new Error('promise hooks are off');
};
