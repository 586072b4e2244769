// The Unix socket's file (seed 004 §1.1 "local security via filesystem permissions"): in a folder that is this user's
// alone, in place of one that a dead process left, never in place of anything else.
import { chmod, lstat, mkdir, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { dirname } from 'node:path';
import { HostError } from '../../rules/errors.ts';

/** Longest path of a socket in bytes that Linux and macOS both take. */
const MAX_PATH_BYTES = 103;
/** How long another process may take to answer on the socket before it counts as dead. */
const PROBE_MS = 1_000;

/** Throws HostError: config_invalid, or data_folder_in_use when another process answers there. */
export async function prepareSocketFile(path: string): Promise<void> {
  if (Buffer.byteLength(path) > MAX_PATH_BYTES)
    throw invalid(path, `is longer than ${MAX_PATH_BYTES} bytes: the limit of Unix sockets`);
  const folder = dirname(path);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const stats = await lstat(folder);
  if (!stats.isDirectory()) throw invalid(folder, 'is no folder');
  if (stats.uid !== process.getuid?.()) throw invalid(folder, 'belongs to another user');
  await chmod(folder, 0o700);
  const file = await lstat(path).catch(() => undefined);
  if (!file) return;
  if (!file.isSocket()) throw invalid(path, 'is there already and is no socket');
  if (await answers(path))
    throw new HostError('data_folder_in_use', {
      reason: `Another process listens on ${path}.`,
    });
  await rm(path, { force: true });
}

function invalid(path: string, what: string): HostError {
  return new HostError('config_invalid', { reason: `The socket's path ${path} ${what}.` });
}

function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    const done = (alive: boolean): void => {
      socket.destroy();
      resolve(alive);
    };
    socket.setTimeout(PROBE_MS, () => done(true));
    socket.once('connect', () => done(true));
    socket.once('error', () => done(false));
  });
}
