// `npm run campaign -- [PART...] [--minutes N] [--seed S]`: plays the parts that are named, or all, for about so many minutes
// in all. Each failure is printed as one command that plays the round again; parts.ts says which shows the same. Exit code 1 when one
// failed. What a campaign finds becomes a fixed case of `npm test`.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LINES_VARIABLE, readLines } from '../runner/lines.ts';
import { outcomeOf } from '../runner/outcome.ts';
import { inPlace } from '../runner/place.ts';
import { faultOfNumber, refuse, takeArguments } from '../support/arguments.ts';
import { shareSlowness } from '../support/machine.ts';
import { ROOT } from '../support/root.ts';
import { PART_NAMES, PARTS, type Part, type PartName, type Round } from './parts.ts';

const MINUTE_MS = 60_000;
const DEFAULT_MINUTES = 20;
/** A round that takes longer hangs, in ms. */
const ROUND_LIMIT_MS = 60 * MINUTE_MS;
/** From SIGTERM to SIGKILL, in ms. */
const END_LIMIT_MS = 30_000;

const REPORTERS = ['--reporter=default', `--reporter=${join(ROOT, 'test/runner/reporter.ts')}`];
const LIST = PART_NAMES.map((name) => `  ${name.padEnd(13)} ${PARTS[name].about}`).join('\n');
const USAGE = `npm run campaign -- [PART...] [--minutes N] [--seed S]
Plays the parts that are named, or all, for about N minutes in all (${DEFAULT_MINUTES}). They are:
${LIST}`;

const { values, positionals } = takeArguments(
  {
    allowPositionals: true,
    options: {
      minutes: { type: 'string' },
      seed: { type: 'string' },
      help: { type: 'boolean' },
    },
  },
  USAGE,
);

function numberOf(name: 'minutes' | 'seed', fallback: number): number {
  const text = values[name] ?? String(fallback);
  const fault = faultOfNumber(text, { isWhole: name === 'seed' });
  return fault === undefined ? Number(text) : refuse(`--${name} is ${fault}`);
}

function partsNamed(): readonly PartName[] {
  const unknown = positionals.filter((name) => !(PART_NAMES as string[]).includes(name));
  if (unknown.length > 0)
    return refuse(`No part of the campaign: ${unknown.join(', ')}. They are:\n${LIST}`);
  return positionals.length > 0 ? (positionals as PartName[]) : PART_NAMES;
}

/** As a shell takes it. */
function commandLine({ command, env }: Round): string {
  const quoted = command.map((word) => (/^[\w./:=-]+$/.test(word) ? word : `'${word}'`));
  return [...Object.entries(env).map(([name, value]) => `${name}=${value}`), ...quoted].join(' ');
}

/**
 * In a process group of its own, which ends with this process and at the limit. True: it succeeded, and tested something: no
 * title that is no longer there passes.
 */
async function play({ command, env }: Round): Promise<boolean> {
  const isVitest = command.includes('vitest');
  const [program = '', ...args] = isVitest ? [...command, ...REPORTERS] : command;
  const folder = mkdtempSync(join(tmpdir(), 'round-'));
  const path = join(folder, 'lines');
  const child = spawn(program, args, {
    cwd: ROOT,
    env: { ...process.env, ...env, [LINES_VARIABLE]: path },
    stdio: 'inherit',
    detached: true,
  });
  const end = (signal: NodeJS.Signals) => {
    try {
      process.kill(-(child.pid as number), signal);
    } catch {
      // It has ended.
    }
  };
  const stop = () => {
    end('SIGTERM');
    setTimeout(end, END_LIMIT_MS, 'SIGKILL').unref();
  };
  const stopAll = () => {
    stop();
    process.exitCode = 130;
    isStopped = true;
  };
  const limit = setTimeout(stop, ROUND_LIMIT_MS);
  // More than once: a Ctrl-C comes from the terminal and from npm.
  process.on('SIGINT', stopAll).on('SIGTERM', stopAll);
  const [code] = (await once(child, 'close')) as [number | null];
  clearTimeout(limit);
  process.off('SIGINT', stopAll).off('SIGTERM', stopAll);
  const { passed: tests } = outcomeOf(readLines(path));
  rmSync(folder, { recursive: true, force: true });
  if (isVitest && code === 0 && tests === 0) console.log('No test ran.');
  return code === 0 && (tests > 0 || !isVitest);
}

let isStopped = false;
const failures: string[] = [];
let passed = 0;

async function playPart(name: PartName, options: { seed: number; untilMs: number }): Promise<void> {
  const part: Part = PARTS[name];
  for (let index = 0; !isStopped; index++) {
    const round = part.round(options.seed, index);
    console.log(`\n== ${name}: ${commandLine(round)}`);
    const isGreen = await play(round);
    // One that was stopped from outside shows nothing.
    if (isStopped) return;
    if (isGreen) passed++;
    else failures.push(commandLine(round));
    if (part.isOnce || Date.now() > options.untilMs) return;
  }
}

const names = partsNamed();
const minutes = numberOf('minutes', DEFAULT_MINUTES);
const seed = numberOf('seed', Math.trunc(Date.now() / 1_000));
const untilMs = Date.now() + minutes * MINUTE_MS;
const left: PartName[] = [];
await inPlace(async () => {
  const factor = await shareSlowness();
  console.log(`campaign: --seed ${seed} --minutes ${minutes}, machine factor ${factor}`);
  for (const [index, name] of names.entries()) {
    if (isStopped || (index > 0 && Date.now() > untilMs)) {
      left.push(name);
      continue;
    }
    // What a part leaves of its share the later ones have.
    const share = (untilMs - Date.now()) / (names.length - index);
    await playPart(name, { seed, untilMs: Date.now() + share });
  }
});
if (left.length > 0) console.log(`not played, the time was over: ${left.join(', ')}`);
for (const line of failures) console.log(`failed: ${line}`);
console.log(`${passed} passed, ${failures.length} failed`);
if (failures.length > 0) process.exitCode = 1;
