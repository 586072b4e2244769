// A log of bounded size (seed 004 §5.1 "must not be logged", §7.3 "bounded outputs"): one file and one predecessor,
// mode 0600. A full disk costs lines, never the process.
import { closeSync, fstatSync, mkdirSync, openSync, renameSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';

export interface LogFile {
  readonly path: string;
  /** Whole lines, with line ends. Nothing is written after close. */
  append(text: string): void;
  close(): void;
}

/** `maxBytes` of the file, and again of its predecessor `<path>.1`. */
export function openLogFile(path: string, maxBytes: number): LogFile {
  let file: { fd: number; bytes: number } | undefined;
  let closed = false;

  function open(): { fd: number; bytes: number } {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    const fd = openSync(path, 'a', 0o600);
    return { fd, bytes: fstatSync(fd).size };
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
