// Prints a run's events as they come, one line each; reasoning is written on as its pieces arrive.
import { eventRow } from '../rules/events.ts';
import type { JsonObject } from '../rules/json.ts';
import type { LogRow } from '../ports/log.ts';

/** A line stays readable in a terminal. */
const SHOWN_CHARS = 140;
const TYPE_COLUMN = 28;

export interface RunPrinter {
  /** Rows in order. */
  print(rows: readonly LogRow[]): void;
}

/** `write` gets text with its line ends. */
export function createRunPrinter(write: (text: string) => void): RunPrinter {
  let streaming = false;
  function printRow(row: LogRow): void {
    const payload = JSON.parse(row.payload) as JsonObject;
    if (eventRow(row.type).part === 'reasoning-piece') {
      const { delta } = payload as { delta?: string };
      write(`${streaming ? '' : lineStart(row)}${delta ?? ''}`);
      streaming = true;
      return;
    }
    if (streaming) write('\n');
    streaming = false;
    write(`${lineStart(row)}${essence(payload)}\n`);
  }
  return { print: (rows) => rows.forEach(printRow) };
}

function lineStart({ sequence, type, nodeId }: LogRow): string {
  return `  ${String(sequence).padStart(4)}  ${type.padEnd(TYPE_COLUMN)}${nodeId ? `[${nodeId}] ` : ''}`;
}

/** What a reader wants of a payload: the fields that say what happened, cut to a line. */
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
];

function essence(payload: JsonObject): string {
  const shown = TELLING.flatMap((name) => {
    const value = payload[name];
    return value === undefined
      ? []
      : [`${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`];
  });
  const text = shown.join(' ').replaceAll(/\s+/g, ' ');
  return text.length > SHOWN_CHARS ? `${text.slice(0, SHOWN_CHARS)}…` : text;
}
