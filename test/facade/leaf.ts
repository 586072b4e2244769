// A route's leaf as a row of leaves.test.ts: what its handler is given, and what comes of it.
import { HostError, type ErrorCode } from '../../src/rules/errors.ts';
import type { Declaration, InputOf } from '../../src/facade/route.ts';

export type Missing = 'temporal' | 'database';

export interface Case<Declared extends Declaration, Told> {
  readonly given?: () => Partial<InputOf<Declared>>;
  /** What is away meanwhile. */
  readonly without?: Missing;
  readonly told: Told;
}

export interface Leaf {
  readonly declared: Declaration;
  readonly answers: Case<Declaration, object> | 'never';
  readonly refuses: Case<Declaration, ErrorCode> | 'never';
}

export function leaf<const Declared extends Declaration>(
  declared: Declared,
  answers: Case<Declared, object> | 'never',
  refuses: Case<Declared, ErrorCode> | 'never',
): Leaf {
  return { declared, answers, refuses };
}

/** Stores whose every call is refused while the database is away. */
export function breakable<Part extends object>(part: Part, isAway: () => boolean): Part {
  return new Proxy(part, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value === 'object' && value !== null) return breakable(value, isAway);
      if (typeof value !== 'function') return value;
      return (...given: unknown[]): unknown =>
        isAway()
          ? Promise.reject(new HostError('service_unavailable'))
          : Reflect.apply(value as (...all: unknown[]) => unknown, target, given);
    },
  });
}
