// What ends with the run, or with a segment of it: the watch of the run's time, and the clock of a rehearsal.
import { CancellationScope } from '@temporalio/workflow';
import { durationLimitMs } from '../src/rules/run-input.ts';
import { inTheWakeOf } from './causes.ts';
import { endRun, type Run } from './context.ts';
import { passCancellation } from './failures.ts';
import { emit } from './journal.ts';
import { runClock } from './rehearsal.ts';
import { durationError } from './schedule.ts';
import { runKey } from './steps.ts';

export function startClocks(run: Run): void {
  const clocks = new CancellationScope();
  run.clocks = clocks;
  const limitMs = durationLimitMs(run.input);
  // Only for a limit that somebody asked for: the ceiling alone is Temporal's own timeout.
  if (limitMs < run.input.limits.maxRunDurationMs)
    clocks.run(() => watchDuration(run, limitMs)).catch(passCancellation);
  if (run.clock) clocks.run(() => runClock(run)).catch(passCancellation);
}

/** Ends the run when its time is over (capabilities.md §Engine-enforced limits run-duration). */
async function watchDuration(run: Run, limit: number): Promise<void> {
  const { steps, state } = run;
  const clock = runKey('clock');
  // A segment may begin after the end of the run's time: then the shortest timer there is.
  const deadlineMs = Math.max(state.startedAtMs + limit, steps.now(clock) + 1);
  await steps.wait(clock, deadlineMs, () => run.ending !== undefined);
  if (run.ending) return;
  const observed = Math.max(steps.now(runKey('clock.struck')) - state.startedAtMs, limit + 1);
  const key = 'cap.breached|run-duration';
  emit('cap.breached', { kind: 'run-duration', limit, observed }, { key });
  const error = durationError(limit, observed);
  inTheWakeOf(key, () => endRun(run, { kind: 'failed', error }));
}
