// Whose a run is and who answers it: stored whole, in the form of the protocol's next major (architecture §9), and shown
// by its first one as the one string that it knows. Types, not interfaces: they must be assignable to JsonValue.
import { isJsonObject, type JsonValue } from './json.ts';

export type Subject = {
  /** Who vouches for the subject. */
  readonly issuer: string;
  /** Opaque, not personal, never a secret. */
  readonly subjectId: string;
  readonly tenant: string;
  /** How it proved itself. */
  readonly lane: 'api-key' | 'session';
  readonly kind: 'user' | 'workload';
};

/** Owner of a run, as `run.started` holds it. */
export type StoredOwner = {
  readonly tenant: string;
  readonly subject: Subject;
};

/** Issuers of this host, by lane. */
const ISSUERS: Readonly<Record<Subject['lane'], string>> = {
  'api-key': 'urn:openwop-temporal:api-key',
  session: 'urn:openwop-temporal:session',
};

/** A key is a program's; a session is somebody's who was let in by one. */
const KINDS: Readonly<Record<Subject['lane'], Subject['kind']>> = {
  'api-key': 'workload',
  session: 'user',
};

export function subjectOf(lane: Subject['lane'], tenant: string, subjectId: string): Subject {
  return { issuer: ISSUERS[lane], subjectId, tenant, lane, kind: KINDS[lane] };
}

/** The principal of the protocol's first major. */
export function principalOf({ subjectId }: Subject): string {
  return subjectId;
}

/** A stored subject; undefined: it is none. */
export function asSubject(value: JsonValue | undefined): Subject | undefined {
  return isJsonObject(value) && typeof value.subjectId === 'string'
    ? (value as Subject)
    : undefined;
}

/** A field of a stored payload in the protocol's first major. */
export function subjectInFirstMajor(value: JsonValue): JsonValue {
  const subject = asSubject(value);
  return subject === undefined ? value : principalOf(subject);
}

/** The owner of a stored payload in the protocol's first major. */
export function ownerInFirstMajor(value: JsonValue): JsonValue {
  if (!isJsonObject(value)) return value;
  const { subject, ...rest } = value;
  const known = asSubject(subject);
  return known === undefined ? value : { ...rest, principal: principalOf(known) };
}
