// Where Core's Unix socket lives (seed 004 §1.1 "local security via filesystem permissions"): a folder of mode 0700 that
// is this user's, one socket per Core. The system bounds the path's length, so a deep data folder gets a temporary one.
import { chmodSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { randomBytes } from 'node:crypto';
import { HostError } from '../../rules/errors.ts';
import { isThere } from '../../system/processes.ts';

/** Bytes of a socket's path that every system takes (macOS: 104 with the closing zero). */
export const MAX_SOCKET_PATH_BYTES = 103;

export interface SocketPlace {
  readonly path: string;
  /** Removes the socket, and the folder where it was made for it. */
  remove(): void;
}

/** Throws HostError config_invalid for what is no folder of this user. */
export function placeSocket(folder: string): SocketPlace {
  const name = `core-${process.pid}-${randomBytes(3).toString('hex')}.sock`;
  const path = join(folder, name);
  if (Buffer.byteLength(path) > MAX_SOCKET_PATH_BYTES) {
    // Made with mode 0700.
    const fresh = mkdtempSync(join(shortTemporaryFolder(), 'openwop-'));
    const remove = () => rmSync(fresh, { recursive: true, force: true });
    return { path: join(fresh, name), remove };
  }
  takeFolder(folder);
  return { path, remove: () => rmSync(path, { force: true }) };
}

/** The longest name that follows it is some 40 bytes. */
function shortTemporaryFolder(): string {
  return Buffer.byteLength(tmpdir()) <= MAX_SOCKET_PATH_BYTES - 48 ? tmpdir() : '/tmp';
}

/** Removes the sockets of Cores that were killed. */
function takeFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const stats = lstatSync(folder);
  if (!stats.isDirectory() || stats.uid !== process.getuid?.())
    throw new HostError('config_invalid', {
      reason: `The socket's folder ${folder} is no folder of this user.`,
    });
  chmodSync(folder, 0o700);
  for (const name of readdirSync(folder)) {
    const pid = /^core-(\d+)-[0-9a-f]{6}\.sock$/.exec(name)?.[1];
    if (pid !== undefined && !isThere(Number(pid))) rmSync(join(folder, name), { force: true });
  }
}
