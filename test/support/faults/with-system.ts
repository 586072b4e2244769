// The system of processes of one file of tests that crash it (system.ts).
import { afterAll, beforeAll, beforeEach } from 'vitest';
import { quietRuntime } from '../run-workflow.ts';
import { startFaultSystem, type FaultSystem } from './system.ts';

/**
 * Starts a system before the tests of the file, lets the file begin what it needs there, and stops it after them. Where there is
 * no PostgreSQL the tests are skipped by that reason. An `afterAll` that stands below runs before the system stops, one above
 * after it. `limitMs`: of the start and of the stop, each.
 */
export function withFaultSystem(
  begin: (system: FaultSystem) => Promise<void>,
  limitMs?: number,
): void {
  let system: FaultSystem | undefined;
  let missing: string | undefined;
  beforeAll(async () => {
    quietRuntime();
    const started = await startFaultSystem();
    if ('missing' in started) {
      missing = started.missing;
      return;
    }
    system = started;
    await begin(started);
  }, limitMs);
  afterAll(() => system?.stop(), limitMs);
  beforeEach((context) => context.skip(missing !== undefined, missing));
}
