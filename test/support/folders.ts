// Temporary folders that go with the test file that asked for them.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { atEndOfFile } from './at-end.ts';

/** `name`: what it holds. */
export async function temporaryFolder(name: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), `openwop-${name}-`));
  atEndOfFile(() => rm(folder, { recursive: true, force: true }));
  return folder;
}
