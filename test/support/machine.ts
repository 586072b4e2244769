// How much slower this machine is than the one on which the limits of the tests were chosen: two free cores. Nothing
// asserts a time, so a slow machine needs longer limits and nothing else. `npm test` measures the factor once and hands
// it to every process in the environment; without it the factor is 1.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const SLOW_VARIABLE = 'OPENWOP_TEST_SLOW';
const LEAST = 1;
const MOST = 6;

/** The factor, from 1 to 6; asked for each time, since `npm test` measures it when it has begun. */
const factor = (): number => factorOf(process.env[SLOW_VARIABLE]);

/** A limit that ends a wait, in ms: it is reached only by what hangs. */
export function patient(ms: number): number {
  return Math.round(ms * factor());
}

/**
 * A time that a case is about, in ms: how long a scripted step takes, or a deadline that something has to meet. `most`: what stays
 * below a limit of the product, which does not go by the factor.
 */
export function paced(ms: number, most = Infinity): number {
  return Math.min(most, Math.round(ms * factor()));
}

function factorOf(text: string | undefined): number {
  const factor = Number(text);
  return Number.isFinite(factor) ? Math.min(MOST, Math.max(LEAST, factor)) : LEAST;
}

/** As many as vitest has workers on two cores. */
const PROCESSES = 3;
/** What the work of one process takes beside the two others on two free cores, in ms. */
const WORK_MS = 1_000;
/** A timer that is later than this says that processes wait for a core, in ms. */
const LATE_MS = 50;

/** What one process measures (machine-work.js). */
interface Measured {
  readonly workMs: number;
  readonly lateMs: number;
}

/** The factor of what the processes measured, by the slowest of them, in steps of a tenth. */
export function factorFrom(measured: readonly Measured[]): number {
  const factors = measured.map(({ workMs, lateMs }) =>
    Math.max(workMs / WORK_MS, lateMs / LATE_MS),
  );
  return Math.round(factorOf(String(Math.max(...factors))) * 10) / 10;
}

/** Measures the factor by fixed work in as many processes as the tests take. Takes a second or two. */
export async function measureSlowness(): Promise<number> {
  return factorFrom(await Promise.all(Array.from({ length: PROCESSES }, measureOne)));
}

/** The factor, which every process that this one starts gets, too; measured unless the environment names it. */
export async function shareSlowness(): Promise<string> {
  return (process.env[SLOW_VARIABLE] ??= String(await measureSlowness()));
}

const WORK = fileURLToPath(new URL('./machine-work.js', import.meta.url));

async function measureOne(): Promise<Measured> {
  const child = spawn(process.execPath, [WORK], { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.on('data', (piece: Buffer) => void (text += piece.toString()));
  await once(child, 'close');
  return JSON.parse(text) as Measured;
}
