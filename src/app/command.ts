// What the three commands share: configuration faults as clear lines, logs, and an orderly end on signals.
import { codeOf, type HostError } from '../rules/errors.ts';
import type { Logger } from '../ports/logger.ts';
import { collectWhenIdle } from '../system/idle-collection.js';
import { readConfig, type Config } from './config.ts';
import { createLogger, type LogLevel } from './logger.ts';

/** One Ctrl-C reaches this process twice, from the terminal and from npm: repeats within this time are the same. */
const SAME_SIGNAL_MS = 1_500;
/** What ends beside the parts that have a limit of their own has this time, in ms. */
const EXIT_MARGIN_MS = 5_000;

export interface Running {
  /** Longest time in ms that the parts take to stop, each within its own limit. */
  readonly stopLimitMs: number;
  stop(): Promise<void>;
}

export interface CommandParts {
  readonly config: Config;
  readonly logger: Logger;
  /** Prints a line for a human. */
  readonly say: (line: string) => void;
  /** Aborted by the first signal, also while the command still starts. */
  readonly signal: AbortSignal;
}

export interface Command {
  readonly logLevel: LogLevel;
  /** What is running belongs to the command until it is returned; `signal` tells it to give up. */
  readonly start: (parts: CommandParts) => Promise<Running>;
}

/** Runs until SIGINT or SIGTERM; sets the exit code. */
export async function runCommand(command: Command): Promise<void> {
  collectWhenIdle();
  const say = (line: string) => void process.stdout.write(`${line}\n`);
  let config: Config;
  try {
    config = readConfig(process.env);
  } catch (error) {
    return fail(error);
  }
  for (const warning of config.warnings) say(`Warning: ${warning}`);
  const logger = createLogger({ level: config.logLevel ?? command.logLevel });
  const { signal, stopped } = onSignals();
  let running: Running | undefined;
  try {
    running = await command.start({ config, logger, say, signal });
  } catch (error) {
    if (!signal.aborted) return fail(error);
  }
  await stopped;
  if (running) {
    setTimeout(() => process.exit(1), exitLimitMs(running)).unref();
    await running.stop();
  }
  process.exit(0);
}

/** Nothing keeps the process longer than this, in ms, whatever its parts do; none of them is cut off before its limit. */
export function exitLimitMs({ stopLimitMs }: Pick<Running, 'stopLimitMs'>): number {
  return stopLimitMs + EXIT_MARGIN_MS;
}

function onSignals(): { signal: AbortSignal; stopped: Promise<void> } {
  const abort = new AbortController();
  let firstAtMs: number | undefined;
  const stopped = new Promise<void>((resolve) => {
    const onSignal = () => {
      if (firstAtMs === undefined) {
        firstAtMs = performance.now();
        abort.abort();
        resolve();
      } else if (performance.now() - firstAtMs > SAME_SIGNAL_MS) process.exit(130);
    };
    process.on('SIGINT', onSignal);
    process.on('SIGTERM', onSignal);
  });
  return { signal: abort.signal, stopped };
}

/** A fault of the surroundings is told in its own words; one of ours with its stack. */
function fail(error: unknown): never {
  const code = codeOf(error);
  if (code === undefined) console.error(error);
  else for (const line of faultsOf(error as HostError)) console.error(`openwop-temporal: ${line}`);
  process.exit(1);
}

function faultsOf({ details, message, cause }: HostError): readonly string[] {
  // What a statement at the start was refused with holds no values of runs.
  if (details?.sqlState !== undefined) return [`${message} ${(cause as Error).message}`];
  return Array.isArray(details?.faults) ? (details.faults as string[]) : [message];
}
