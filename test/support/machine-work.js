// Fixed work in slices, as the tests do it: parsing, hashing, waiting. Prints how long the work took and the longest that a
// timer was late, in ms. Run by machine.ts in several processes at once.
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

/* global console, performance */
const SLICES = 40;
const ROUNDS_PER_SLICE = 4;
const REST_MS = 10;

const document = Array.from({ length: 2_000 }, (_, n) => ({
  id: `evt-${n}`,
  type: 'node.started',
  payload: { n, text: 'x'.repeat(n % 50) },
}));

let workMs = 0;
let lateMs = 0;
let digest = '';
for (let slice = 0; slice < SLICES; slice++) {
  const beganMs = performance.now();
  for (let round = 0; round < ROUNDS_PER_SLICE; round++) {
    const text = JSON.stringify(JSON.parse(JSON.stringify(document)));
    digest = createHash('sha256').update(text).update(digest).digest('hex');
  }
  const endedMs = performance.now();
  workMs += endedMs - beganMs;
  await sleep(REST_MS);
  lateMs = Math.max(lateMs, performance.now() - endedMs - REST_MS);
}
console.log(JSON.stringify({ workMs, lateMs }));
