// Temporary folders that go with the test file that asked for them (each-file.ts).
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const folders: string[] = [];

/** `name`: what it holds. */
export async function temporaryFolder(name: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), `openwop-${name}-`));
  folders.push(folder);
  return folder;
}

/** After the last hooks of a file: what its tests opened is closed by then. */
export async function removeFolders(): Promise<void> {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true });
}
