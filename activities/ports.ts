// What the activities need of the host, as one object that the worker composes.
import type { Recording } from '../src/rules/recording.ts';
import type { Redactor } from '../src/rules/redaction.ts';
import type { Logger } from '../src/ports/logger.ts';
import type { Models } from '../src/ports/models.ts';
import type { RunRef } from '../src/ports/runs.ts';
import type { Stores } from '../src/ports/stores.ts';
import type { Children } from '../src/runs/children.ts';
import type { Watch } from '../src/system/watch.ts';
import type { Tools } from '../src/ports/tools.ts';

export interface ActivityPorts {
  readonly stores: Pick<Stores, 'log' | 'content' | 'effects' | 'runs' | 'cohorts'>;
  /** Brings the run's log up to its history: deltas may only follow what history already says. */
  readonly log: {
    catchUp(run: RunRef): Promise<{ readonly nextSequence: number }>;
    recording(run: RunRef, length: number): Promise<Recording>;
  };
  readonly children: Children;
  readonly models: Models;
  readonly tools: Tools;
  /** Whether the stores are there. */
  readonly watch: Pick<Watch, 'isThere' | 'doubt'>;
  readonly redactor: Redactor;
  readonly logger: Logger;
}
