// A run's events as a terminal shows them, one line each; reasoning is written on as its pieces arrive. `npm start` and
// the command line print the same.
import { eventRow } from '../rules/events.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../rules/json.ts';
import { TERMINAL_STATUSES, type RunStatus } from '../rules/status.ts';
import { printable, printableLines } from './printable.js';

/** A line stays readable in a terminal. Why a run ended is shown whole: somebody has to mend it. */
const SHOWN_CHARS = 140;
const SHOWN_CHARS_OF_END = 4_096;
const TYPE_COLUMN = 28;

export interface PrintedEvent {
  readonly sequence: number;
  readonly type: string;
  readonly nodeId?: string;
  readonly payload: JsonValue;
  /** The payload was erased: what stands there are ids. */
  readonly erased?: true;
}

export interface RunPrinter {
  /** Events in order. */
  print(events: readonly PrintedEvent[]): void;
  /** Ends a line that is being written on: something else is printed next. */
  endLine(): void;
}

/** `write` gets text with its line ends. */
export function createRunPrinter(write: (text: string) => void): RunPrinter {
  let streaming = false;
  const endLine = (): void => {
    if (streaming) write('\n');
    streaming = false;
  };
  function printEvent(event: PrintedEvent): void {
    const payload = isJsonObject(event.payload) ? event.payload : {};
    if (eventRow(event.type).part === 'reasoning-piece') {
      const { delta } = payload;
      const text = typeof delta === 'string' ? printableLines(delta) : '';
      write(`${streaming ? '' : lineStart(event)}${text}`);
      streaming = true;
      return;
    }
    endLine();
    const shown = `${event.erased ? '(erased) ' : ''}${essence(event.type, payload)}`;
    write(`${`${lineStart(event)}${shown}`.trimEnd()}\n`);
  }
  return { print: (events) => events.forEach(printEvent), endLine };
}

/** What an event means to somebody who follows: the run is over, or a question stands. */
export function turnOf(type: string): { readonly ended?: RunStatus; readonly asks: boolean } {
  const { part, run } = eventRow(type);
  return {
    asks: part === 'wait-opens' || part === 'wait-asks',
    ...(part === 'run-ends' && run !== null && TERMINAL_STATUSES.has(run) ? { ended: run } : {}),
  };
}

function lineStart({ sequence, type, nodeId }: PrintedEvent): string {
  const node = nodeId ? `[${printable(nodeId)}] ` : '';
  return `  ${String(sequence).padStart(4)}  ${printable(type).padEnd(TYPE_COLUMN)}${node}`;
}

/** What a reader wants of a payload: the fields that say what happened. */
const TELLING = [
  'toolId',
  'toolName',
  'kind',
  'decision',
  'confidence',
  'status',
  'outcome',
  'reason',
  'code',
  'error',
  'action',
  'now',
];

function essence(type: string, payload: JsonObject): string {
  const shown = TELLING.flatMap((name) => {
    const value = payload[name];
    const isTold = name === 'toolName' && value === payload.toolId;
    return value === undefined || isTold
      ? []
      : [`${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`];
  });
  const text = printable(shown.join(' ').replaceAll(/\s+/g, ' '));
  const most = eventRow(type).part === 'run-ends' ? SHOWN_CHARS_OF_END : SHOWN_CHARS;
  return text.length > most ? `${text.slice(0, most)}…` : text;
}
