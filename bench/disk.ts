// What the files of a folder take.
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** By their lengths, in bytes; one that goes while they are counted counts nothing. */
export async function bytesIn(folder: string): Promise<number> {
  const entries = await readdir(folder, { withFileTypes: true, recursive: true });
  const sizes = entries
    .filter((entry) => entry.isFile())
    .map((entry) =>
      stat(join(entry.parentPath, entry.name))
        .then(({ size }) => size)
        .catch(() => 0),
    );
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}
