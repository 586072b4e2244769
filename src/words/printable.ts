// Strings of agents and hosts without anything that a terminal would obey.

/** Control and format characters, line separators, lone surrogates: escape sequences and texts that run backwards. */
const OBEYED = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

export function printable(text: string): string {
  return text.replace(OBEYED, '\u{fffd}');
}

/** JSON that a terminal shows as it is: what it would obey is escaped, the value is the same. */
export function printableJson(value: unknown): string {
  return JSON.stringify(value).replace(OBEYED, (character) =>
    [...Array(character.length).keys()]
      .map((at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`)
      .join(''),
  );
}
