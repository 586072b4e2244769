// Versions that stand in documents: of the engine that writes events, and of the vocabulary of logs
// (run-event.schema.json, capabilities.md, `eventLogSchemaVersion`).

export const ENGINE_VERSION = 1;

/** Names this host where causes cross hosts (RFC 0040). */
export const HOST_ID = 'openwop-temporal';

/** The vocabulary that a run's log is stored in, for the run's whole life: 2 is the first major's. */
export type Era = 2;

/** Of runs that are accepted now. */
export const ERA: Era = 2;

/** A run of a release that knew one era alone does not say which; that one is 2. */
export function eraOf({ era = 2 }: { readonly era?: Era }): Era {
  return era;
}

/**
 * What the nodes of a run state and take, which releases widen; a run goes on as it began (architecture §2.5). 1: control
 * that passes between nodes, an orchestrator's question for an agent that is not sure, lists of answers to that. 2: steps
 * that a pause holds rest, and a segment does not end while children are told to.
 */
export type Revision = 0 | 1 | 2;

/** Of runs that are accepted now. */
export const REVISION: Revision = 2;

export function revisionOf({ revision = 0 }: { readonly revision?: Revision }): Revision {
  return revision;
}
