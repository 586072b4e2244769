// Content of runs that hold somebody's data, sealed with that subject's key (architecture §10.1). What is stored names its
// key in its first bytes, and its hash is that of the sealed bytes: neither is a digest of what was said.
import type { ContentStore } from '../../ports/content.ts';
import { HostError } from '../../rules/errors.ts';
import { unseal } from '../../system/sealing.ts';
import type { SubjectKeys } from '../../ports/subjects.ts';
import { subjectErased, type Seals } from './seals.ts';

/** No JSON and no archived history begins so. */
const MARK = new TextEncoder().encode('~openwop-sealed\0');
const KEY_ID_END = 0;
const PLACE = 'content';

function isSealed(bytes: Uint8Array): boolean {
  return MARK.every((byte, at) => bytes[at] === byte);
}

export function createSealedContent(
  inner: ContentStore,
  { keys, seals }: { readonly keys: SubjectKeys; readonly seals: Seals },
): ContentStore {
  return {
    async put(holder, bytes) {
      const { runId } = holder;
      const seal = runId === undefined ? undefined : await seals.ofRun(runId);
      if (!seal) return inner.put(holder, bytes);
      const head = [MARK, new TextEncoder().encode(seal.keyId), new Uint8Array([KEY_ID_END])];
      const sealed = Buffer.concat([...head, seal.bytes(PLACE, bytes)]);
      return inner.put(holder, new Uint8Array(sealed));
    },
    putAll: (values) => inner.putAll(values),
    share: (from, to) => inner.share(from, to),
    sweep: (limit) => inner.sweep(limit),
    async get(tenant, hash) {
      const stored = await inner.get(tenant, hash);
      if (!isSealed(stored)) return stored;
      const end = stored.indexOf(KEY_ID_END, MARK.length);
      const keyId = new TextDecoder().decode(stored.subarray(MARK.length, end));
      const known = await keys.byId(keyId);
      if (known.kind === 'destroyed') throw subjectErased(keyId);
      const sealed = { place: PLACE, bytes: stored.subarray(end + 1) };
      const plain = unseal(known.key.rest, sealed);
      if (!plain)
        throw new HostError('content_missing', { hash, reason: 'A sealed value is damaged.' });
      return plain;
    },
  };
}
