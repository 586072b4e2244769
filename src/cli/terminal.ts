// Text for a human's terminal: tables, and strings of agents and hosts without anything that a terminal would obey.
import { printable } from '../words/printable.ts';

/** Longest text of a cell, in characters. */
const MAX_CELL = 100;
export type Cell = string | number | undefined;

/** Columns as wide as what they hold; an absent value is `-`. */
export function table(head: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const cells = [head, ...rows.map((row) => row.map(cellText))];
  const widths = head.map((_, column) => Math.max(...cells.map((row) => lengthOf(row[column]))));
  const line = (row: readonly string[]): string =>
    row
      .map((text, column) => text + ' '.repeat((widths[column] ?? 0) - lengthOf(text)))
      .join('  ')
      .trimEnd();
  return cells.map(line).join('\n');
}

/** One `name  value` per line; absent values are left out. */
export function fields(rows: readonly (readonly [string, Cell])[]): string {
  const given = rows.filter(([, value]) => value !== undefined);
  const width = Math.max(...given.map(([name]) => name.length));
  return given
    .map(([name, value]) => `${name.padEnd(width)}  ${printable(String(value))}`)
    .join('\n');
}

function cellText(cell: Cell): string {
  if (cell === undefined || cell === '') return '-';
  const characters = [...printable(String(cell))];
  return characters.length <= MAX_CELL
    ? characters.join('')
    : `${characters.slice(0, MAX_CELL - 1).join('')}…`;
}

function lengthOf(text: string | undefined): number {
  return [...(text ?? '')].length;
}
