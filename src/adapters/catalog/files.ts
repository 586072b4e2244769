// Reading the operator's folders: bounded, text as editors save it, and never outside the folder (RFC 0003).
import { readdir, readFile, realpath, stat } from 'node:fs/promises';
import { isAbsolute, join, sep } from 'node:path';
import { fileText } from '../../rules/file-text.ts';
import { readJson } from '../../rules/json-text.ts';

/** Largest file that is read, in bytes. */
const CATALOG_FILE_BYTES = 1024 * 1024;

/** A file that cannot be used, with one line that says why. Recognised by `code`. */
export class FileProblem extends Error {
  readonly code = 'file_problem';
  /** JSON pointer into the file; '' is the whole. */
  readonly pointer: string;

  constructor(message: string, { pointer = '', ...options }: ProblemOptions = {}) {
    super(message, options);
    this.pointer = pointer;
  }

  /** Place and message, as a sentence about the file goes on. */
  get words(): string {
    return `${this.pointer} ${this.message}`.trimStart();
  }
}

interface ProblemOptions extends ErrorOptions {
  readonly pointer?: string;
}

export function isFileProblem(error: unknown): error is FileProblem {
  return (error as { code?: unknown } | null)?.code === 'file_problem';
}

/** Names of the files directly in a folder that end with `ending`, sorted. Throws what the file system says. */
export async function filesIn(folder: string, ending: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  return entries
    .filter((entry) => !entry.isDirectory() && entry.name.endsWith(ending))
    .map((entry) => entry.name)
    .sort();
}

/** Text of a file. Throws FileProblem when it is not there, too large or no text. */
export async function readText(path: string): Promise<string> {
  try {
    const found = await stat(path);
    if (!found.isFile()) throw new FileProblem('is not a file');
    if (found.size > CATALOG_FILE_BYTES)
      throw new FileProblem(`is larger than ${CATALOG_FILE_BYTES} bytes`);
    const read = fileText(await readFile(path));
    if (read.ok) return read.text;
    throw new FileProblem(read.message);
  } catch (error) {
    if (isFileProblem(error)) throw error;
    const { code = '' } = error as { code?: string };
    throw new FileProblem(`cannot be read (${code})`, { cause: error });
  }
}

/** Throws FileProblem when the file is not JSON, or what it says cannot be kept as it is written. */
export async function readJsonFile(path: string): Promise<unknown> {
  const read = readJson(await readText(path));
  if (read.ok) return read.value;
  const { pointer, message } = read.fault;
  throw new FileProblem(message, { pointer });
}

/**
 * Path of a file that a manifest refers to: relative to the folder and inside it, links followed. Throws FileProblem.
 */
export async function insideFolder(folder: string, reference: string): Promise<string> {
  if (isAbsolute(reference) || reference.split(/[/\\]/).includes('..')) {
    throw new FileProblem(`"${reference}" must be a path inside the folder`);
  }
  const path = join(folder, reference);
  const real = await realpath(path).catch((error: unknown) => {
    throw new FileProblem(`"${reference}" does not exist`, { cause: error });
  });
  if (!real.startsWith(`${await realpath(folder)}${sep}`))
    throw new FileProblem(`"${reference}" leads out of the folder`);
  return path;
}
