// Programs start as one compiled file (src/app/launch.js, compile.js).
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, it } from 'vitest';
import { until } from '../support/host.ts';
import { copyDatabase } from '../support/prepared.ts';
import { CACHE_DIR } from '../support/temporal.ts';
import { ROOT } from '../support/root.ts';

const folder = mkdtempSync(join(tmpdir(), 'openwop-launch-'));
afterAll(() => rmSync(folder, { recursive: true }));

function env(cache: string): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, OPENWOP_CACHE_DIR: join(folder, cache) };
}

async function help(cache: string, root = ROOT): Promise<string> {
  const args = [join(root, 'src/app/launch.js'), 'openwop', '--help'];
  const { stdout } = await promisify(execFile)(process.execPath, args, {
    env: env(cache),
    cwd: folder,
  });
  return stdout;
}

const made = (cache: string): string[] => readdirSync(join(folder, cache));

/**
 * Kills a start while its draft has such files, and leaves nothing whole. False: it was through before it could be killed.
 */
async function isKilledOver(
  cache: string,
  isMoment: (files: readonly string[]) => boolean,
): Promise<boolean> {
  for (const name of made(cache).filter((each) => !each.includes('.')))
    rmSync(join(folder, cache, name), { recursive: true });
  const args = [join(ROOT, 'src/app/launch.js'), 'openwop', '--help'];
  const child = spawn(process.execPath, args, { env: env(cache), stdio: 'ignore' });
  const exited = once(child, 'exit');
  const isLeft = () => {
    const draft = made(cache).find((name) => name.includes(`.${child.pid}.`));
    try {
      return (
        draft !== undefined &&
        isMoment(readdirSync(join(folder, cache, draft), { recursive: true, encoding: 'utf8' }))
      );
    } catch {
      // It has got its name meanwhile.
      return false;
    }
  };
  await until(() => isLeft() || child.exitCode !== null, 'the moment comes, or the start is over');
  child.kill('SIGKILL');
  await exited;
  return isLeft();
}

/** A copy of the project; `cli`: what its command line does beside that. */
function checkout(name: string, cli: string): string {
  const root = join(folder, 'checkouts', name);
  for (const each of ['src', 'workflows', 'activities', 'schemas', 'package.json'])
    cpSync(join(ROOT, each), join(root, each), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(root, 'node_modules'));
  appendFileSync(join(root, 'src/cli/program.ts'), cli);
  return root;
}

it('a program is compiled once for a content of the sources, and again where one is another', async () => {
  const root = checkout('once', '');
  expect(await help('once', root)).toContain('Usage: openwop');
  const [first] = made('once');
  await help('once', root);
  expect(made('once')).toEqual([first]);
  const source = join(root, 'src/cli/program.ts');
  writeFileSync(source, `export const runCli = () => console.log('another');\n`);
  expect(await help('once', root)).toBe('another\n');
  expect(made('once')).toHaveLength(2);
});

it('processes that compile one at once leave one; its threads are compiled with it', async () => {
  const said = await Promise.all([1, 2, 3].map(() => help('together')));
  expect(new Set(said).size).toBe(1);
  const [program, ...others] = made('together');
  expect(others).toEqual([]);
  const files = readdirSync(join(folder, 'together', program ?? ''), { recursive: true });
  expect(files).toEqual(
    expect.arrayContaining(['src/app/openwop.mjs', 'src/adapters/postgres/pglite-worker.mjs']),
  );
});

it('what a killed process left half made is never run, and goes with programs of old code', async () => {
  mkdirSync(join(folder, 'killed'));
  await until(() => isKilledOver('killed', () => true), 'a kill hits an empty draft');
  await until(
    () => isKilledOver('killed', (files) => files.some((path) => path.endsWith('.mjs'))),
    'a kill hits a draft that is half made',
  );
  expect(await help('killed')).toContain('Usage: openwop');
  const old = new Date(0);
  for (const name of made('killed')) utimesSync(join(folder, 'killed', name), old, old);
  rmSync(join(folder, 'killed', made('killed').find((name) => !name.includes('.')) ?? ''), {
    recursive: true,
  });
  await help('killed');
  expect(made('killed')).toEqual([expect.stringMatching(/^program-[0-9a-f]{32}$/)]);
});

