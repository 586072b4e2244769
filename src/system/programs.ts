// Other programs, run to their end: found on a PATH, under a limit, with the end of what they complained about.
import { spawn } from 'node:child_process';
import { access, constants } from 'node:fs/promises';
import { delimiter, join } from 'node:path';

/** Kept of a program's output, from the end, in characters. */
const OUTPUT_CHARS = 64 * 1024;

export type Environment = Readonly<Record<string, string | undefined>>;

export interface ProgramRun {
  readonly env: Environment;
  readonly limitMs: number;
  readonly cwd?: string;
  readonly signal?: AbortSignal;
}

/** The program ended badly, or not in time. `output` is the end of what it said, errors included. */
export class ProgramFault extends Error {
  readonly output: string;

  constructor(message: string, output: string) {
    super(message);
    this.output = output;
  }
}

/** What the program printed. Throws ProgramFault. */
export function runProgram(
  file: string,
  args: readonly string[],
  { env, limitMs, cwd, signal }: ProgramRun,
): Promise<string> {
  return new Promise((resolve, reject) => {
    // A group of its own: what the program started ends with it.
    const child = spawn(file, [...args], {
      env: { ...env },
      cwd,
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    let printed = '';
    let output = '';
    let why: string | undefined;
    const end = (reason: string) => {
      why ??= reason;
      try {
        if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
      }
    };
    const limit = setTimeout(() => end(`not done in ${limitMs / 1000} s`), limitMs);
    const onAbort = () => end('given up');
    signal?.addEventListener('abort', onAbort, { once: true });
    if (signal?.aborted) onAbort();
    child.stdout.on('data', (piece: Buffer) => {
      printed = (printed + piece.toString()).slice(-OUTPUT_CHARS);
      output = (output + piece.toString()).slice(-OUTPUT_CHARS);
    });
    child.stderr.on('data', (piece: Buffer) => {
      output = (output + piece.toString()).slice(-OUTPUT_CHARS);
    });
    const settle = (fault: string | undefined) => {
      clearTimeout(limit);
      signal?.removeEventListener('abort', onAbort);
      if (fault === undefined) resolve(printed);
      else reject(new ProgramFault(fault, output));
    };
    child.once('error', (error) => settle(error.message));
    child.once('close', (code, killedBy) =>
      settle(code === 0 ? undefined : (why ?? `it ended with ${killedBy ?? `exit code ${code}`}`)),
    );
  });
}

/** Absolute path of an executable, or undefined. */
export async function findOnPath(name: string, path = ''): Promise<string | undefined> {
  for (const folder of path.split(delimiter)) {
    if (folder && (await isExecutable(join(folder, name)))) return join(folder, name);
  }
  return undefined;
}

export async function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}
