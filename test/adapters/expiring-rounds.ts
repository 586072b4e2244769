// What a process does that lets runs expire, for tests that kill it before one of its steps.
import { createExpirer } from '../../src/log/expirer.ts';
import type { Dying } from '../support/fault-point.ts';
import { quietLogger } from '../support/quiet-logger.ts';

/** Twice: what a killed process had claimed is claimed again when that is over, at once by who makes it so. */
export async function expireInRounds({ stores, step }: Dying): Promise<void> {
  const expirer = createExpirer({
    ...{ stores, logger: quietLogger, keptMs: 0, restMs: 0 },
    // What Temporal is asked for is a step as well.
    histories: { remove: step },
    engine: { ping: async () => undefined },
  });
  await expirer.round();
  await expirer.round();
}