it('a program that somebody took of is made again, by whoever starts next', async () => {
  await help('taken');
  const [program = ''] = made('taken');
  for (const path of ['src/app/openwop.mjs', 'src/adapters/postgres/pglite-worker.mjs', '']) {
    rmSync(join(folder, 'taken', program, path), { recursive: true });
    if (path === '') mkdirSync(join(folder, 'taken', program));
    const said = await Promise.all([1, 2, 3].map(() => help('taken')));
    expect(new Set(said).size).toBe(1);
    expect(readdirSync(join(folder, 'taken', program), { recursive: true })).toEqual(
      expect.arrayContaining(['src/app/openwop.mjs', 'src/adapters/postgres/pglite-worker.mjs']),
    );
    expect(made('taken')).toEqual([program]);
  }
});

it('one that is started stays; another’s files in the cache do, too', async () => {
  await help('kept');
  const [program = ''] = made('kept');
  const others = ['program-of-another', 'program-0123', `${program}.txt`];
  for (const name of others) mkdirSync(join(folder, 'kept', name));
  const old = new Date(Date.now() - 30 * 24 * 3600 * 1000);
  for (const name of [program, ...others]) utimesSync(join(folder, 'kept', name), old, old);
  await help('kept');
  await help('kept', checkout('beside', `console.log('beside');\n`));
  expect(made('kept')).toEqual(expect.arrayContaining([program, ...others]));
  expect(made('kept')).toHaveLength(2 + others.length);
});

it('the checkout and the cache may have any name', async () => {
  const odd = `a b%20#c'"$&*?[1]\u{1f9ca}`;
  const root = checkout(odd, '');
  expect(await help(odd, root)).toContain('Usage: openwop');
  // Its database, in a thread of its own, and whatever it finds by where its source lies.
  const rebuild = [join(root, 'src/app/launch.js'), 'rebuild'];
  const data = { OPENWOP_DATA_DIR: join(folder, odd, 'data'), TEMPORAL_ADDRESS: '127.0.0.1:9' };
  await copyDatabase(CACHE_DIR, join(data.OPENWOP_DATA_DIR, 'postgres'));
  const { stdout } = await promisify(execFile)(process.execPath, rebuild, {
    env: { ...env(odd), ...data },
  });
  expect(stdout).toContain('0 rebuilt, 0 refused');
});

it('a cache that cannot be written is told in a sentence', async () => {
  writeFileSync(join(folder, 'file'), '');
  const failed = help('file');
  await expect(failed).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringMatching(
      /^Programs cannot be kept in .*file \(.*\)\. Set OPENWOP_CACHE_DIR to a folder .*\.\n$/,
    ) as unknown,
  });
});

it('[I107] a cache that others may write is refused in a sentence, and what they put there does not run', async () => {
  await help('shared');
  chmodSync(join(folder, 'shared'), 0o777);
  const refused = help('shared');
  await expect(refused).rejects.toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(
      /^Programs cannot be kept in .*shared \(others may put programs there: everybody may write in .*shared \(chmod go-w closes it\)\)\. Set OPENWOP_CACHE_DIR to a folder that you can write, and nobody else\.\n$/,
    ) as unknown,
  });
});

it('[I107] what it makes is for its user alone, whatever the umask', async () => {
  const launch = join(ROOT, 'src/app/launch.js');
  mkdirSync(join(folder, 'open'), { mode: 0o755 });
  const command = `umask 0; exec "${process.execPath}" "${launch}" openwop --help`;
  await promisify(execFile)('/bin/sh', ['-c', command], { env: env('open') });
  const files = readdirSync(join(folder, 'open'), { recursive: true, encoding: 'utf8' });
  expect(files.length).toBeGreaterThan(1);
  expect(files.filter((name) => statSync(join(folder, 'open', name)).mode & 0o077)).toEqual([]);
});

it('an error names the line of the source', async () => {
  const args = [join(ROOT, 'src/app/launch.js'), 'rebuild'];
  const failed = promisify(execFile)(process.execPath, args, {
    env: { ...env('lines'), OPENWOP_DATA_DIR: '/dev/null/none' },
  });
  await expect(failed).rejects.toMatchObject({
    stderr: expect.stringMatching(/src\/.*\.ts:\d+/) as unknown,
  });
});

it('what is no program of its folder is refused in a sentence, and nothing runs', async () => {
  for (const name of ['', 'nothing', '../cli/cli', 'openwop-bin']) {
    const args = [join(ROOT, 'src/app/launch.js'), name];
    await expect(
      promisify(execFile)(process.execPath, args, { env: env('none') }),
    ).rejects.toMatchObject({
      code: 2,
      stderr: `No program "${name}": name one of src/app, as \`npm start\` does.\n`,
    });
  }
});
