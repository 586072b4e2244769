// Which tests run beside which.
import { expect, it } from 'vitest';
import { inProcess, plan, processes } from './plan.ts';

const main = inProcess(true);
const files = {
  inProcess: ['in-1', 'in-2'],
  processes: ['long', 'short', 'shorter', 'unknown'],
};
const second = 1_000;

it('processes have a track of their own, and the other one as well when that is done', () => {
  const durations = {
    ...{ 'in-1': main.workers * second, 'in-2': main.workers * second },
    ...{ long: 6 * second, short: 2 * second, shorter: second },
  };
  // 2 s in process, 9 s of processes: 3 s of them follow.
  expect(plan(files, durations)).toEqual([
    [main, processes(['shorter', 'short'])],
    [processes(['long', 'unknown'])],
  ]);
});

it('nothing follows where those in process take as long, or nothing was measured', () => {
  const durations = { 'in-1': main.workers * 8 * second, long: 6 * second, short: 2 * second };
  for (const known of [durations, {}])
    expect(plan(files, known)).toEqual([[main], [processes(files.processes)]]);
});
