// `npm run bench`: measures the host on this machine and prints one table (`-- --json FILE` for the numbers, `-- --quick`
// for a short look, `-- --only SECTION` for one section or several, the only way to `soak`; `-- --readme` writes README's
// table). Ends by itself, within a limit, and ends only what it started.
import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { refuse, takeArguments } from '../test/support/arguments.ts';
import { runBench } from './bench.ts';
import { Closing } from './closing.ts';
import { tableOf } from './report.ts';
import { SECTION_NAMES, USUAL_SECTIONS, type SectionName } from './sections.ts';
import { FULL, QUICK } from './sizes.ts';

/** Something hangs when it takes longer, in ms. */
const LIMIT_MS = { full: 45 * 60_000, quick: 6 * 60_000 };
/** For ending what was started, after that or after a signal. */
const CLOSE_LIMIT_MS = 60_000;

const README = fileURLToPath(new URL('../README.md', import.meta.url));
const MARKS = { before: '<!-- bench -->', after: '<!-- /bench -->' };

const USAGE = `npm run bench -- [--quick] [--only SECTION]... [--json FILE] [--readme]
Sections: ${USUAL_SECTIONS.join(', ')}.
By name alone: ${SECTION_NAMES.filter((name) => !USUAL_SECTIONS.includes(name)).join(', ')}.`;

const { values } = takeArguments(
  {
    options: {
      json: { type: 'string' },
      quick: { type: 'boolean', default: false },
      readme: { type: 'boolean', default: false },
      only: { type: 'string', multiple: true, default: [] },
      help: { type: 'boolean' },
    },
  },
  USAGE,
);
const unknown = values.only.filter((name) => !(SECTION_NAMES as string[]).includes(name));
if (unknown.length > 0)
  refuse(`No section of the bench: ${unknown.join(', ')}. They are: ${SECTION_NAMES.join(', ')}.`);
const closing = new Closing();
const tell = (line: string) => void process.stderr.write(`${line}\n`);

async function giveUp(why: string): Promise<never> {
  tell(why);
  setTimeout(() => process.exit(1), CLOSE_LIMIT_MS).unref();
  await closing.close();
  process.exit(1);
}

/** Between its two marks. */
async function writeReadme(table: string): Promise<void> {
  const text = await readFile(README, 'utf8');
  const [before, after] = [text.indexOf(MARKS.before), text.indexOf(MARKS.after)];
  if (before < 0 || after < before) throw new Error(`README has no ${MARKS.before}`);
  const kept = text.slice(0, before + MARKS.before.length);
  await writeFile(README, `${kept}\n\n${table}\n${text.slice(after)}`);
}

for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => void giveUp(`stopped by ${signal}`));
const limitMs = values.quick ? LIMIT_MS.quick : LIMIT_MS.full;
setTimeout(() => void giveUp('the bench takes too long'), limitMs).unref();

const only = values.only.length > 0 ? (values.only as SectionName[]) : USUAL_SECTIONS;

try {
  const sizes = values.quick ? QUICK : FULL;
  const report = await runBench({ sizes, closing, only, progress: tell });
  process.stdout.write(tableOf(report));
  if (values.readme) await writeReadme(tableOf(report));
  if (values.json !== undefined)
    await writeFile(values.json, `${JSON.stringify(report, null, 2)}\n`);
  await closing.close();
  process.exit(0);
} catch (error) {
  await giveUp(error instanceof Error ? (error.stack ?? error.message) : String(error));
}
