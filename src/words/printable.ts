// Strings of agents and hosts without anything that a terminal would obey.

/** Control and format characters, line separators, lone surrogates: escape sequences and texts that run backwards. */
const OBEYED = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

export function printable(text: string): string {
  return text.replace(OBEYED, '\u{fffd}');
}

/** JSON that a terminal shows as it is: what it would obey is escaped, the value is the same. */
export function printableJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, null, indent)
    .split('\n')
    .map((line) => line.replace(OBEYED, escaped))
    .join('\n');
}

function escaped(character: string): string {
  return [...Array(character.length).keys()]
    .map((at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`)
    .join('');
}

/** The same of several lines, which stay lines. */
export function printableLines(text: string): string {
  return text.split(/\r?\n/).map(printable).join('\n');
}
