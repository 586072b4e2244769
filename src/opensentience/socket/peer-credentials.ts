// Who is at the other end of a Unix socket, by the kernel's word (seed 004 §5.1 "bound to the launched process"): Linux
// tells pid and user of whoever connected. Elsewhere, or where koffi is not installed, nothing is known.
import { createRequire } from 'node:module';
import type { Socket } from 'node:net';
import type * as Koffi from 'koffi';
import type { PeerCredentials } from '../parts.ts';

/** Linux: level SOL_SOCKET, option SO_PEERCRED; the answer is pid, uid, gid, 4 bytes each. */
const SOL_SOCKET = 1;
const SO_PEERCRED = 17;
const UCRED_BYTES = 12;

type GetSocketOption = (
  fd: number,
  level: number,
  option: number,
  value: Buffer,
  length: [number],
) => number;

let getSocketOption: GetSocketOption | undefined | 'not looked for' = 'not looked for';

function load(): GetSocketOption | undefined {
  if (process.platform !== 'linux') return undefined;
  try {
    const koffi = createRequire(import.meta.url)('koffi') as typeof Koffi;
    // The C library that Node itself runs on: glibc or musl.
    return koffi.load(null).func('int getsockopt(int, int, int, _Out_ void*, _Inout_ uint32*)');
  } catch {
    // Optional dependency: without it tokens are bound by their secrecy alone.
    return undefined;
  }
}

/** Undefined where neither platform nor socket tells. For a Unix socket that was accepted; never throws. */
export function peerCredentials(socket: Socket): PeerCredentials | undefined {
  const fd = (socket as unknown as { _handle?: { fd?: number } | null })._handle?.fd;
  if (fd === undefined || fd < 0) return undefined;
  if (getSocketOption === 'not looked for') getSocketOption = load();
  if (!getSocketOption) return undefined;
  const answer = Buffer.alloc(UCRED_BYTES);
  const length: [number] = [UCRED_BYTES];
  const failed = getSocketOption(fd, SOL_SOCKET, SO_PEERCRED, answer, length) !== 0;
  const pid = answer.readInt32LE(0);
  // pid 0 is a process outside this pid name space, and what other socket families give.
  if (failed || length[0] < UCRED_BYTES || pid <= 0) return undefined;
  return { pid, uid: answer.readUInt32LE(4) };
}
