// Versions that stand in documents: of the engine that writes events, and of the vocabulary of logs
// (run-event.schema.json, capabilities.md, `eventLogSchemaVersion`).

export const ENGINE_VERSION = 1;

/** Names this host where causes cross hosts (RFC 0040). */
export const HOST_ID = 'openwop-temporal';

/** The vocabulary that a run's log is stored in, for the run's whole life: 2 is the first major's. */
export type Era = 2;

/** Of runs that are accepted now. */
export const ERA: Era = 2;

/** What the nodes of a run state and take, which releases widen; a run goes on as it began (architecture §2.5). */
export type Revision = 1;

/** Of runs that are accepted now. */
export const REVISION: Revision = 1;
