// All stores of one database. Like each port they are what the inside asks of the outside: types only, one contract
// suite in test/contract/, run on every adapter. All times are ms epoch, all ids opaque strings. A call for somebody, or
// about a run, names the tenant, by a RunRef or beside the id; a claimed effect goes by its claim. What goes over all
// tenants is the host's own work: projection, archive, reaper, rebuild, readiness.
import type { AgentRegistry } from './agents.ts';
import type { CohortStore } from './cohorts.ts';
import type { ContentStore } from './content.ts';
import type { EffectLedger } from './effects.ts';
import type { FamilyStore } from './families.ts';
import type { FeedStore } from './feed.ts';
import type { SegmentStore } from './history.ts';
import type { IdempotencyStore } from './idempotency.ts';
import type { KeyRing } from './keys.ts';
import type { LogStore } from './log.ts';
import type { PageSessionStore } from './page-sessions.ts';
import type { ProjectionStore } from './projection.ts';
import type { RetentionStore } from './retention.ts';
import type { RunStore } from './runs.ts';
import type { SessionStore } from './sessions.ts';
import type { SubjectKeys, SubjectStore } from './subjects.ts';

/** All stores of one database. */
export interface Stores {
  readonly runs: RunStore;
  readonly cohorts: CohortStore;
  readonly families: FamilyStore;
  readonly idempotency: IdempotencyStore;
  readonly log: LogStore;
  readonly feed: FeedStore;
  readonly sessions: SessionStore;
  readonly projection: ProjectionStore;
  readonly segments: SegmentStore;
  readonly content: ContentStore;
  readonly effects: EffectLedger;
  readonly pageSessions: PageSessionStore;
  readonly agents: AgentRegistry;
  readonly retention: RetentionStore;
  readonly subjects: SubjectStore;
  readonly subjectKeys: SubjectKeys;
  readonly keyRing: KeyRing;
  /** Throws HostError service_unavailable when the database does not answer within 2 s. */
  ping(): Promise<void>;
  /** As `ping`, and the content store takes writes, too: a worker without either takes no step. */
  probe(): Promise<void>;
  close(): Promise<void>;
}
