// Environment variables, read one by one: each fault is one sentence that names its variable, and all are told at once.
import {
  accessSync,
  closeSync,
  constants,
  fstatSync,
  openSync,
  readFileSync,
  statSync,
} from 'node:fs';
import { resolve } from 'node:path';
import { fileText } from '../rules/file-text.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Largest file that holds one secret. */
const MAX_SECRET_BYTES = 16 * 1024;

/** What a header can hold: another key would fail each request, with an error that repeats it. */
const VISIBLE = /^[\x21-\x7e]+$/;

/** Reads variables, and notes one sentence for each that is at fault. */
export class Reader {
  readonly faults: string[] = [];
  /** What is set for nothing: said, and no reason not to start. */
  readonly warnings: string[] = [];
  /** What was read from files: for redaction. */
  readonly fileSecrets: { readonly id: string; readonly value: string }[] = [];
  readonly #env: Environment;

  constructor(env: Environment) {
    this.#env = env;
  }

  /** Empty is absent: shells and compose files pass empty variables on. */
  text(name: string): string | undefined {
    return this.#env[name]?.trim() || undefined;
  }

  fault(name: string, what: string): undefined {
    this.faults.push(`${name} ${what}`);
    return undefined;
  }

  port(name: string): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const port = Number(text);
    const valid = /^\d+$/.test(text) && port <= 65_535;
    return valid ? port : this.fault(name, `must be a port number from 0 to 65535, not "${text}".`);
  }

  /** A whole number within bounds. */
  count(name: string, least: number, most: number): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const count = Number(text);
    const valid = /^\d+$/.test(text) && count >= least && count <= most;
    return valid
      ? count
      : this.fault(name, `must be a whole number from ${least} to ${most}, not "${text}".`);
  }

  flag(name: string): boolean | undefined {
    const text = this.text(name)?.toLowerCase();
    if (text === undefined) return undefined;
    if (['1', 'true', 'yes', 'on'].includes(text)) return true;
    if (['0', 'false', 'no', 'off'].includes(text)) return false;
    return this.fault(name, `must be true or false, not "${text}".`);
  }

  choice<Value extends string>(name: string, values: readonly Value[]): Value | undefined {
    const text = this.text(name);
    const value = values.find((each) => each === text);
    return text === undefined || value !== undefined
      ? value
      : this.fault(name, `must be one of ${values.join(', ')}, not "${text}".`);
  }

  url(name: string, protocols: readonly string[]): string | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    if (URL.canParse(text) && protocols.includes(new URL(text).protocol)) return text;
    // The value is not shown: a database URL holds a password.
    return this.fault(
      name,
      `must be a URL that begins with ${protocols.map((it) => `${it}//`).join(' or ')}.`,
    );
  }

  folder(name: string): string | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const isFolder = statSync(text, { throwIfNoEntry: false })?.isDirectory() ?? false;
    return isFolder
      ? resolve(text)
      : this.fault(name, `must be an existing folder, not "${text}".`);
  }

  file(name: string): string | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    try {
      accessSync(text, constants.R_OK);
      return resolve(text);
    } catch {
      return this.fault(name, `must be a readable file, not "${text}".`);
    }
  }

  /** Names of the variables that are set and begin with `prefix`. */
  namesOf(prefix: string): string[] {
    return Object.keys(this.#env).filter(
      (name) => name.startsWith(prefix) && this.text(name) !== undefined,
    );
  }

  /** Of a service that is asked with a key: who asks it may not put a password into its address. */
  serviceUrl(name: string): string | undefined {
    const text = this.url(name, ['http:', 'https:']);
    if (text === undefined) return undefined;
    const { username, password } = new URL(text);
    return username === '' && password === ''
      ? text
      : this.fault(name, 'must hold no user and no password.');
  }

  /** A value from `NAME` itself, or from the file that `NAME_FILE` names and that this user alone may read. */
  secret(name: string): string | undefined {
    const value = this.text(name);
    const file = this.text(`${name}_FILE`);
    if (file === undefined)
      return value === undefined || VISIBLE.test(value)
        ? value
        : this.fault(name, 'must have visible ASCII characters alone.');
    if (value !== undefined)
      return this.fault(`${name}_FILE`, `is set beside ${name}: remove one of the two.`);
    return this.#secretOf(`${name}_FILE`, file);
  }

  #secretOf(name: string, path: string): string | undefined {
    const read = secretFile(path);
    if ('fault' in read) return this.fault(name, `${read.fault} ("${path}").`);
    this.fileSecrets.push({ id: name, value: read.value });
    return read.value;
  }
}

/** Opened once: what is looked at is what is read. */
function secretFile(path: string): { readonly value: string } | { readonly fault: string } {
  let file: number;
  try {
    // A pipe without a writer would wait for one.
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch {
    return { fault: 'must name a file that this user can read' };
  }
  try {
    const stat = fstatSync(file);
    if (!stat.isFile()) return { fault: 'must name a file' };
    if (process.getuid !== undefined && stat.uid !== process.getuid())
      return { fault: 'must name a file that belongs to the user of this process: chown it' };
    if ((stat.mode & 0o077) !== 0)
      return { fault: 'must name a file that nobody else may read: chmod 600' };
    if (stat.size > MAX_SECRET_BYTES)
      return { fault: `must name a file of at most ${MAX_SECRET_BYTES} bytes` };
    const read = fileText(readFileSync(file));
    if (!read.ok) return { fault: 'must name a text file, saved as UTF-8' };
    const value = read.text.trim();
    if (!VISIBLE.test(value))
      return { fault: 'must name a file with one line of visible ASCII characters' };
    return { value };
  } finally {
    closeSync(file);
  }
}
