// Forms of stored JSON: what its readers rely on. A store checks a row once, where it reads it; what has another form is
// damaged, and is named, instead of failing whoever reads it among others (architecture §11, I97).
import { isJsonObject } from './json.ts';

export type Form = (value: unknown) => boolean;

export const isText: Form = (value) => typeof value === 'string';
export const isFlag: Form = (value) => typeof value === 'boolean';

/** A whole number from 0 on that a double holds exactly. */
export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

/** JSON has no other numbers than finite ones; a limit may be far beyond any time. */
export function isAmount(value: unknown): value is number {
  return Number.isFinite(value) && Number(value) >= 0;
}

/** Farthest time from 1970 that a date can express, in ms. */
const MAX_TIME_MS = 8.64e15;

export function isTime(value: unknown): value is number {
  return typeof value === 'number' && Math.abs(value) <= MAX_TIME_MS;
}

/** Absent, or of that form. */
export function optional(form: Form): Form {
  return (value) => value === undefined || form(value);
}

export function listOf(form: Form): Form {
  return (value) => Array.isArray(value) && value.every(form);
}

/** An object whose values all have that form, whatever their names are. */
export function mapOf(form: Form): Form {
  return (value) => isJsonObject(value) && Object.values(value).every(form);
}

/** An object with these members; others may stand beside them. */
export function members<Of extends object>(forms: {
  readonly [name in keyof Of]?: Form;
}): Form {
  const each = Object.entries(forms) as [string, Form][];
  return (value) => isJsonObject(value) && each.every(([name, form]) => form(value[name]));
}
