// Pairs of braces in a text that is part prose, part JSON: what a model wrote. Pure; one pass over the text.

const [NEWLINE, QUOTE, BACKSLASH, BRACE, BRACE_END] = [0x0a, 0x22, 0x5c, 0x7b, 0x7d];

export interface Braces {
  readonly from: number;
  readonly to: number;
}

export interface Braced {
  /** Those that no other pair encloses. */
  readonly pairs: readonly Braces[];
  /** Places of the braces that nothing closes. They hide nothing. */
  readonly open: readonly number[];
}

/**
 * A quote begins a string within braces alone (5" are five inches), and where the string ends on its line: JSON has no
 * others. So one sign too many spoils its own line at most.
 */
export function bracesIn(text: string): Braced {
  const pairs: Braces[] = [];
  const open: number[] = [];
  for (let at = 0; at < text.length; at++)
    switch (text.charCodeAt(at)) {
      case BRACE:
        open.push(at);
        break;
      case BRACE_END: {
        const from = open.pop();
        if (from === undefined) break;
        while ((pairs.at(-1)?.from ?? -1) > from) pairs.pop();
        pairs.push({ from, to: at + 1 });
        break;
      }
      case QUOTE:
        if (open.length > 0) at = endOfString(text, at) ?? at;
        break;
      case BACKSLASH:
        // Not a brace: `\{` may be how somebody writes one.
        if (isQuoteOrBackslash(text.charCodeAt(at + 1))) at++;
    }
  return { pairs, open };
}

/** The first sign within the brace. */
export function signAfter(text: string, brace: number): string {
  let at = brace + 1;
  while (/\s/.test(text.charAt(at))) at++;
  return text.charAt(at);
}

/** The last sign before the brace, and the one before that. */
export function signsBefore(text: string, brace: number): string {
  let at = brace - 1;
  while (at >= 0 && /\s/.test(text.charAt(at))) at--;
  return text.slice(Math.max(at - 1, 0), at + 1);
}

/** Undefined where its line ends before. */
function endOfString(text: string, from: number): number | undefined {
  for (let at = from + 1; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return at;
    if (code === NEWLINE) return undefined;
    if (code === BACKSLASH && isQuoteOrBackslash(text.charCodeAt(at + 1))) at++;
  }
  return undefined;
}

function isQuoteOrBackslash(code: number): boolean {
  return code === QUOTE || code === BACKSLASH;
}
