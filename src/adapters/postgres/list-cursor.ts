// Cursors of lists: where the last row of a page stands in the list's order. Opaque to clients, and stable while rows
// come: a page begins behind a place, not behind a number of rows.
import { HostError } from '../../rules/errors.ts';
import type { SqlValue } from './db.ts';

/**
 * What a place is made of: the columns of an order. A number is carried as its digits: a damaged time may be one that no
 * double holds, and the rows behind it are found all the same.
 */
type Form = readonly ('digits' | 'text')[];
type Place<Kinds extends Form> = { readonly [At in keyof Kinds]: string };

/** When a run was accepted, and its id: of lists that begin with the oldest, too. */
export const NEWEST_FIRST = ['digits', 'text'] as const;
/** The deadline, when it was asked, and the run's id. */
export const SOONEST_FIRST = ['digits', 'digits', 'text'] as const;

/** A column of an order as its cursors carry it. */
export function digitsOf(column: string): string {
  return `${column}::text`;
}

function cursorText(place: readonly string[]): string {
  return Buffer.from(JSON.stringify(place)).toString('base64url');
}

/** Throws validation_error, also for a cursor of another order. */
export function cursorOf<Kinds extends Form>(text: string, form: Kinds): Place<Kinds> {
  const value = parsed(text);
  const fits =
    Array.isArray(value) &&
    value.length === form.length &&
    form.every((kind, at) =>
      kind === 'digits' ? isBigint(value[at]) : typeof value[at] === 'string',
    );
  if (fits) return value as unknown as Place<Kinds>;
  throw new HostError('validation_error', {
    reason: 'The cursor is not one that this host gave.',
    field: 'cursor',
  });
}

/** Whether a column of the database can hold it. */
function isBigint(digits: unknown): boolean {
  if (typeof digits !== 'string' || !/^-?\d{1,19}$/.test(digits)) return false;
  const value = BigInt(digits);
  return BigInt.asIntN(64, value) === value;
}

/** `rows` has one more than the page where there are more. */
export function nextCursor<Row>(
  rows: readonly Row[],
  limit: number,
  placeOf: (row: Row) => readonly string[],
): { readonly nextCursor?: string } {
  const last = rows[limit - 1];
  return rows.length > limit && last ? { nextCursor: cursorText(placeOf(last)) } : {};
}

/** The condition of the place that a page begins behind, in the order of time and id; its values are put to `values`. */
export function behind(
  columns: string,
  order: 'newest' | 'oldest',
  { cursor, values }: { readonly cursor?: string; readonly values: SqlValue[] },
): string {
  if (cursor === undefined) return 'true';
  const [at, id] = cursorOf(cursor, NEWEST_FIRST);
  values.push(at, id);
  const sign = order === 'newest' ? '<' : '>';
  return `${columns} ${sign} ($${values.length - 1}::bigint, $${values.length}::text)`;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(Buffer.from(text, 'base64url').toString('utf8'));
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
