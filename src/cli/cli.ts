// What each command is given: the host, the two streams, the terminal, and how its end is told.
import { randomUUID } from 'node:crypto';
import type { Readable } from 'node:stream';
import { printableJson, printableLines } from '../words/printable.js';
import type { ReplayReport } from '../rules/replayed.ts';
import { CliFault, type ExitCode } from './faults.ts';
import { createHostClient, type HostAddress, type HostClient } from './host-client.ts';
import type { Screen } from './terminal.ts';

/** How these commands are called, in what is printed to be copied. */
export const CALLED = 'npm run -s openwop --';

export interface JsonFlag {
  readonly json?: true;
}

export interface CliParts extends HostAddress {
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
  /** Of `out`; absent: no terminal reads it. */
  readonly screen?: Screen;
  /** Absent: nothing can be read. */
  readonly input?: Readable;
  /** Somebody sits at the input and sees what goes to `err`: questions may be asked. */
  readonly isAttended?: boolean;
  /** Aborted by Ctrl-C. */
  readonly signal?: AbortSignal;
  /** Replays the file of a run (absolute path), without the host. Absent: nothing can. */
  readonly replay?: (path: string, signal: AbortSignal) => Promise<ReplayReport>;
  /** Runs the upgrade check in this checkout, which says what it finds; its exit code. Absent: nothing can. */
  readonly upgradeCheck?: (args: readonly string[], signal: AbortSignal) => Promise<number>;
  /** The program and its first arguments, by which a shell's completion calls it. */
  readonly self?: readonly string[];
}

export interface Cli {
  readonly client: HostClient;
  /** A client that Ctrl-C does not reach: for the last thing that is said. */
  readonly afresh: () => HostClient;
  readonly screen: Screen;
  readonly signal: AbortSignal;
  readonly self: readonly string[];
  readonly input?: Readable;
  readonly isAttended: boolean;
  /** Replays the file of a run. */
  readonly replay: (path: string) => Promise<ReplayReport>;
  /** Runs the upgrade check in this checkout; its exit code. */
  readonly upgradeCheck: (args: readonly string[]) => Promise<number>;
  /** Text as it is, to who reads the result. */
  readonly out: (text: string) => void;
  /** Lines for a human that are no result, without what a terminal would obey. */
  readonly note: (text: string) => void;
  /** The result: one JSON document, or words. */
  readonly tell: (flags: JsonFlag, document: unknown, words: () => string) => void;
  /** The command ends with this code when it is done. */
  readonly ends: (code: ExitCode) => void;
}

export function cliOf(parts: CliParts, ends: (code: ExitCode) => void): Cli {
  const signal = parts.signal ?? new AbortController().signal;
  const { out, err, screen = { colour: false }, self = [], isAttended = false, input } = parts;
  return {
    client: createHostClient(parts, signal),
    afresh: () => createHostClient(parts, new AbortController().signal),
    replay: (path) => {
      if (!parts.replay)
        throw new CliFault('Nothing here can replay a run.', { code: 'no_replay' });
      return parts.replay(path, signal);
    },
    upgradeCheck: (args) => {
      if (!parts.upgradeCheck)
        throw new CliFault('Nothing here can replay runs.', { code: 'no_replay' });
      return parts.upgradeCheck(args, signal);
    },
    ...{ screen, signal, self, isAttended, input, out, ends },
    note: (text) => err(`${printableLines(text)}\n`),
    tell: ({ json }, document, words) => out(`${json ? printableJson(document, 2) : words()}\n`),
  };
}

/** Names one message: what is sent again with it is done once. */
export function freshKey(): string {
  return `cli-${randomUUID()}`;
}

/** Of an option that may be given more than once. */
export function collect(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text];
}
