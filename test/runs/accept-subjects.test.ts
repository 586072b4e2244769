// A run is accepted once per key whatever became of its session and its subject, and has the subject of its session, also
// where that got one while the run was being made (idempotency.md §Layer 1, architecture §10.1).
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openDatabase, storesOn, type OpenDatabase } from '../../src/adapters/postgres/index.ts';
import { KEY_HELD_MS } from '../../src/adapters/postgres/subject-keys.ts';
import { HostError } from '../../src/rules/errors.ts';
import { subjectOf } from '../../src/rules/subject.ts';
import { acceptRun, type AcceptedRun, type AcceptOnce } from '../../src/runs/accept.ts';
import { forkRun } from '../../src/runs/fork.ts';
import { claimOf } from '../../src/runs/once.ts';
import type { RunRequest } from '../../src/runs/request.ts';
import type { Stores } from '../../src/ports/stores.ts';
import { batchAfter, entry, headOf, newId } from '../contract/given.ts';
import { databaseTwins, type DatabaseTwin } from '../support/database-twins.ts';
import { silentLogger } from '../support/log-parts.ts';
import { patient } from '../support/machine.ts';
import { acceptParts, type AcceptParts } from '../support/accept-parts.ts';
import { codeThrownBy } from '../support/code-thrown.ts';

const CALLER = {
  ...{ tenant: 'default', subject: subjectOf('api-key', 'default', 'tester') },
  scopes: ['runs:read', 'runs:create'],
};
const MASTER = { id: 'k', key: new Uint8Array(randomBytes(32)) };
/** A process hears a moment later that a key is gone. */
const HEARD = { timeout: patient(4 * KEY_HELD_MS) };

let stores: Stores;
let database: OpenDatabase;
beforeAll(async () => {
  const [, open] = (await databaseTwins()).at(-1) as DatabaseTwin;
  const options = { database: await open(), logger: silentLogger, masterKeys: [MASTER] };
  database = await openDatabase(options.database, silentLogger);
  stores = await storesOn(database, options);
});
afterAll(() => stores.close());

function deps(more: Partial<AcceptParts> = {}): AcceptParts {
  const log = { ...acceptParts(stores).log, head: stores.log.head.bind(stores.log) };
  return { ...acceptParts(stores), log, ...more };
}

const request = (more: Partial<RunRequest>): RunRequest => ({
  ...{ workflowId: 'noop', inputs: {}, configurable: {}, ...more },
});

function onceWith(key: string, body = {}): AcceptOnce {
  return {
    asked: { endpoint: 'POST /v1/runs', target: [], body, key },
    telling: { told: ({ runId }: AcceptedRun) => ({ status: 201, body: { runId } }) },
  };
}

const told = (once: Awaited<ReturnType<typeof acceptRun>>) =>
  once.replayed ? once.kept.body : { runId: once.data.runId };

const ASKED = { asked: { by: 'tester' }, cancelsOpen: false };

/** The subject's one run has ended; until this process has heard of it. */
async function erased(
  dataSubject: string,
  runId: string,
  during: () => Promise<void> = async () => {},
): Promise<void> {
  await stores.log.append({
    ...batchAfter(await headOf(stores, runId), [entry(runId, 'terminal')]),
    ...{ closed: true, status: 'completed' as const },
  });
  const begun = await stores.subjects.beginErasure('default', dataSubject, ASKED);
  if (begun.kind !== 'begun') throw new Error(begun.kind);
  await during();
  expect(await stores.subjects.destroy(begun.erasure)).toBe(true);
  await expect
    .poll(async () => (await stores.runs.find('default', runId))?.erasedAtMs, HEARD)
    .toBeDefined();
}

