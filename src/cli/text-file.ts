// A file that the command line names.
import { readFileSync } from 'node:fs';
import { usageFault } from './faults.ts';

/** Throws a usage fault that names the file and why it cannot be read. */
export function textOfFile(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const { code = 'unknown' } = error as NodeJS.ErrnoException;
    throw usageFault(`The file ${file} cannot be read (${code}).`);
  }
}
