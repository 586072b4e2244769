// Text that a person gives the command line in a file, or by its input.
import { readFileSync } from 'node:fs';
import { fileText } from '../rules/file-text.ts';
import { usageFault } from './faults.ts';

/** Throws a usage fault that names the file and why it cannot be read. */
export function textOfFile(file: string): string {
  let bytes: Uint8Array;
  try {
    bytes = readFileSync(file);
  } catch (error) {
    const { code = 'unknown' } = error as NodeJS.ErrnoException;
    throw usageFault(`The file ${file} cannot be read (${code}).`);
  }
  return textOf(bytes, `The file ${file}`);
}

/** `what` begins the sentence of a fault. Throws a usage fault. */
export function textOf(bytes: Uint8Array, what: string): string {
  const read = fileText(bytes);
  if (read.ok) return read.text;
  throw usageFault(`${what} ${read.message}.`);
}
