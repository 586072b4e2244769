// A test run leaves no process and no file behind, however it ends.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { TYPESCRIPT } from '../../src/system/compiled.ts';
import { temporaryFolder } from '../support/folders.ts';
import { ROOT } from '../support/root.ts';
import { sweepPlaces } from './place.ts';

/** Takes a place, and starts a process there that outlives its parent, as one of a killed test worker does; says where. */
const programThat = (goesOn: string) => `
  import { spawn } from 'node:child_process';
  import { writeFileSync, writeSync } from 'node:fs';
  import { inPlace } from '${join(ROOT, 'test/runner/place.ts')}';
  await inPlace(async (folder) => {
  writeFileSync(folder + '/file', '');
  // Nobody but the environment says whose it is.
  const sleep = 'process.title = "left"; setInterval(() => {}, 1_000)';
  const between = \`require('node:child_process').spawn(process.execPath, ['-e', \${JSON.stringify(sleep)}],
    { detached: true, stdio: 'ignore' }).unref()\`;
  await new Promise((resolve) => spawn(process.execPath, ['-e', between]).once('exit', resolve));
  writeSync(1, folder + '\\n');
  ${goesOn}
  });
`;
const CLEAR = programThat('');
const DIE = programThat("process.kill(process.pid, 'SIGKILL');");
const LIVE = programThat('await new Promise(() => setInterval(() => {}, 1_000));');

interface Running {
  readonly folder: string;
  readonly child: ChildProcess;
  /** All that it printed after the folder, when it has ended. */
  readonly ended: Promise<readonly string[]>;
}

/** Runs a program until it has said where. */
async function run(program: string, base: string): Promise<Running> {
  const args = ['--import', TYPESCRIPT, '--input-type=module', '-e', program];
  const child = spawn(process.execPath, args, {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, TMPDIR: base },
  });
  let text = '';
  child.stdout.on('data', (piece: Buffer) => void (text += piece.toString()));
  const ended = once(child, 'close').then(() => text.trim().split('\n').slice(1));
  await once(child.stdout, 'data');
  return { folder: text.split('\n')[0] ?? '', child, ended };
}

describe.skipIf(!existsSync('/proc/self/environ'))('a place', () => {
  it('names and ends what outlived its parent, and the folder goes', async () => {
    const { folder, ended } = await run(CLEAR, await temporaryFolder('places'));
    const left = await ended;
    expect(left).toHaveLength(1);
    expect(left[0]).toMatch(/setInterval|left/);
    expect(existsSync(folder)).toBe(false);
  });

  it('whose owner was killed is cleared by the next run; that of a living run is not', async () => {
    const base = await temporaryFolder('places');
    const nobodys = join(base, 'owt-nobody');
    mkdirSync(nobodys);
    // In this order: each clears what it finds.
    const living = await run(LIVE, base);
    const dead = await run(DIE, base);
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
