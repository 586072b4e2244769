// A program at a pseudo-terminal of a given width, by Python's `pty`: what it shows, and keys for it.
import { spawn, spawnSync } from 'node:child_process';
import { until } from './host.ts';

/** Python relays: its input are the keys, its output the screen, its exit code that of the program. */
const RELAY = `
import fcntl, os, pty, select, struct, sys, termios
columns = int(sys.argv[1])
child, master = pty.fork()
if child == 0:
    size = struct.pack('HHHH', 50, columns, 0, 0)
    fcntl.ioctl(0, termios.TIOCSWINSZ, size)
    os.execvp(sys.argv[2], sys.argv[2:])
sources = [0, master]
while True:
    ready, _, _ = select.select(sources, [], [])
    if master in ready:
        try:
            text = os.read(master, 65536)
        except OSError:
            break
        if not text:
            break
        os.write(1, text)
    if 0 in ready:
        keys = os.read(0, 65536)
        if not keys:
            sources = [master]
        else:
            os.write(master, keys)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
`;

/** Why there is none here, where there is none. */
export function noTerminal(): string | undefined {
  const { status } = spawnSync('python3', ['-c', 'import os, pty; os.waitstatus_to_exitcode']);
  return status === 0 ? undefined : 'no python3 (3.9 or later) with pty on this machine';
}

export interface TerminalSession {
  /** All that was shown so far, escape codes included, with \n for each line's end. */
  shown(): string;
  /** Resolves when the text is shown behind what was there at the last call. */
  sees(text: string): Promise<void>;
  keys(text: string): void;
  readonly exited: Promise<number>;
}

export function openTerminal(
  columns: number,
  command: readonly string[],
  options: { readonly cwd: string; readonly env: NodeJS.ProcessEnv },
): TerminalSession {
  const child = spawn('python3', ['-c', RELAY, String(columns), ...command], {
    ...options,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let raw = '';
  let seen = 0;
  child.stdout.setEncoding('utf8').on('data', (text: string) => (raw += text));
  const shown = (): string => raw.replaceAll('\r\n', '\n');
  return {
    shown,
    async sees(text) {
      await until(() => shown().indexOf(text, seen) >= 0, `"${text}" is shown:\n${shown()}`);
      seen = shown().indexOf(text, seen) + text.length;
    },
    keys: (text) => void child.stdin.write(text),
    exited: new Promise((resolve) => child.once('close', (code) => resolve(code ?? -1))),
  };
}
