// Keeps the secrets of a request out of what its endpoint says: who refuses a request may repeat it.
import { withoutCredentials, withoutParts } from '../../../rules/redaction.ts';
import { boundText } from '../../../rules/tokens.ts';
import { MODEL_REFUSAL_WORDS_BYTES } from '../limits.ts';
import type { Words } from './refusal-words.ts';

/** Names of query parameters that hold secrets. */
const SECRET_NAME = /key|token|secret|sig|code|auth|password|credential/i;

/** Gives words without any part of the key, or of what the base URL has of one, and bounds their text. */
export function maskOf(baseUrl: string, apiKey: string | undefined): (words: Words) => Words {
  const inAddress = [...new URL(baseUrl).searchParams].flatMap(([name, value]) =>
    SECRET_NAME.test(name) ? [value] : [],
  );
  const spellings = [...(apiKey === undefined ? [] : [apiKey]), ...inAddress].flatMap((secret) => [
    secret,
    encodeURIComponent(secret),
    Buffer.from(secret).toString('base64'),
  ]);
  const masked = (text: string): string => withoutCredentials(spellings.reduce(withoutParts, text));
  return ({ text, ...names }) => ({
    text: boundText(masked(text), MODEL_REFUSAL_WORDS_BYTES),
    ...Object.fromEntries(Object.entries(names).map(([kind, name]) => [kind, masked(name)])),
  });
}
