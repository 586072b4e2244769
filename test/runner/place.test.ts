// A test run leaves no process and no file behind, however it ends.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ROOT } from '../support/root.ts';

/** Takes a place, starts a process that outlives it, and clears the place, which prints what was there. */
const PROGRAM = `
  import { spawn } from 'node:child_process';
  import { writeFileSync } from 'node:fs';
  import { takePlace } from '${join(ROOT, 'test/runner/place.ts')}';
  const place = takePlace();
  writeFileSync(place.folder + '/file', '');
  // Its parent ends at once, as a killed test worker does: nobody but the environment says whose it is.
  const sleep = 'process.title = "left"; setInterval(() => {}, 1_000)';
  const between = \`require('node:child_process').spawn(process.execPath, ['-e', \${JSON.stringify(sleep)}],
    { detached: true, stdio: 'ignore' }).unref()\`;
  await new Promise((resolve) => spawn(process.execPath, ['-e', between]).once('exit', resolve));
  const left = await place.clear();
  console.log(JSON.stringify({ folder: place.folder, left }));
`;

it.skipIf(!existsSync('/proc/self/environ'))(
  'what outlived its parent is named and ended, and the folder goes',
  async () => {
    const args = ['--import', 'tsx', '--input-type=module', '-e', PROGRAM];
    const child = spawn(process.execPath, args, {
      cwd: ROOT,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let text = '';
    child.stdout.on('data', (piece: Buffer) => void (text += piece.toString()));
    await new Promise((resolve) => child.once('close', resolve));
    const { folder, left } = JSON.parse(text) as { folder: string; left: string[] };
    expect(left).toHaveLength(1);
    expect(left[0]).toMatch(/setInterval|left/);
    expect(existsSync(folder)).toBe(false);
  },
);
