// What an agent takes from its process (seed 004 §5.2): where Core listens, the token, the signals that end it. Tests
// hand in their own.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import process, { env } from 'node:process';
import { SOCKET_VARIABLE, TOKEN_VARIABLE } from '../opensentience/messages.ts';

export interface Credentials {
  /** Path of a Unix socket, or `tcp:127.0.0.1:<port>`. */
  readonly socket: string;
  /** Single use. */
  readonly token: string;
}

export interface Surroundings {
  readonly env: { [name: string]: string | undefined };
  /** Calls back once when the process is asked to end. Returns the end of the subscription. */
  readonly onStop: (listener: (signal: string) => void) => () => void;
  /** Marks the process's exit code; ends what still runs after `afterMs`. */
  readonly exit: (code: number, afterMs: number) => void;
  readonly log: (line: string) => void;
}

const SIGNALS = ['SIGTERM', 'SIGINT'] as const;

export const ownProcess: Surroundings = {
  env,
  onStop: (listener) => {
    for (const signal of SIGNALS) process.once(signal, listener);
    return () => {
      for (const signal of SIGNALS) process.off(signal, listener);
    };
  },
  exit: (code, afterMs) => {
    process.exitCode = code;
    setTimeout(() => process.exit(), afterMs).unref();
  },
  log: (line) => void process.stderr.write(`${line}\n`),
};

/** Reads once and deletes both: neither children nor crash reports shall have the token. */
export function takeCredentials(from: Surroundings['env']): Credentials | undefined {
  const { [SOCKET_VARIABLE]: socket, [TOKEN_VARIABLE]: token } = from;
  delete from[SOCKET_VARIABLE];
  delete from[TOKEN_VARIABLE];
  return socket !== undefined && token !== undefined ? { socket, token } : undefined;
}

/** For drift detection (seed 004 §4.1.1): of the file's bytes. */
export function hashOfManifest(file: string | URL): string {
  return `sha256:${createHash('sha256').update(readFileSync(file)).digest('hex')}`;
}
