// Texts of agents and hosts as a person reads them, in a terminal or on a page: what would be hidden, turn the order of
// others around, or be obeyed by a terminal is shown as its escape (architecture §10, I104). Runs in the browser, too.

/** Control and format characters, line separators, lone surrogates, and what takes no room, is blank or a rare space. */
const HIDDEN = String.raw`[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Default_Ignorable_Code_Point}\u1680\u2000-\u200a\u205f\u2800\ufffc\u{1d159}]`;
/** Where writing needs them: the parts of most emoji, joiners in Arabic script and after a virama (RFC 5892 §A.1, §A.2). */
const NEEDED = [
  String.raw`(?<=\p{Extended_Pictographic})(?<!\p{Emoji_Presentation})\ufe0f|(?<=[#*\d])\ufe0f(?=\u20e3)`,
  String.raw`(?<=[\p{Emoji_Presentation}\p{Emoji_Modifier}\ufe0f])\u200d(?=\p{Extended_Pictographic})`,
  String.raw`(?<=(?=\p{L})\p{Script=Arabic})\u200c(?=(?=\p{L})\p{Script=Arabic})`,
  String.raw`(?<=[\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d\u0dca])[\u200c\u200d](?=\p{L})`,
].join('|');

const ANYWHERE = `(?!${NEEDED})${HIDDEN}`;
const BESIDE_LINES = String.raw`(?!\n|\t|\r\n)${ANYWHERE}`;
const HIDDEN_IN_LINES = new RegExp(BESIDE_LINES, 'gu');
/** At the ends of a value nobody sees a space or a line break. */
const ENDS = String.raw`^\s+|(?<!\s)\s+$`;
const IN_VALUE = inValue(ANYWHERE);
const IN_VALUE_OF_LINES = inValue(BESIDE_LINES);
const ALONE = inValue(`${ENDS}|${BESIDE_LINES}`);

/**
 * With the backslashes before what is, or looks like, an escape: they are doubled, so that no two values look alike, but for
 * a selector of emoji and the kinds of line breaks and common spaces.
 * @param {string} hidden
 */
function inValue(hidden) {
  return new RegExp(String.raw`(?<!\\)\\+(?=u[\dA-Fa-f]{4}|${hidden})|${hidden}`, 'gu');
}

/**
 * A value on one line: a line break is an escape, too.
 * @param {string} value
 */
export function printable(value) {
  return value.replace(IN_VALUE, shown);
}

/**
 * A value whose lines stay lines.
 * @param {string} value
 */
export function printableValue(value) {
  return value.replace(IN_VALUE_OF_LINES, shown);
}

/** It would be taken for what it means there. */
const WORD_OF_JSON = /^(?:|null|true|false|".*")$/s;

/**
 * A value that stands alone, without quotes around it: its ends are seen, and `null`, `true`, `false`, nothing at all and
 * what has quotes already stand in quotes.
 * @param {string} value
 */
export function printableAlone(value) {
  if (WORD_OF_JSON.test(value)) return printableJson(value);
  return value.replace(ALONE, shown);
}

/**
 * A text of several lines that may have printable values in it: they stay as they are.
 * @param {string} text
 */
export function printableLines(text) {
  return text.replace(HIDDEN_IN_LINES, escaped);
}

/**
 * JSON in which nothing is hidden: what would be is escaped, the value is the same.
 * @param {unknown} value
 * @param {number} [indent]
 */
export function printableJson(value, indent) {
  return printableLines(JSON.stringify(value, null, indent));
}

/**
 * Whether a part of the text is shown as an escape.
 * @param {string} text
 */
export function hidesAPart(text) {
  return printableLines(text) !== text;
}

/** @param {string} found */
function shown(found) {
  return found.startsWith('\\') ? found + found : escaped(found);
}

/** @param {string} character */
function escaped(character) {
  return [...Array(character.length).keys()]
    .map((at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`)
    .join('');
}
