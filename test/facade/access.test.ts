// Whom a route admits is what it declares (auth.md, architecture §10): the key's scopes, and the cookie of a run's page
// where `access` says so.
import { describe, expect, it } from 'vitest';
import type { Request } from 'express';
import { principalOf, subjectOf } from '../../src/rules/subject.ts';
import { createGate } from '../../src/facade/auth.ts';
import { createWrongKeys } from '../../src/facade/wrong-keys.ts';
import { quietLogger } from '../support/quiet-logger.ts';
import type { Access } from '../../src/facade/route.ts';
import { STREAM_RUN_EVENTS } from '../../src/facade/routes/events.ts';

const KEY = 'owop_key_of_the_access_tests';
const BEARER = `Bearer ${KEY}`;
const VISITOR = 'page-session:1';
const visitor = {
  tenant: 'default',
  subject: subjectOf('session', 'default', VISITOR),
  scopes: ['runs:read'],
};
const looked: string[] = [];

const sessions: Parameters<typeof createGate>[1] = {
  async find({ headers }, runId) {
    looked.push(runId);
    return headers.cookie === `page=${runId}`
      ? { caller: visitor, runId, csrfToken: 'unused' }
      : undefined;
  },
};
const gate = createGate(KEY, sessions, createWrongKeys(quietLogger));

function admit(access: Access, headers: Request['headers']): Promise<string> {
  const request = { headers, params: { runId: 'r1' } } as unknown as Request;
  return gate.admit(request, access).then(
    ({ subject }) => principalOf(subject),
    (error: { code: string }) => error.code,
  );
}

const PAGED = { scope: 'runs:read', pageSession: 'runId' } as const satisfies Access;
const KEYED = 'api-key:default';

describe('access', () => {
  it.each([
    ['public: nobody is asked who they are', 'public', {}, KEYED],
    ['public: not even a wrong key', 'public', { authorization: 'Bearer x' }, KEYED],
    ['a scope: the key', 'runs:read', { authorization: BEARER }, KEYED],
    ['a scope: no key', 'runs:read', {}, 'unauthenticated'],
    [
      'a scope: the cookie of a page is no key',
      'runs:read',
      { cookie: 'page=r1' },
      'unauthenticated',
    ],
    ['a page: its cookie', PAGED, { cookie: 'page=r1' }, VISITOR],
    ["a page: another run's cookie", PAGED, { cookie: 'page=r2' }, 'unauthenticated'],
    ['a page: a bearer decides', PAGED, { cookie: 'page=r1', authorization: BEARER }, KEYED],
    // [I51]
    [
      'a page: a wrong bearer too',
      PAGED,
      { cookie: 'page=r1', authorization: 'x' },
      'unauthenticated',
    ],
    ['a page: the key', PAGED, { authorization: BEARER }, KEYED],
    [
      'a page that asks for a scope that its cookie has not',
      { ...PAGED, scope: 'runs:cancel' },
      { cookie: 'page=r1' },
      'forbidden',
    ],
  ] as const)('%s', async (_what, access, headers, told) => {
    expect(await admit(access, headers)).toBe(told);
  });

  it('sessions are looked for where a route asks for them, and not with a bearer', async () => {
    looked.length = 0;
    await admit('runs:read', { cookie: 'page=r1' });
    await admit(PAGED, { cookie: 'page=r1', authorization: BEARER });
    await admit(PAGED, {});
    expect(looked).toEqual([]);
    await admit(STREAM_RUN_EVENTS.access, { cookie: 'page=r1' });
    expect(looked).toEqual(['r1']);
  });
});
