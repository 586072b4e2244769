// Programs that stand in another's place on a PATH: for what is done with what they say.
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';

/** An executable shell script. */
export async function fakeProgram(path: string, script: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, `#!/bin/sh\n${script}\n`);
  await chmod(path, 0o755);
}

/** A file that answers `--version` and nothing else. */
export function fakeTemporal(path: string, versionLine: string): Promise<void> {
  return fakeProgram(path, `echo "${versionLine}"`);
}