describe('idempotency.md §Layer 1: a repeat is told its first answer', () => {
  // [I113]
  it('once a run of a subject has entered its session', async () => {
    const [sessionId, dataSubject] = [newId('session'), newId('somebody')];
    const once = onceWith(newId('key'));
    const first = await acceptRun(deps(), CALLER, { run: request({ sessionId }), once });
    await acceptRun(deps(), CALLER, { run: request({ sessionId, dataSubject }) });
    const again = await acceptRun(deps(), CALLER, { run: request({ sessionId }), once });
    expect([again.replayed, told(again)]).toEqual([true, told(first)]);
    const other = { ...once, asked: { ...once.asked, body: { another: true } } };
    expect(
      await codeThrownBy(acceptRun(deps(), CALLER, { run: request({ sessionId }), once: other })),
    ).toBe('idempotency_key_mismatch');
  });

  it('during an erasure of its subject, and after it; and no key is made for that', async () => {
    const dataSubject = newId('somebody');
    const run = request({ dataSubject });
    const once = onceWith(newId('key'));
    const first = await acceptRun(deps(), CALLER, { run, once });
    const { runId } = told(first) as { runId: string };
    await erased(dataSubject, runId, async () => {
      const during = await acceptRun(deps(), CALLER, { run, once });
      expect([during.replayed, told(during)]).toEqual([true, { runId }]);
    });
    const after = await acceptRun(deps(), CALLER, { run, once });
    expect([after.replayed, told(after)]).toEqual([true, { runId }]);
    const known = await stores.subjects.beginErasure('default', dataSubject, ASKED);
    expect(known.kind).toBe('known');
  });

  it('of a run that was accepted and never answered, the same run, whatever subject its session has now', async () => {
    const [sessionId, dataSubject] = [newId('session'), newId('somebody')];
    const once = onceWith(newId('key'));
    const run = request({ sessionId });
    const away: AcceptParts['engine'] = {
      ...deps().engine,
      start: () => Promise.reject(new HostError('service_unavailable')),
    };
    const refused = await acceptRun(deps({ engine: away }), CALLER, { run, once }).catch(
      (error: unknown) => error as HostError,
    );
    expect(refused).toMatchObject({ code: 'service_unavailable' });
    const { runId } = (refused as HostError).details as { runId: string };
    await acceptRun(deps(), CALLER, { run: request({ sessionId, dataSubject }) });
    const again = await acceptRun(deps(), CALLER, { run, once });
    expect([again.replayed, told(again)]).toEqual([false, { runId }]);
    expect(told(await acceptRun(deps(), CALLER, { run, once }))).toEqual({ runId });
  });

  it('when its workflow is gone', async () => {
    const once = onceWith(newId('key'));
    const run = request({});
    const first = await acceptRun(deps(), CALLER, { run, once });
    const catalog: AcceptParts['catalog'] = { definition: () => undefined, agent: () => undefined };
    const again = await acceptRun(deps({ catalog }), CALLER, { run, once });
    expect([again.replayed, told(again)]).toEqual([true, told(first)]);
  });

  it('and a key that is older than a day makes another run', async () => {
    const once = onceWith(newId('key'));
    const run = request({});
    const first = await acceptRun(deps(), CALLER, { run, once });
    await database.db.query('UPDATE idempotency_records SET created_at_ms = 1');
    const later = await acceptRun(deps(), CALLER, { run, once });
    expect(later.replayed).toBe(false);
    expect(told(later)).not.toEqual(told(first));
    expect(told(await acceptRun(deps(), CALLER, { run, once }))).toEqual(told(later));
  });

  it('and what is kept of a run that is taken up again is kept as the run is', async () => {
    const dataSubject = newId('somebody');
    const once = onceWith(newId('key'));
    const run = request({ dataSubject });
    const away = { ...deps().engine, start: () => Promise.reject(new HostError('internal_error')) };
    await acceptRun(deps({ engine: away }), CALLER, { run, once }).catch(() => undefined);
    await acceptRun(deps(), CALLER, { run, once });
    const kept = await database.db.query<{ response_body: string }>(
      'SELECT response_body FROM idempotency_records WHERE response_body IS NOT NULL AND subject_key = $1',
      [(await stores.subjects.keyFor('default', { subject: dataSubject })) ?? ''],
    );
    expect(kept.map(({ response_body: text }) => text.slice(0, 1))).toEqual(['~']);
  });

  it('of one that was never answered, and erased since, the same run each time', async () => {
    const dataSubject = newId('somebody');
    const run = request({ dataSubject });
    const once = onceWith(newId('key'));
    const away = { ...deps().engine, start: () => Promise.reject(new HostError('internal_error')) };
    const refused = acceptRun(deps({ engine: away }), CALLER, { run, once });
    expect(await codeThrownBy(refused)).toBe('internal_error');
    const claim = claimOf(once.asked);
    const found = claim && (await stores.idempotency.find('default', claim));
    if (found?.kind !== 'accepted') throw new Error(found?.kind);
    const { runId } = found;
    await stores.runs.markStarted(stores.runs.ref('default', runId), `t-${runId}`);
    await erased(dataSubject, runId);
    for (let times = 0; times < 3; times++)
      expect(told(await acceptRun(deps(), CALLER, { run, once }))).toEqual({ runId });
  });

  it('of a run whose acceptance was lost with the connection, once somebody asks again; nobody says that it is in flight', async () => {
    const once = onceWith(newId('key'));
    const run = request({});
    const accept: Stores['runs']['accept'] = async (...asked) => {
      await stores.runs.accept(...asked);
      throw new HostError('service_unavailable');
    };
    const lost = deps({ stores: { ...stores, runs: { ...stores.runs, accept } } });
    expect(await codeThrownBy(acceptRun(lost, CALLER, { run, once }))).toBe('service_unavailable');
  });

  it('of a fork whose source is gone', async () => {
    const once = onceWith(newId('key'));
    const first = await acceptRun(deps(), CALLER, { run: request({}), once });
    const source = () => Promise.reject(new HostError('run_expired'));
    const forked = (each: AcceptOnce) =>
      forkRun(deps() as unknown as Parameters<typeof forkRun>[0], CALLER, {
        ...{ source, asked: { mode: 'replay' as const }, once: each },
      });
    const again = await forked(once);
    expect([again.replayed, told(again)]).toEqual([true, told(first)]);
    expect(await codeThrownBy(forked(onceWith(newId('key'))))).toBe('run_expired');
  });
});

