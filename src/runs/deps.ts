// What the rules about runs are built from: ports, and what the operator decided for every run. Whoever asks (the
// facade, an activity, a role of the background) brings them; each function says by Pick which ones it needs.
import type { Redactor } from '../rules/redaction.ts';
import type { Catalog } from '../ports/catalog.ts';
import type { RunEngine } from '../ports/engine.ts';
import type { Logger } from '../ports/logger.ts';
import type { Models } from '../ports/models.ts';
import type { Stores } from '../ports/stores.ts';
import type { Log } from '../log/log.ts';

export interface RunSettings {
  /** RFC 0002 §F, third reaction, the operator's alone: false notes low confidence and goes on. */
  readonly escalation: boolean;
  /** Time that a question to a human stands where its node names none, in ms. Default INTERRUPT_TIMEOUT_MS. */
  readonly interruptTimeoutMs?: number;
  /** Test hooks of test definitions count (conformance/fixtures.md). */
  readonly testMode?: boolean;
  /** Runs may be rehearsals. Default: none is accepted, and nobody moves a clock. */
  readonly rehearsals?: boolean;
  /** Tests only: continue-as-new after this many history events. */
  readonly forceContinueAsNewAfter?: number;
}

export interface RunsDeps {
  readonly stores: Pick<Stores, 'runs' | 'idempotency' | 'subjects'>;
  readonly engine: RunEngine;
  readonly log: Pick<Log, 'head' | 'fresh' | 'rows' | 'endUnstarted'>;
  readonly catalog: Pick<Catalog, 'definition' | 'agent'>;
  readonly models: Pick<Models, 'providers' | 'untaken' | 'choose'>;
  /** Takes known secrets out of what enters history (architecture §2.6). */
  readonly redactor: Pick<Redactor, 'json' | 'text'>;
  readonly config: RunSettings;
  readonly logger: Logger;
}

export type ChildrenDeps = Omit<RunsDeps, 'stores'> & {
  readonly stores: RunsDeps['stores'] & Pick<Stores, 'families' | 'retention'>;
};
