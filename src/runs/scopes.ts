// What a caller may do beyond what the route that it came by declares (auth.md): asked where it is known what is done.
import { HostError } from '../rules/errors.ts';
import type { Caller } from '../ports/caller.ts';

/** Throws forbidden. */
export function requireScope({ scopes }: Pick<Caller, 'scopes'>, scope: string): void {
  if (!scopes.includes(scope)) throw new HostError('forbidden', { scopeRequired: scope });
}