describe('architecture §10.1: a run has the subject of its session', () => {
  /** Somebody's first run enters the session between the question whose it is and the row. */
  function meanwhile(sessionId: string, dataSubject: string): AcceptParts {
    let asked = 0;
    const subjects: Stores['subjects'] = {
      ...stores.subjects,
      async keyFor(...about) {
        const found = await stores.subjects.keyFor(...about);
        if (asked++ === 0)
          await acceptRun(deps(), CALLER, { run: request({ sessionId, dataSubject }) });
        return found;
      },
    };
    return deps({ stores: { ...stores, subjects } });
  }

  // [I114]
  it('also where that got one meanwhile: it is sealed, or refused where it names another', async () => {
    for (const once of [undefined, onceWith(newId('key'))]) {
      const [sessionId, dataSubject] = [newId('session'), newId('somebody')];
      const given = once ? { once } : {};
      const run = request({ sessionId });
      const late = await acceptRun(meanwhile(sessionId, dataSubject), CALLER, { run, ...given });
      const { runId } = told(late) as { runId: string };
      const { subjectKey } = (await stores.runs.find('default', runId)) ?? {};
      expect(subjectKey).toBe(await stores.subjects.keyFor('default', { subject: dataSubject }));
    }
    const sessionId = newId('session');
    const other = request({ sessionId, dataSubject: newId('another') });
    const parts = meanwhile(sessionId, newId('somebody'));
    expect(await codeThrownBy(acceptRun(parts, CALLER, { run: other }))).toBe('validation_error');
  });

  it('a bad request makes no key', async () => {
    const none: AcceptParts['catalog'] = { definition: () => undefined, agent: () => undefined };
    const dataSubject = newId('somebody');
    const run = request({ dataSubject });
    const refused = acceptRun(deps({ catalog: none }), CALLER, { run });
    expect(await codeThrownBy(refused)).toBe('workflow_not_found');
    expect(await stores.subjects.beginErasure('default', dataSubject, ASKED)).toEqual({
      kind: 'unknown',
    });
  });
});
