// The majors of the protocol that are served, and which of them a request asks for: decided once, by its address.
import type { RequestHandler, Response } from 'express';
import type { RunRow } from '../ports/runs.ts';
import { FIRST_MAJOR } from '../wire/first-major.ts';
import type { Major } from '../wire/major.ts';
import type { RunSnapshot } from '../../schemas/types.generated.ts';

export interface ServedMajor extends Major {
  /** What stands before the paths of its routes; '' is the bare origin. */
  readonly prefix: string;
  /** A run's state as it leaves. */
  snapshot(snapshot: RunSnapshot, run: RunRow): object;
}

/** The preferred one first: it is spoken where an address names none. */
export type Majors = readonly [ServedMajor, ...ServedMajor[]];

export const FIRST: ServedMajor = {
  ...FIRST_MAJOR,
  prefix: '/v1',
  snapshot: (snapshot) => snapshot,
};

export const MAJORS: Majors = [FIRST];

/** Notes the major of each request for whatever answers it. */
export function decideMajor(majors: Majors): RequestHandler {
  const longestFirst = [...majors].sort((a, b) => b.prefix.length - a.prefix.length);
  return ({ path }, response, next) => {
    const asked = longestFirst.find(({ prefix }) => `${path}/`.startsWith(`${prefix}/`));
    response.locals.major = asked ?? majors[0];
    next();
  };
}

/** Of who asks; undefined before that is known. */
export function tenantOf({ locals }: Pick<Response, 'locals'>): string | undefined {
  return locals.tenant as string | undefined;
}

/** Of the request that this answers. */
export function majorOf({ locals }: Pick<Response, 'locals'>): ServedMajor {
  return locals.major as ServedMajor;
}
