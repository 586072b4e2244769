// Why each fact is stated (seed 003 §1.2): every event but the run's first names the one that it follows from, up to the
// human's answer, the request or the timer that began it. Within a node that is the newest of its facts that leads on
// (the table of event types says which); between nodes, and for the run, it is what this breath of code was woken by.
import { eventRow } from '../src/rules/events.ts';

/** By node, the key of the fact that its next one follows from; under '' the run's own. JSON of what segments carry on. */
export type Causes = readonly (readonly [nodeId: string, key: string])[];

/** No node has an empty id. */
const RUN = '';

let causes = new Map<string, string>();
let following: string | undefined;

/** At the beginning of a run, and of each segment with what the one before carried on. */
export function traceCauses(from: Causes): void {
  causes = new Map(from);
}

/** As the next segment needs them. */
export function tracedCauses(): Causes {
  return [...causes];
}

/** What a fact stated now follows from; undefined for the run's first. */
export function causeOf(nodeId = RUN): string | undefined {
  const ofNode = nodeId === RUN ? undefined : causes.get(nodeId);
  return ofNode ?? following ?? causes.get(RUN);
}

/** For the journal, of every fact that it takes down. */
export function noteFact({
  type,
  key,
  nodeId,
}: {
  readonly type: string;
  readonly key: string;
  readonly nodeId?: string;
}): void {
  if (nodeId !== undefined && causes.has(nodeId) && eventRow(type).leads) causes.set(nodeId, key);
}

/** A visit of the node begins, by what is followed now. */
export function beginCauses(nodeId: string): void {
  const cause = following ?? causes.get(RUN);
  if (cause !== undefined) causes.set(nodeId, cause);
}

/** The visit is over. */
export function endCauses(nodeId: string): void {
  causes.delete(nodeId);
}

/** Whatever the work states or begins in this breath follows from that fact. Synchronous. */
export function inTheWakeOf(key: string | undefined, work: () => void): void {
  const before = following;
  following = key;
  try {
    work();
  } finally {
    following = before;
  }
}
