// Query parameters, read strictly: a value that is given and wrong is 400, never a silent default.
import type { Request } from 'express';
import { invalid } from '../rules/errors.ts';

/** The one value of a parameter; undefined when absent. Given twice it is refused. */
export function queryText(request: Request, name: string): string | undefined {
  const value = request.query[name];
  if (value === undefined || typeof value === 'string') return value;
  throw invalid(name, 'must be given once');
}

export function queryInteger(
  request: Request,
  name: string,
  range: { min: number; max: number },
): number | undefined {
  const text = queryText(request, name);
  if (text === undefined) return undefined;
  const value = /^-?\d{1,16}$/.test(text) ? Number(text) : NaN;
  if (!Number.isSafeInteger(value) || value < range.min || value > range.max) {
    throw invalid(name, 'must be an integer in range', range);
  }
  return value;
}
