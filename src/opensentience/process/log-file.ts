// A log of bounded size (seed 004 §5.1 "must not be logged", §7.3 "bounded outputs"): one file and one predecessor,
// mode 0600. A full disk costs lines, never the process.
import {
  closeSync,
  constants,
  fstatSync,
  mkdirSync,
  openSync,
  renameSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';

export interface LogFile {
  readonly path: string;
  /** Whole lines, with line ends. Nothing is written after close. */
  append(text: string): void;
  close(): void;
}

/** Neither through a link nor into a pipe, which an agent of the same user may put there: nothing is waited for. */
const { O_APPEND, O_CREAT, O_NOFOLLOW, O_NONBLOCK, O_WRONLY } = constants;
const APPEND = O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_WRONLY;

/** `maxBytes` of the file, and again of its predecessor `<path>.1`. */
export function openLogFile(path: string, maxBytes: number): LogFile {
  let file: { fd: number; bytes: number } | undefined;
  let closed = false;

  function open(): { fd: number; bytes: number } {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    const fd = openSync(path, APPEND, 0o600);
    const stats = fstatSync(fd);
    if (stats.isFile()) return { fd, bytes: stats.size };
    closeSync(fd);
    throw new Error('The log is no file.');
  }

  function close(): void {
    if (file) closeSync(file.fd);
    file = undefined;
  }

  function write(bytes: Buffer): void {
    file ??= open();
    if (file.bytes > 0 && file.bytes + bytes.length > maxBytes) {
      close();
      renameSync(path, `${path}.1`);
      file = open();
    }
    writeSync(file.fd, bytes);
    file.bytes += bytes.length;
  }

  return {
    path,
    append(text) {
      if (closed) return;
      try {
        write(Buffer.from(text).subarray(0, maxBytes));
      } catch {
        // The next line tries again with a fresh file.
        close();
      }
    },
    close() {
      closed = true;
      close();
    },
  };
}
