// Text for a human's terminal: tables that become blocks where there is no room for them, and lines that are broken
// between words.
import { printable } from '../words/printable.js';

/** Longest text of a cell, in characters. */
const MAX_CELL = 100;
/** Narrower than this nothing can be laid out: lines are as they come. */
const MIN_COLUMNS = 20;

export type Cell = string | number | undefined;

export interface Screen {
  /** Absent where no terminal reads it: lines are as long as what they say. */
  readonly columns?: number;
  readonly colour: boolean;
}

export type Colour = 'red' | 'green' | 'yellow';
const CODES: Readonly<Record<Colour, string>> = { red: '31', green: '32', yellow: '33' };

function painted(text: string, colour: Colour | undefined, screen: Screen): string {
  return colour && screen.colour ? `\u001b[${CODES[colour]}m${text}\u001b[0m` : text;
}

export interface TableLook {
  readonly screen: Screen;
  /** Colour of a cell, by its place. */
  readonly colourOf?: (row: number, column: number) => Colour | undefined;
}

/**
 * Columns as wide as what they hold; an absent value is `-`. Wider than the screen: a block per row, one
 * `NAME  value` per line, without what is absent.
 */
export function table(
  head: readonly string[],
  rows: readonly (readonly Cell[])[],
  { screen, colourOf }: TableLook,
): string {
  const cells = [head, ...rows.map((row) => row.map(cellText))];
  const widths = head.map((_, column) => Math.max(...cells.map((row) => lengthOf(row[column]))));
  const width = widths.reduce((sum, each) => sum + each + 2, -2);
  if (width > (screen.columns ?? Infinity)) {
    const blocks = rows.map((row, at) => {
      const given = head.map(
        (name, column) => [name, row[column], colourOf?.(at, column)] as const,
      );
      return fields(
        given.filter(([, value]) => value !== undefined && value !== ''),
        screen,
      );
    });
    return blocks.join('\n\n');
  }
  const line = (row: readonly string[], at: number): string =>
    row
      .map((text, column) => {
        const padding = ' '.repeat((widths[column] ?? 0) - lengthOf(text));
        return painted(text, at === 0 ? undefined : colourOf?.(at - 1, column), screen) + padding;
      })
      .join('  ')
      .trimEnd();
  return cells.map(line).join('\n');
}

/**
 * One `name  value` per line, long ones broken below themselves; absent values are left out. What has a word that is
 * longer than the room stands below its name: an id stays whole.
 */
export function fields(
  rows: readonly (readonly [string, Cell, (Colour | undefined)?])[],
  screen: Screen,
): string {
  const given = rows.filter(([, value]) => value !== undefined);
  const width = Math.max(...given.map(([name]) => name.length)) + 2;
  const room = (screen.columns ?? Infinity) - width;
  return given
    .map(([name, value, colour]) => {
      const text = printable(String(value));
      const fits = text.split(' ').every((word) => lengthOf(word) <= room);
      const indent = fits ? ' '.repeat(width) : '  ';
      const lines = wrapped(text, indent, screen).map((line) =>
        painted(line.slice(indent.length), colour, screen),
      );
      const first = fits ? name.padEnd(width) : `${name}\n${indent}`;
      return (first + lines.join(`\n${indent}`)).trimEnd();
    })
    .join('\n');
}

/** Lines of at most the screen's width, each behind the indent; a word is never broken. */
export function wrapped(text: string, indent: string, { columns }: Screen): readonly string[] {
  if (columns === undefined || columns < MIN_COLUMNS) return [indent + text];
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    const longer = line === '' ? word : `${line} ${word}`;
    if (line === '' || lengthOf(indent + longer) <= columns) line = longer;
    else {
      lines.push(indent + line);
      line = word;
    }
  }
  return [...lines, indent + line];
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
