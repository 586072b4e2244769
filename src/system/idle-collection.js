// A thread that has nothing to do gives back what it does not use. V8 collects garbage when something is allocated: a host
// that rests after work would keep a hundred megabytes of what is gone for as long as it rests. JavaScript, because the
// thread of workflow code loads it before anything else.
import { performance } from 'node:perf_hooks';
import v8 from 'node:v8';
import vm from 'node:vm';

/* global process, setInterval */
/** How often the thread looks whether it rests, in ms. */
const LOOK_EVERY_MS = 10_000;
/** It rests when its event loop was busy for no more than this share of that time. */
const RESTING = 0.05;
/** What its heap must have grown by since it was collected last, in bytes: a pause of some 50 ms is not for less. */
const GROWN_BYTES = 8 * 1024 * 1024;

/** @returns {() => void} */
function collector() {
  v8.setFlagsFromString('--expose-gc');
  /** @type {unknown} */
  const gc = vm.runInNewContext('gc');
  return /** @type {() => void} */ (gc);
}

/**
 * For the thread that calls it, once; keeps nothing running.
 * @param {number} [lookEveryMs]
 */
export function collectWhenIdle(lookEveryMs = LOOK_EVERY_MS) {
  const collect = collector();
  let before = performance.eventLoopUtilization();
  let keptBytes = 0;
  setInterval(() => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, before);
    before = now;
    const { heapUsed } = process.memoryUsage();
    if (utilization > RESTING || heapUsed - keptBytes < GROWN_BYTES) return;
    collect();
    keptBytes = process.memoryUsage().heapUsed;
  }, lookEveryMs).unref();
}
