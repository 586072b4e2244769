// What the facade is built from: ports and a few facts of this process. Only src/app makes them.
import type { Redactor } from '../rules/redaction.ts';
import { subjectOf } from '../rules/subject.ts';
import type { Caller } from '../ports/caller.ts';
import type { Catalog } from '../ports/catalog.ts';
import type { CohortEngine } from '../ports/cohorts.ts';
import type { Deployments } from '../ports/deployments.ts';
import type { RunEngine } from '../ports/engine.ts';
import type { Logger } from '../ports/logger.ts';
import type { Models } from '../ports/models.ts';
import type { Stores } from '../ports/stores.ts';
import type { Tools } from '../ports/tools.ts';
import type { Log } from '../log/log.ts';
import type { RunSettings } from '../runs/deps.ts';
import type { StreamLimits } from './stream-registry.ts';

/** The part of the log that serves reads (architecture §3.3). */
export type RunLog = Pick<
  Log,
  | 'fresh'
  | 'head'
  | 'rows'
  | 'questions'
  | 'sequenceOf'
  | 'follow'
  | 'followSession'
  | 'resumeSession'
  | 'conversationPage'
  | 'causesOf'
  | 'effectsOf'
  | 'problems'
  | 'endUnstarted'
  | 'overview'
  | 'waitingRuns'
  | 'changes'
  | 'recording'
  | 'rebuild'
>;

export interface FacadeConfig extends RunSettings {
  /** Address that the server is bound to; loopback addresses make the Host header be checked. */
  readonly host: string;
  /** The one bearer key. Never logged, never echoed. */
  readonly apiKey: string;
  /** Lists the fixtures in discovery. */
  readonly testMode: boolean;
  /** In test mode: what conformance suites drive the host by is served (seams/). Default false. */
  readonly testSeams?: boolean;
  /** Runs expire so many days behind their end; absent: never. */
  readonly retentionDays?: number;
  /** Version of this product. */
  readonly version: string;
  /** Of the Temporal SDK that runs workflow code. */
  readonly sdkVersion?: string;
  /** Runs end with the process of their Temporal server: told by readiness and discovery. Default false. */
  readonly inMemory?: boolean;
  /** Origin as users see it, base of the URLs in answers; absent: what each request names. */
  readonly publicUrl?: string;
  /** Addresses and CIDR blocks of proxies: X-Forwarded-Proto and -Host are believed from these alone. Default none. */
  readonly trustedProxies?: readonly string[];
  /** Agents may connect as processes (seed 004): their addresses are served and told. Default false. */
  readonly opensentience?: boolean;
  /** Payloads are encrypted: runs may name a subject, whose data can be erased. Default false. */
  readonly erasure?: boolean;
  /** Above them a stream is 429. Default STREAM_LIMITS. */
  readonly streamLimits?: Partial<StreamLimits>;
  /** A client that takes nothing for this long, in ms, is closed. Default SLOW_CLIENT_MS. */
  readonly slowClientMs?: number;
}

/** Whether a worker takes steps of runs, or what it waits for. */
export type WorkerState = 'ok' | 'waits-for-store' | 'waits-for-temporal';

export interface FacadeDeps {
  /** Of logs it sees no store but `log`. */
  readonly stores: Pick<
    Stores,
    | 'runs'
    | 'content'
    | 'families'
    | 'cohorts'
    | 'idempotency'
    | 'sessions'
    | 'pageSessions'
    | 'agents'
    | 'retention'
    | 'subjects'
    | 'keyRing'
    | 'ping'
  >;
  readonly engine: RunEngine;
  readonly cohortEngine: CohortEngine;
  readonly deployments: Deployments;
  readonly log: RunLog;
  readonly catalog: Catalog;
  readonly models: Pick<Models, 'providers' | 'untaken' | 'choose' | 'isLive'>;
  readonly tools: Pick<Tools, 'list'>;
  /** Takes known secrets out of what enters history (architecture §2.6). */
  readonly redactor: Pick<Redactor, 'json' | 'text'>;
  /** Of the worker in this process; absent: there is none. */
  readonly workerState?: (() => WorkerState) | undefined;
  readonly config: FacadeConfig;
  readonly logger: Logger;
}

/** Who the one key is, until there are more (architecture §10). */
export const DEFAULT_CALLER: Caller = {
  tenant: 'default',
  subject: subjectOf('api-key', 'default', 'api-key:default'),
  scopes: [
    'manifest:read',
    'runs:create',
    'runs:read',
    'runs:cancel',
    'artifacts:read',
    'approvals:respond',
    'agents:operate',
    'deployments:operate',
    'pages:sign-in',
    'subjects:erase',
  ],
};
