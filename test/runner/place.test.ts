// A test run leaves no process and no file behind, however it ends.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { ROOT } from '../support/root.ts';
import { sweepPlaces } from './place.ts';

/** Takes a place and starts a process there that outlives its parent, as one of a killed test worker does. */
const TAKE = `
  import { spawn } from 'node:child_process';
  import { writeFileSync, writeSync } from 'node:fs';
  import { takePlace } from '${join(ROOT, 'test/runner/place.ts')}';
  const place = takePlace();
  writeFileSync(place.folder + '/file', '');
  // Nobody but the environment says whose it is.
  const sleep = 'process.title = "left"; setInterval(() => {}, 1_000)';
  const between = \`require('node:child_process').spawn(process.execPath, ['-e', \${JSON.stringify(sleep)}],
    { detached: true, stdio: 'ignore' }).unref()\`;
  await new Promise((resolve) => spawn(process.execPath, ['-e', between]).once('exit', resolve));
`;
const CLEAR = `
  const left = await place.clear();
  console.log(JSON.stringify({ folder: place.folder, left }));
`;
const DIE = `
  writeSync(1, JSON.stringify({ folder: place.folder }));
  process.kill(process.pid, 'SIGKILL');
`;
const LIVE = `
  console.log(JSON.stringify({ folder: place.folder }));
  setInterval(() => {}, 1_000);
`;

interface Said {
  readonly folder: string;
  readonly left: readonly string[];
}

interface Running extends Said {
  readonly child: ChildProcess;
  readonly ended: Promise<unknown>;
}

/** Runs a program until it has said something. */
async function run(program: string, base = tmpdir()): Promise<Running> {
  const args = ['--import', 'tsx', '--input-type=module', '-e', program];
  const child = spawn(process.execPath, args, {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, TMPDIR: base },
  });
  const ended = once(child, 'exit');
  const [piece] = (await once(child.stdout, 'data')) as [Buffer];
  return { ...(JSON.parse(piece.toString()) as Said), child, ended };
}

describe.skipIf(!existsSync('/proc/self/environ'))('a place', () => {
  it('names and ends what outlived its parent, and the folder goes', async () => {
    const { folder, left } = await run(TAKE + CLEAR);
    expect(left).toHaveLength(1);
    expect(left[0]).toMatch(/setInterval|left/);
    expect(existsSync(folder)).toBe(false);
  });

  it('whose owner was killed is cleared by the next run; that of a living run is not', async () => {
    const base = await temporaryFolder('places');
    const nobodys = join(base, 'owt-nobody');
    mkdirSync(nobodys);
    const [dead, living] = await Promise.all([run(TAKE + DIE, base), run(TAKE + LIVE, base)]);
    await dead.ended;
    const left = await sweepPlaces(base);
    expect(left).toHaveLength(1);
    expect([dead.folder, living.folder, nobodys].map((path) => existsSync(path))).toEqual([
      false,
      true,
      true,
    ]);
    living.child.kill('SIGKILL');
    await living.ended;
    expect(await sweepPlaces(base)).toHaveLength(1);
  });
});
