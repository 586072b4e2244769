// `npm run bench`: measures the host on this machine and prints one table (`-- --json FILE` for the numbers, `-- --quick`
// for a look of two minutes). Ends by itself, within a limit, and ends only what it started.
import { writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { runBench } from './bench.ts';
import { Closing } from './closing.ts';
import { tableOf } from './report.ts';
import { FULL, QUICK } from './sizes.ts';

/** Something hangs when it takes longer, in ms. */
const LIMIT_MS = { full: 15 * 60_000, quick: 5 * 60_000 };
/** For ending what was started, after that or after a signal. */
const CLOSE_LIMIT_MS = 60_000;

const { values } = parseArgs({
  options: { json: { type: 'string' }, quick: { type: 'boolean', default: false } },
});
const closing = new Closing();
const tell = (line: string) => void process.stderr.write(`${line}\n`);

async function giveUp(why: string): Promise<never> {
  tell(why);
  setTimeout(() => process.exit(1), CLOSE_LIMIT_MS).unref();
  await closing.close();
  process.exit(1);
}

for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => void giveUp(`stopped by ${signal}`));
const limitMs = values.quick ? LIMIT_MS.quick : LIMIT_MS.full;
setTimeout(() => void giveUp('the bench takes too long'), limitMs).unref();

try {
  const sizes = values.quick ? QUICK : FULL;
  const report = await runBench({ sizes, closing, progress: tell });
  process.stdout.write(tableOf(report));
  if (values.json !== undefined)
    await writeFile(values.json, `${JSON.stringify(report, null, 2)}\n`);
  await closing.close();
  process.exit(0);
} catch (error) {
  await giveUp(error instanceof Error ? (error.stack ?? error.message) : String(error));
}
