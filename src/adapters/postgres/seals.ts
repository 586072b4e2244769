// Texts at rest, sealed with the key of their run's subject (architecture §10.1), at the borders of the stores: what goes in
// names its key, so that what is read needs to know nothing of its run. Beside the sealed text stands what stays readable
// when its key is destroyed. What may be sealed is JSON, and no JSON begins as a sealed text does: none can be taken for one.
import { damagedAt, parsedAt, payloadPlace } from '../../rules/damaged.ts';
import { HostError } from '../../rules/errors.ts';
import { isText, isTime, listOf, type Form } from '../../rules/forms.ts';
import { toldOr, type Unreadable } from '../../rules/unreadable.ts';
import type { KnownKey, SubjectKeys } from '../../ports/subjects.ts';
import { keyedDigest, seal as sealBytes, unseal } from '../../system/sealing.ts';

export { damagedAt, parsedAt };

const MARK = '~';

export interface Opened {
  readonly text: string;
  /** The key was destroyed then: `text` is what was kept. */
  readonly erasedAtMs?: number;
}

/** Of one run's key, which is there. */
export interface Seal {
  /** `kept` stays readable. */
  text(place: string, plain: string, kept?: string): string;
  bytes(place: string, plain: Uint8Array): Uint8Array;
  /** Of a text that is equal where the other is, and that nobody can guess at. */
  digest(text: string): string;
  readonly open: Opener;
  readonly keyId: string;
}

/**
 * What stands at a place of the database: JSON text as it is, or sealed. Throws HostError internal_error for a text that
 * is no JSON and would be read as a sealed one.
 */
export function atRest(
  seal: Seal | undefined,
  { place, json, kept }: { readonly place: string; readonly json: string; readonly kept?: string },
): string {
  if (seal) return seal.text(place, json, kept);
  if (json.startsWith(MARK))
    throw new HostError('internal_error', { reason: `What stands at ${place} is no JSON.` });
  return json;
}

/** For what is not sealed. */
export const AS_IT_IS: Opener = (_place, text) => ({ text });

/** Opens what stands at a place; what is not sealed is as it is. Throws HostError history_undecodable and key_unavailable. */
export type Opener = (place: string, text: string) => Opened;

/** The JSON at a place, as text; of what does not open, or is damaged, what stays when its key is destroyed, and why. */
export function openOrKept(open: Opener, place: string, text: string): Opened & Unread {
  return toldOr<Opened>({ text: keptIn(place, text) }, () => {
    const opened = open(place, text);
    parsedAt(place, opened.text, 'object');
    return opened;
  });
}

function keptIn(place: string, text: string): string {
  const kept = partsOf(text)?.kept ?? '';
  return toldOr({ kept: '{}' }, () => (parsedAt(place, kept, 'object'), { kept })).kept;
}

interface Unread {
  readonly unreadable?: Unreadable;
}

/** The object of that form at a place. Throws HostError history_undecodable: what stands there has another one. */
export function formedAt<Value>(place: string, json: string, form: Form): Value {
  const value = parsedAt<Value>(place, json);
  if (!form(value)) throw damagedAt(place);
  return value;
}

const IS_TEXTS = listOf(isText);

/** The list of texts at a place. Throws HostError history_undecodable: what stands there is none. */
export function textsAt(place: string, json: string): string[] {
  return formedAt(place, json, IS_TEXTS);
}

/** The time at a place, in ms. Throws HostError history_undecodable: no date has it. */
export function timeAt(place: string, ms: number): number {
  if (!isTime(ms)) throw damagedAt(place);
  return ms;
}

export interface Seals {
  /** Undefined: the run names no subject. Throws HostError subject_erased. */
  ofRun(runId: string): Promise<Seal | undefined>;
  ofKey(keyId: string): Promise<Seal>;
  /** For these texts: their keys are asked for once. One that is not to be had fails what is sealed with it, and no more. */
  opener(texts: Iterable<string | null | undefined>): Promise<Opener>;
}

export function subjectErased(keyId: string): HostError {
  return new HostError('subject_erased', { keyId });
}

interface Parts {
  readonly keyId: string;
  readonly sealed: string;
  readonly kept: string;
}

/** `~<key>.<base64url>.<kept>` */
function partsOf(text: string): Parts | undefined {
  if (!text.startsWith(MARK)) return undefined;
  const first = text.indexOf('.');
  const second = text.indexOf('.', first + 1);
  return {
    keyId: text.slice(MARK.length, first),
    sealed: text.slice(first + 1, second),
    kept: text.slice(second + 1),
  };
}

function sealOf(known: Extract<KnownKey, { kind: 'alive' }>): Seal {
  const { keyId, key } = known;
  const bytes = (place: string, plain: Uint8Array) => sealBytes(key, { place, bytes: plain });
  return {
    keyId,
    bytes,
    open(place, text) {
      const parts = partsOf(text);
      return parts ? opened(place, parts, known) : { text };
    },
    text(place, plain, kept = '') {
      const sealed = bytes(place, new TextEncoder().encode(plain));
      return `${MARK}${keyId}.${Buffer.from(sealed).toString('base64url')}.${kept}`;
    },
    digest: (text) => keyedDigest(key.digests, text),
  };
}

function opened(place: string, { sealed, kept, keyId }: Parts, known: KnownKey): Opened {
  if (known.kind === 'destroyed') return { text: kept, erasedAtMs: known.atMs };
  // Whoever waited since it was asked for, for a lock or a connection, does not know whether it was destroyed.
  if (!known.mayOpen()) throw new HostError('service_unavailable', { part: 'database' });
  const bytes = new Uint8Array(Buffer.from(sealed, 'base64url'));
  const plain = unseal(known.key.rest, { place, bytes });
  if (!plain)
    throw new HostError('history_undecodable', {
      reason: `What stands at ${place} does not open with the key ${keyId}.`,
    });
  return { text: new TextDecoder().decode(plain) };
}

export function createSeals(keys: SubjectKeys): Seals {
  const alive = (known: KnownKey): Seal => {
    if (known.kind === 'destroyed') throw subjectErased(known.keyId);
    return sealOf(known);
  };
  return {
    async ofRun(runId) {
      const known = await keys.ofRun(runId);
      return known && alive(known);
    },
    ofKey: async (keyId) => alive(await keys.byId(keyId)),
    async opener(texts) {
      const named = new Set<string>();
      for (const text of texts) {
        const parts = text ? partsOf(text) : undefined;
        if (parts) named.add(parts.keyId);
      }
      const known = await keys.byIds([...named]);
      return (place, text) => {
        const parts = partsOf(text);
        const key = parts && known.get(parts.keyId);
        if (parts && !key)
          throw new HostError('internal_error', { reason: 'A key was not asked for.' });
        if (key && 'code' in key) throw key;
        return parts && key ? opened(place, parts, key) : { text };
      };
    },
  };
}

/** Places of sealed texts: bound into them, so that none opens in the place of another. */
export const PLACES = {
  payload: payloadPlace,
  snapshot: (runId: string) => `snapshot ${runId}`,
  state: (runId: string) => `state ${runId}`,
  summary: (runId: string) => `summary ${runId}`,
  input: (runId: string) => `input ${runId}`,
  tags: (runId: string) => `tags ${runId}`,
  ofSession: (sessionId: string) => `session ${sessionId}`,
  response: (endpoint: string, keyDigest: string) => `response ${endpoint} ${keyDigest}`,
};
