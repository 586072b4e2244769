// What a thread that rests gives back, in a process of its own (src/system/idle-collection.js).
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';

const run = promisify(execFile);
const MODULE = new URL('../../src/system/idle-collection.js', import.meta.url).href;
const CWD = fileURLToPath(new URL('../..', import.meta.url));

/** Makes garbage, less than V8 collects by itself in a process that rests; tells when the heap is a third of that. */
const script = (begins: string) => `
  import { collectWhenIdle } from ${JSON.stringify(MODULE)};
  ${begins}
  let rows = [];
  for (let at = 0; at < 150_000; at++) rows.push({ at, text: 'row ' + at });
  const full = process.memoryUsage().heapUsed;
  rows = undefined;
  setInterval(() => {
    if (process.memoryUsage().heapUsed > full / 3) return;
    console.log('given back');
    process.exit(0);
  }, 100);
  setTimeout(() => process.exit(1), 30_000);
`;

const told = async (begins: string) =>
  (await run(process.execPath, ['--input-type=module', '-e', script(begins)], { cwd: CWD })).stdout;

describe('a process that rests', () => {
  it('gives back what it does not use', async () => {
    expect(await told('collectWhenIdle(100);')).toContain('given back');
  });

  it('is not kept running by that', async () => {
    const { stdout } = await run(
      process.execPath,
      [
        '--input-type=module',
        '-e',
        `import { collectWhenIdle } from ${JSON.stringify(MODULE)}; collectWhenIdle(); console.log('over');`,
      ],
      { cwd: CWD },
    );
    expect(stdout).toContain('over');
  });
});
