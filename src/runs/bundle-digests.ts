// Digests in the record of a run that works with sensitive values: of a text that is known but for such a value, a digest
// tells whether a guess of it is right. Another one stands in the place of each in an exported file, the same wherever it
// stood, so that a replay is equal all the same.
import { createHmac, randomBytes } from 'node:crypto';
import type { JsonValue } from '../rules/json.ts';

const DIGEST = /^(sha256:|eff-|p-)?[0-9a-f]{64}$/;
const ANY_DIGEST = /(?:sha256:|eff-|p-)?[0-9a-f]{64}/g;
/** The workflow code of a replay makes it anew, of what its definition says. */
const OF_DEFINITION = 'schemaDigest';

export type HideDigests = <Value>(value: Value) => Value;

/** Those that stand in `given`, with which the run was started, tell nothing that does not stand there. */
export function digestHider(given: object): HideDigests {
  const key = randomBytes(32);
  const known = new Set(JSON.stringify(given).match(ANY_DIGEST));
  const hidden = new Map<string, string>();
  const other = (digest: string): string => {
    const [, form = ''] = DIGEST.exec(digest) ?? [];
    const made = `${form}${createHmac('sha256', key).update(digest).digest('hex')}`;
    hidden.set(digest, made);
    return made;
  };
  const hide = (value: JsonValue): JsonValue => {
    if (typeof value === 'string')
      return DIGEST.test(value) && !known.has(value) ? (hidden.get(value) ?? other(value)) : value;
    if (Array.isArray(value)) return value.map(hide);
    if (typeof value !== 'object' || value === null) return value;
    const entries = Object.entries(value);
    return Object.fromEntries(
      entries.map(([name, member]) => [name, name === OF_DEFINITION ? member : hide(member)]),
    );
  };
  return <Value>(value: Value): Value => hide(value as JsonValue) as Value;
}
