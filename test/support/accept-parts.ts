// What an acceptance goes by, with a Temporal that takes whatever it is given.
import { createModels } from '../../src/adapters/models/index.ts';
import type { Stores } from '../../src/ports/stores.ts';
import type { acceptRun } from '../../src/runs/accept.ts';
import { chain, node } from './definitions.ts';
import { silentLogger } from './log-parts.ts';

export type AcceptParts = Parameters<typeof acceptRun>[0];

export const NOOP = chain('noop', [node('only', 'core.noop')]);

/** Each workflow is NOOP, and nothing but the row says what became of a run. */
export function acceptParts(stores: Stores): AcceptParts {
  return {
    stores,
    log: { head: async () => undefined, endUnstarted: async () => false },
    engine: {
      start: async (input) => ({ temporalRunId: `t-${input.runId}` }),
      send: async () => ({ bodyDigest: '', status: 'cancelling' }),
      childEnded: async () => {},
      terminate: async () => {},
      ping: async () => {},
    },
    catalog: { definition: () => NOOP, agent: () => undefined },
    models: createModels({}),
    redactor: { json: (value) => value, text: (text) => text },
    config: { escalation: true },
    logger: silentLogger,
  };
}
