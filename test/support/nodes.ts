// The versions of Node that the product is tested on beside the one that runs the tests, from the npm package `node`.
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { CACHE_DIR } from './temporal.ts';

/** Versions with commas between them, such as `20.19.0,22,24,26`. */
const VERSIONS = process.env.OPENWOP_TEST_NODES?.split(',').map((version) => version.trim());

export interface TestedNode {
  readonly version: string;
  readonly major: number;
  /** Path of its program. The first time it is installed into the cache folder, which takes the network. */
  readonly obtain: () => Promise<string>;
}

/** Those of OPENWOP_TEST_NODES; absent or empty: the one that runs this. */
export function testedNodes(): readonly TestedNode[] {
  const named = (VERSIONS ?? []).filter((version) => version !== '');
  const own = process.versions.node;
  if (named.length === 0) return [tested(own, async () => process.execPath)];
  return named.map((version) => tested(version, () => installed(version)));
}

function tested(version: string, obtain: () => Promise<string>): TestedNode {
  const major = Number(version.split('.')[0]);
  if (!/^\d+(\.\d+){0,2}$/.test(version)) throw new Error(`"${version}" is no version of Node`);
  return { version, major, obtain };
}

/** A folder with its last name is whole: it is filled under another one. */
async function installed(version: string): Promise<string> {
  const folder = join(CACHE_DIR, `node-${version}`);
  const program = join(folder, 'node_modules/node/bin/node');
  if (existsSync(program)) return program;
  const draft = `${folder}.${process.pid}.${randomBytes(4).toString('hex')}`;
  await mkdir(draft, { recursive: true });
  try {
    await writeFile(join(draft, 'package.json'), '{}');
    // The package has no program until its install script has fetched it; a user's settings of npm may switch scripts off.
    const options = ['--no-audit', '--no-fund', '--loglevel=error', '--ignore-scripts=false'];
    await promisify(execFile)('npm', ['i', `node@${version}`, ...options], { cwd: draft });
    await rename(draft, folder).catch((error: unknown) => {
      // Another process was faster.
      if (!existsSync(program)) throw error;
    });
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
  return program;
}
