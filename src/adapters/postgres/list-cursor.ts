// Cursors of lists: where the last row of a page stands in the list's order. Opaque to clients, and stable while rows
// come: a page begins behind a place, not behind a number of rows.
import { HostError } from '../../rules/errors.ts';

/** What a place is made of: the columns of an order. */
type Form = readonly ('number' | 'string')[];
type Place<Kinds extends Form> = {
  readonly [At in keyof Kinds]: Kinds[At] extends 'number' ? number : string;
};

/** When a run was accepted, and its id: of lists that begin with the oldest, too. */
export const NEWEST_FIRST = ['number', 'string'] as const;
/** The deadline, when it was asked, and the run's id. */
export const SOONEST_FIRST = ['number', 'number', 'string'] as const;

export function cursorText(place: readonly (string | number)[]): string {
  return Buffer.from(JSON.stringify(place)).toString('base64url');
}

/** Throws validation_error, also for a cursor of another order. */
export function cursorOf<Kinds extends Form>(text: string, form: Kinds): Place<Kinds> {
  const value = parsed(text);
  const fits =
    Array.isArray(value) &&
    value.length === form.length &&
    form.every((kind, at) =>
      kind === 'number' ? Number.isSafeInteger(value[at]) : typeof value[at] === 'string',
    );
  if (fits) return value as unknown as Place<Kinds>;
  throw new HostError('validation_error', {
    reason: 'The cursor is not one that this host gave.',
    field: 'cursor',
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(Buffer.from(text, 'base64url').toString('utf8'));
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
