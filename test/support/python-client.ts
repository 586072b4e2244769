// The protocol's own Python client, in an environment of its own in the cache; nothing but this test needs it.
import { spawnSync } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { CACHE_DIR } from './temporal.ts';
import { patient } from './machine.ts';

const VERSION = '1.8.0';
/** Longest time in ms for one step of its installation. */
const STEP_LIMIT_MS = patient(120_000);
/** Behind the last step: a half-made environment has no such file. */
const PLACE = join(CACHE_DIR, `openwop-client-${VERSION}`);
const PYTHON = join(PLACE, 'bin', 'python');
const CHECK = 'import sys, openwop_client; assert sys.version_info >= (3, 10)';

function runs(command: string, ...args: string[]): boolean {
  return spawnSync(command, args, { timeout: STEP_LIMIT_MS, stdio: 'ignore' }).status === 0;
}

/** The interpreter that has it, or why there is none on this machine. */
export function pythonClient(): { readonly python: string } | { readonly missing: string } {
  if (existsSync(PYTHON) && runs(PYTHON, '-c', CHECK)) return { python: PYTHON };
  rmSync(PLACE, { recursive: true, force: true });
  const install = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--no-input'];
  const isThere =
    runs('python3', '-c', 'import sys; assert sys.version_info >= (3, 10)') &&
    runs('python3', '-m', 'venv', PLACE) &&
    runs(PYTHON, ...install, `openwop-client==${VERSION}`) &&
    runs(PYTHON, '-c', CHECK);
  return isThere
    ? { python: PYTHON }
    : { missing: `no python3 (3.10 or later) that can have openwop-client ${VERSION}` };
}
