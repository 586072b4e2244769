// A text as editors save it: the bytes of one file for each way.

const BOM = '\ufeff';

export const EDITORS: Readonly<Record<string, (text: string) => Buffer>> = {
  'UTF-8': (text) => Buffer.from(text),
  'UTF-8 with a byte order mark': (text) => Buffer.from(BOM + text),
  'UTF-16, little endian': (text) => Buffer.from(BOM + text, 'utf16le'),
  'UTF-16, big endian': (text) => Buffer.from(BOM + text, 'utf16le').swap16(),
  'with lines of Windows': (text) => Buffer.from(text.replaceAll('\n', '\r\n')),
  'UTF-16 with lines of Windows': (text) =>
    Buffer.from(BOM + text.replaceAll('\n', '\r\n'), 'utf16le'),
};

/** What no editor calls text, or does not say what it is. */
export const NO_TEXT: Readonly<Record<string, Buffer>> = {
  'Latin-1': Buffer.from('{"a":"Müller"}', 'latin1'),
  'half a character of UTF-8': Buffer.from('ü').subarray(0, 1),
  'half a unit of UTF-16': Buffer.from([0xff, 0xfe, 0x61]),
  'half a pair of UTF-16': Buffer.from([0xfe, 0xff, 0xd8, 0x00, 0x00, 0x61]),
  'UTF-16 without a mark': Buffer.from('{"a":1}', 'utf16le'),
  'UTF-32': Buffer.from([0xff, 0xfe, 0, 0, 0x7b, 0, 0, 0, 0x7d, 0, 0, 0]),
};
