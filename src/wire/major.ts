// A major of the protocol, as one row: how it shows ids, errors and logs. What is inside (stores, Temporal, rules about
// runs) knows no major; what leaves, and what stands in an address, goes through the row of the major that was asked
// (architecture §9).
import type { ErrorCode } from '../rules/errors.ts';
import type { JsonObject } from '../rules/json.ts';
import type { Era } from '../rules/versions.ts';
import type { Caller } from '../ports/caller.ts';
import type { LogRow } from '../ports/log.ts';

/** What an id names. */
export type IdKind = 'run' | 'interrupt' | 'node' | 'workflow' | 'agent' | 'artifact';

/** Fields of answers, addresses and requests that hold an id. */
export const ID_FIELDS = {
  runId: 'run',
  interruptId: 'interrupt',
  nodeId: 'node',
  workflowId: 'workflow',
  agentId: 'agent',
  artifactId: 'artifact',
} as const satisfies Readonly<Record<string, IdKind>>;

/** The one seam between ids inside and ids on the wire. */
export interface IdForm {
  /** As bodies and documents show it. */
  bind(kind: IdKind, id: string, tenant: string): string;
  /** A shown id as one segment of an address. */
  project(shown: string): string;
  /** The id inside of a shown one; of an address after its percent signs are decoded. Throws a HostError. */
  parse(kind: IdKind, shown: string, caller: Caller): string;
}

/** How a code of ours leaves by HTTP. */
export interface WireError {
  readonly error: string;
  readonly status: number;
}

/** A row as it is shown. */
export interface EventForm {
  typeOf(type: string): string;
  /** One line of JSON: the same bytes in SSE and JSON reads. */
  textOf(row: LogRow, tenant: string): string;
  /** Its payload alone, as it stands in that text. */
  payloadOf(row: LogRow, tenant: string): string;
}

export interface Major {
  /** As discovery lists it (`protocolVersions`). */
  readonly version: string;
  readonly ids: IdForm;
  readonly errors: Readonly<Record<ErrorCode, WireError>>;
  /** What is told beside code and message; `retryAfter` is in seconds. */
  detailsOf(details: JsonObject, retryAfter: number | undefined): JsonObject;
  /** Rows of a log of each era. */
  readonly events: Readonly<Record<Era, EventForm>>;
}

/** The same fields, those that hold an id as the major shows them. */
export function withShownIds<Fields extends JsonObject>(
  { ids }: Pick<Major, 'ids'>,
  tenant: string,
  fields: Fields,
): Fields {
  const shown = Object.entries(ID_FIELDS).flatMap(([name, kind]) => {
    const id = fields[name];
    return typeof id === 'string' ? [[name, ids.bind(kind, id, tenant)]] : [];
  });
  return { ...fields, ...(Object.fromEntries(shown) as Partial<Fields>) };
}

/** EventForm for the rows of one run. */
export interface ShownRows {
  typeOf(type: string): string;
  textOf(row: LogRow): string;
  payloadOf(row: LogRow): string;
}

/** How rows of this run are shown: the one place that knows era and major together. */
export function rowsShown(
  { events }: Pick<Major, 'events'>,
  { tenant, input }: { readonly tenant: string; readonly input: { readonly era: Era } },
): ShownRows {
  const form = events[input.era];
  return {
    typeOf: (type) => form.typeOf(type),
    textOf: (row) => form.textOf(row, tenant),
    payloadOf: (row) => form.payloadOf(row, tenant),
  };
}
