// A page of docs/ as a walk: its blocks, and terminals that run them as a reader would.
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { until } from './host.ts';
import { patient } from './machine.ts';

/** A fenced block: `sh` (a command that ends), `sh terminal-N` (its last command stays), or a file with its path. */
export interface Block {
  /** Heading of level 2 that it stands under. */
  readonly section: string;
  readonly language: string;
  /** `terminal-N` or a path; '' for a plain block. */
  readonly place: string;
  readonly text: string;
}

const FENCE = /^## (?<section>.+)$|^```(?<language>\w+) ?(?<place>\S*)\n(?<text>[\s\S]*?)^```$/gm;

export function blocksOf(markdown: string): readonly Block[] {
  let section = '';
  return [...markdown.matchAll(FENCE)].flatMap(({ groups = {} }) => {
    if (groups.section !== undefined) section = groups.section;
    const { language, place = '', text = '' } = groups;
    return language === undefined ? [] : [{ section, language, place, text }];
  });
}

export interface Ran {
  /** Exit code or signal, or `no end`. */
  readonly code: number | string | null;
  readonly output: string;
  /** Of the standard output alone. */
  readonly result: string;
}

const ENDS_WITHIN_MS = patient(120_000);
/** Also where something is obtained first. */
const STARTS_WITHIN_MS = patient(90_000);
/** As the pages have it, and what npm starts by it: npm itself takes a third of the CPU of each command. */
const BY_NPM = 'npm run -s openwop --';
const WITHOUT_NPM = 'node src/app/launch.js openwop';
/** What a reader's shells keep from block to block. */
const SHELL = '.shell';
const TERMINALS = '.terminals';

export class Walk {
  readonly #folder: string;
  readonly #env: Readonly<Record<string, string | undefined>>;
  readonly #byNpm: boolean;
  readonly #terminals = new Map<string, Terminal>();

  /** `byNpm`: the command line is called as the page has it. */
  constructor(
    folder: string,
    env: Readonly<Record<string, string | undefined>>,
    { byNpm }: { readonly byNpm: boolean },
  ) {
    this.#folder = folder;
    this.#env = env;
    this.#byNpm = byNpm;
  }

  writeFile(path: string, text: string): void {
    const target = join(this.#folder, path);
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, text);
  }

  /** Runs to its end; what it printed. Throws with all of it when a command fails. */
  async command(text: string, more: Readonly<Record<string, string>> = {}): Promise<string> {
    const { code, output } = await this.ran(text, more);
    if (code !== 0) throw new Error(`${text}\nended with ${code}:\n${output}`);
    return output;
  }

  /** Runs to its end, whatever that is; the first command that fails ends the block. */
  async ran(text: string, more: Readonly<Record<string, string>> = {}): Promise<Ran> {
    const keep = `trap '{ declare -p RUN FORK OPENWOP_API_KEY 2>/dev/null || true; declare -f; } > ${SHELL}' EXIT`;
    const said = this.#byNpm ? text : text.replaceAll(BY_NPM, WITHOUT_NPM);
    const script = `set -euo pipefail\n${this.#kept(SHELL)}\n${keep}\n${said}`;
    const one = this.#spawn(script, more);
    const code = await Promise.race([
      one.exited,
      new Promise<string>((resolve) => setTimeout(resolve, ENDS_WITHIN_MS, 'no end').unref()),
    ]);
    if (code === 'no end') await one.stop('SIGKILL');
    return { code, output: one.output(), result: one.result() };
  }

  /** Stops what the terminal runs, as Ctrl-C does, and runs the block, whose last command stays. */
  async terminal(name: string, text: string): Promise<Terminal> {
    await this.stop(name);
    const lines = text.trimEnd().replaceAll('\\\n', ' ').split('\n');
    const last = lines.pop() ?? '';
    const script = `set -euo pipefail\n${this.#kept(TERMINALS)}\n${lines.join('\n')}\nexport -p > ${TERMINALS}\n${last}`;
    const terminal = this.#spawn(script, {});
    this.#terminals.set(name, terminal);
    return terminal;
  }

  async stop(name: string): Promise<void> {
    await this.#terminals.get(name)?.stop('SIGINT');
    this.#terminals.delete(name);
  }

  async end(): Promise<void> {
    for (const name of [...this.#terminals.keys()].reverse()) await this.stop(name);
  }

  #kept(file: string): string {
    return existsSync(join(this.#folder, file)) ? `. ./${file}` : '';
  }

  #spawn(script: string, more: Readonly<Record<string, string>>): Terminal {
    const child = spawn('bash', ['-c', script], {
      cwd: this.#folder,
      env: { ...this.#env, ...more },
      stdio: ['ignore', 'pipe', 'pipe'],
      // A group of its own, which Ctrl-C reaches whole.
      detached: true,
    });
    return new Terminal(child);
  }
}

export class Terminal {
  readonly exited: Promise<number | string | null>;
  #output = '';
  #result = '';
  readonly #child: ChildProcess;

  constructor(child: ChildProcess) {
    this.#child = child;
    child.stdout?.on('data', (piece: Buffer) => void (this.#result += piece.toString()));
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (piece: Buffer) => void (this.#output += piece.toString()));
    this.exited = new Promise((resolve) => {
      child.once('close', (code, signal) => resolve(signal ?? code));
    });
  }

  output(): string {
    return this.#output;
  }

  /** What went to the standard output. */
  result(): string {
    return this.#result;
  }

  /** The first group of `pattern` in what was printed, as soon as it is there. */
  async line(pattern: RegExp): Promise<string> {
    await until(() => pattern.test(this.#output) || this.#ended(), `${pattern} is printed`, {
      limitMs: STARTS_WITHIN_MS,
    });
    const found = pattern.exec(this.#output);
    if (!found) throw new Error(`no ${pattern} in:\n${this.#output}`);
    return found[1] ?? '';
  }

  async stop(signal: NodeJS.Signals): Promise<void> {
    if (!this.#ended() && this.#child.pid !== undefined) process.kill(-this.#child.pid, signal);
    await this.exited;
  }

  #ended(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }
}
