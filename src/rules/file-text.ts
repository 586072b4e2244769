// The text of a file that a person wrote, as editors save it: UTF-8, with or without a byte order mark, or UTF-16 with one.
// Files that programs write are read as those write them.

export type FileText =
  | { readonly ok: true; readonly text: string }
  /** `message` goes on from the file's name. */
  | { readonly ok: false; readonly message: string };

const REMEDY = 'save it as UTF-8';

/**
 * The mark is none of the text, and a line ends with `\n`, also where Windows wrote `\r\n`. Bytes that are no text are
 * refused: they would be read as other characters than those in the file.
 */
export function fileText(bytes: Uint8Array): FileText {
  const encoding = encodingOf(bytes);
  let text: string;
  try {
    // It takes the mark away.
    text = new TextDecoder(encoding, { fatal: true }).decode(bytes);
  } catch {
    const name = encoding === 'utf-8' ? 'UTF-8' : 'UTF-16';
    return { ok: false, message: `is not ${name} text; ${REMEDY}` };
  }
  // UTF-16 without a mark is full of them, and no text has one.
  return text.includes('\0')
    ? { ok: false, message: `is no text, or UTF-16 without a byte order mark; ${REMEDY}` }
    : { ok: true, text: text.replaceAll('\r\n', '\n') };
}

function encodingOf([first, second]: Uint8Array): 'utf-8' | 'utf-16le' | 'utf-16be' {
  if (first === 0xff && second === 0xfe) return 'utf-16le';
  return first === 0xfe && second === 0xff ? 'utf-16be' : 'utf-8';
}
