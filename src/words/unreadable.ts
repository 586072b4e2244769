// What a person reads in the place of what cannot be read now.
import type { Unreadable } from '../rules/unreadable.ts';
import { printable } from './printable.js';

/** One line. */
export function unreadableText({ message }: Pick<Unreadable, 'message'>): string {
  return `Cannot be read now: ${printable(message)}`;
}
