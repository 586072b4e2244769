// A facade or worker as a process of its own: spawned, told ready, killed.
import { spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Environment } from '../../../src/app/config.ts';
import { programArgs } from '../prepared.ts';
import { patient } from '../machine.ts';

export type HalfKind = 'worker' | 'serve';

/** Time a half has to take work, on a busy machine. */
const START_LIMIT_MS = patient(60_000);
const PROBE_MS = 20;
/** Pause before a half that did not start is started again, as a supervisor would. */
const RESPAWN_MS = 250;
const SCRIPT = new URL('./half.ts', import.meta.url);
/** Of what a process said the end is kept, and the end of that is in the message of a failure; in characters. */
const KEPT_OUTPUT = 4_000_000;
const SHOWN_OUTPUT = 20_000;

export interface HalfProcess {
  readonly pid: number;
  /** Base of the API; of a worker, of its health, or '' where it tells that nowhere. */
  readonly url: string;
  output(): string;
  /** Resolves with exit code or signal when the process is gone. */
  kill(signal: NodeJS.Signals): Promise<number | NodeJS.Signals | null>;
}

interface Spawned extends HalfProcess {
  readonly ready: Promise<boolean>;
  /** Its end, unless it was asked for. */
  readonly death: Promise<string>;
}

function spawnHalf(kind: HalfKind, env: Environment): Spawned {
  const child = spawn(process.execPath, [...programArgs(SCRIPT), kind], {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  const keep = (piece: Buffer) => void (output = (output + piece.toString()).slice(-KEPT_OUTPUT));
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  const gone = new Promise<number | NodeJS.Signals | null>((resolve) => {
    child.once('close', (code, signal) => resolve(signal ?? code));
  });
  const urlNow = () => /^ready (\S*)$/m.exec(output)?.[1];
  const ready = (async () => {
    const limit = Date.now() + START_LIMIT_MS;
    while (urlNow() === undefined) {
      if (child.exitCode !== null || child.signalCode !== null || Date.now() > limit) return false;
      await sleep(PROBE_MS);
    }
    return true;
  })();
  let asked = false;
  const death = new Promise<string>((resolve) => {
    void gone.then((how) => {
      if (!asked)
        resolve(`${kind} ended by itself (${String(how)}):\n${output.slice(-SHOWN_OUTPUT)}`);
    });
  });
  let url = '';
  void ready.then(() => (url = urlNow() ?? ''));
  return {
    pid: child.pid ?? 0,
    get url() {
      return url;
    },
    output: () => output,
    ready,
    death,
    kill(signal) {
      asked = true;
      child.kill(signal);
      return gone;
    },
  };
}

/**
 * Starts a half until it takes work: one that meets an absent database ends, and a supervisor starts it again. One that
 * took work and then ends by itself is told to `onDeath`, with the last that it said.
 */
export async function startHalf(
  kind: HalfKind,
  env: Environment,
  onDeath: (how: string) => void = () => {},
): Promise<HalfProcess> {
  const limit = Date.now() + START_LIMIT_MS;
  for (;;) {
    const half = spawnHalf(kind, env);
    if (await half.ready) {
      void half.death.then(onDeath);
      return half;
    }
    await half.kill('SIGKILL');
    if (Date.now() > limit)
      throw new Error(`${kind} did not start:\n${half.output().slice(-SHOWN_OUTPUT)}`);
    await sleep(RESPAWN_MS);
  }
}
