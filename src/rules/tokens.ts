// Token counts where no provider reports them: a documented estimate, one token per four UTF-8 bytes. It bounds
// reasoning summaries (RFC 0002 §B) and fills `provider.usage` for endpoints that send no usage.
import { utf8Length } from './json.ts';

/** Bytes of UTF-8 that the estimate counts as one token. */
export const BYTES_PER_TOKEN = 4;
const ELLIPSIS = '…';

/** Estimated tokens of a text: UTF-8 bytes / 4, rounded up. */
export function estimateTokens(text: string): number {
  return Math.ceil(utf8Length(text) / BYTES_PER_TOKEN);
}

/**
 * `text` when its UTF-8 form fits `maxBytes`, else the longest prefix that fits with `…` behind it. Never splits a
 * surrogate pair.
 */
export function boundText(text: string, maxBytes: number): string {
  if (text.length * 3 <= maxBytes || utf8Length(text) <= maxBytes) return text;
  const room = Math.max(0, maxBytes - utf8Length(ELLIPSIS));
  let bytes = 0;
  let end = 0;
  for (const character of text) {
    bytes += utf8Length(character);
    if (bytes > room) break;
    end += character.length;
  }
  return `${text.slice(0, end)}${ELLIPSIS}`;
}
