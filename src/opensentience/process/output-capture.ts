// What a launched agent writes to stdout and stderr (seed 004 §5.1, §7): taken line by line, bounded in length and
// rate, without known secrets and session tokens, into the agent's log file. It is never parsed.
import type { Readable } from 'node:stream';
import type { Redactor } from '../../rules/redaction.ts';
import { Pace } from '../session/pace.ts';
import type { LogFile } from './log-file.ts';

/** Longest line, in UTF-16 units; the rest of a longer one is dropped. */
export const MAX_LINE_LENGTH = 8_192;
/** Characters per second that an agent may write on average, and at once; above it lines are dropped and counted. */
const OUTPUT_PER_SECOND = 64 * 1024;
export const OUTPUT_BURST = 512 * 1024;
/** At the cut of a long line this may be the beginning of a token. */
const BEGUN_TOKEN = /[A-Za-z0-9_-]{1,42}$/;

export interface CaptureOptions {
  readonly redactor: Redactor;
  /** Takes session tokens out. */
  readonly withoutTokens: (text: string) => string;
  readonly file: LogFile;
  /** Gets each line that the file gets. */
  readonly onLine?: (stream: OutputName, line: string) => void;
  readonly now?: () => number;
}

export type OutputName = 'stdout' | 'stderr';

export interface OutputCapture {
  attach(stream: Readable, name: OutputName): void;
  /** Core's own line among the agent's. */
  note(text: string): void;
}

export function createOutputCapture(options: CaptureOptions): OutputCapture {
  const { redactor, withoutTokens, file, onLine, now = Date.now } = options;
  const pace = new Pace({ perSecond: OUTPUT_PER_SECOND, burst: OUTPUT_BURST }, now());
  let dropped = 0;

  const write = (name: string, line: string) =>
    file.append(`${new Date(now()).toISOString()} ${name} ${line}\n`);

  function take(name: OutputName, { text, cut }: Line): void {
    if (pace.take(now(), text.length + 1) > 0) {
      dropped++;
      return;
    }
    if (dropped > 0) write('core', `${dropped} lines dropped: more output than permitted`);
    dropped = 0;
    const clean = cut ? cutClean(text) : redactor.text(withoutTokens(text));
    const line = printable(clean);
    write(name, line);
    onLine?.(name, line);
  }

  /** A secret that the cut goes through is left out, not shown by half. */
  function cutClean(text: string): string {
    const shown = redactor.stream().push(withoutTokens(text));
    return `${shown.replace(BEGUN_TOKEN, '')}…`;
  }

  return {
    note: (text) => write('core', text),
    attach(stream, name) {
      const lines = createLineSplitter((line) => take(name, line));
      stream.setEncoding('utf8');
      stream.on('data', (text: string) => lines.push(text));
      stream.on('end', () => lines.end());
      // A pipe that breaks has said what it had to say.
      stream.on('error', () => lines.end());
    },
  };
}

interface Line {
  readonly text: string;
  /** It was longer. */
  readonly cut: boolean;
}

function createLineSplitter(take: (line: Line) => void) {
  let held = '';
  let cut = false;
  const finish = () => {
    if (held !== '' || cut) take({ text: held.replace(/\r$/, ''), cut });
    held = '';
    cut = false;
  };
  const hold = (text: string) => {
    const room = MAX_LINE_LENGTH - held.length;
    if (text.length > room) cut = true;
    held += text.slice(0, room);
  };
  return {
    push(text: string) {
      const [first = '', ...others] = text.split('\n');
      hold(first);
      for (const next of others) {
        finish();
        hold(next);
      }
    },
    end: finish,
  };
}

/** Control characters could write over what an operator's terminal shows. */
function printable(text: string): string {
  // eslint-disable-next-line no-control-regex
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '\ufffd');
}
