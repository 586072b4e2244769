// Questions to the person at the terminal, one line each. They go where the result does not, and no key is obeyed but
// Enter: the terminal's own line editing serves.
import { createInterface } from 'node:readline';
import type { Cli } from './cli.ts';
import { EXIT, CliFault } from './faults.ts';
import { interrupted } from './host-client.ts';
import { wrapped } from './terminal.ts';

export interface Prompt {
  /** The line that was entered, trimmed. Throws CliFault when nothing comes any more, or on Ctrl-C. */
  ask(question: string): Promise<string>;
  close(): void;
}

export function openPrompt({ input, note, signal, screen }: Cli): Prompt {
  if (!input) throw nothingSent();
  const reader = createInterface({ input, terminal: false, signal });
  const lines = reader[Symbol.asyncIterator]();
  return {
    async ask(question) {
      note(wrapped(question, '', screen).join('\n'));
      const line = await lines.next();
      if (signal.aborted) throw interrupted();
      if (line.done) throw nothingSent();
      return line.value.trim();
    },
    close: () => reader.close(),
  };
}

export function nothingSent(): CliFault {
  return new CliFault('Nothing was sent.', { code: 'not_answered', exitCode: EXIT.usage });
}
