// An erasure by a process that dies before each of its steps (architecture §10.1): its run is readable, or it is erased with
// a receipt by the next process. Temporal is played; what SIGKILL does to a host is in test/acceptance/erasure.test.ts.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { openStores } from '../../src/adapters/postgres/index.ts';
import {
  advanceErasure,
  eraseSubject,
  type EraseDeps,
  type Patience,
} from '../../src/runs/erase.ts';
import { subjectOf } from '../../src/rules/subject.ts';
import type { RunEngine } from '../../src/ports/engine.ts';
import type { RunRef } from '../../src/ports/runs.ts';
import type { Stores } from '../../src/ports/stores.ts';
import type { ErasureRow } from '../../src/ports/subjects.ts';
import { batchAfter, entry, headOf, newRun, refTo } from '../contract/given.ts';
import { diesBefore, type Dying } from '../support/fault-point.ts';
import { patient } from '../support/machine.ts';
import { planted, word } from '../support/planted.ts';
import { quietLogger } from '../support/quiet-logger.ts';
import { sharePostgres } from '../support/shared-postgres.ts';

const LIMIT_MS = patient(300_000);
const TENANT = 'default';
const CALLER = { tenant: TENANT, subject: subjectOf('api-key', TENANT, 'tester'), scopes: [] };
const KEYS = [{ id: 'k', key: new Uint8Array(32).fill(3) }];

const postgres = await sharePostgres();
afterAll(async () => {
  if (!('missing' in postgres)) await postgres.stop();
});

describe.skipIf('missing' in postgres)('PostgreSQL', () => {
  let options: {
    database: { kind: 'postgres'; url: string };
    masterKeys: typeof KEYS;
    logger: typeof quietLogger;
    keyHeldMs: number;
  };
  let stores: Stores;
  /** Runs that the played Temporal has ended, whichever process asked for that. */
  const endedRuns = new Set<string>();

  beforeAll(async () => {
    if ('missing' in postgres) throw new Error(postgres.missing);
    const database = { kind: 'postgres', url: await postgres.createDatabase() } as const;
    // No key is used without asking, and so none has to be forgotten.
    options = { database, masterKeys: KEYS, logger: quietLogger, keyHeldMs: 0 };
    stores = await openStores(options);
  });
  beforeEach(() => endedRuns.clear());
  afterAll(async () => stores?.close());

  const patience: Patience = {
    isOver: () => false,
    isLate: () => false,
    rest: async () => {},
  };

  /** An open run of the subject, with words of it in its input and in its log. */
  async function openRun(subject: string): Promise<RunRef> {
    const subjectKey = await stores.subjects.keyFor(TENANT, { subject });
    const run = newRun(subjectKey === undefined ? {} : { subjectKey });
    const input = { ...run.input, variables: { order: word('input') } };
    await stores.runs.accept({ ...run, input });
    await stores.runs.markStarted(refTo(run.runId), 'T1');
    const payload = JSON.stringify({ note: word('event') });
    const rows = [entry(run.runId, 'one', { payload })];
    await stores.log.append(batchAfter(await headOf(stores, run.runId), rows));
    return refTo(run.runId);
  }

  async function logEnd(own: Stores, { runId }: RunRef): Promise<void> {
    const head = await headOf(own, runId);
    if (head.closed || !endedRuns.has(runId)) return;
    const rows = [entry(runId, 'terminal', { type: 'run.cancelled' })];
    await own.log.append(batchAfter(head, rows, { status: 'cancelled', closed: true }));
  }

  /** As a host has them. Temporal ends a run that is cancelled, which its log says when it is read. */
  function depsOf({ stores: own, step }: Dying): EraseDeps {
    const send: RunEngine['send'] = async (runId, _updateId, { bodyDigest }) => {
      await step();
      endedRuns.add(runId);
      return { status: 'cancelling', bodyDigest };
    };
    const fresh = async (run: RunRef) => {
      await logEnd(own, run);
      return { head: await headOf(own, run.runId), stale: false };
    };
    const deps = {
      ...{ stores: own, logger: quietLogger, redactor: { text: (text: string) => text } },
      ...{
        engine: { send, terminate: step },
        log: { head: (run: RunRef) => own.log.head(run), fresh },
      },
    };
    return deps as unknown as EraseDeps;
  }

  async function shown(own: Stores, run: RunRef): Promise<readonly [string, boolean]> {
    const row = await own.runs.find(TENANT, run.runId);
    const rows = await own.log.read(run, { after: -1, limit: 100 });
    return [JSON.stringify([row?.input, rows]), row?.erasedAtMs !== undefined];
  }

  function expectReceipt({ state, receipt }: ErasureRow, { runId }: RunRef): void {
    expect(state).toBe('erased');
    const logs = { runs: 1, events: 2 };
    expect(JSON.parse(receipt ?? '{}')).toMatchObject({ receipt: { logs, runs: [{ runId }] } });
  }

  /** The next process goes on with what it finds; true: it found an erasure, and it is done. */
  async function expectReadableOrErased(run: RunRef, subject: string): Promise<boolean> {
    const next = await openStores(options);
    const deps = depsOf({ stores: next, step: async () => {} });
    const [left, ...others] = await next.subjects.unfinished({ limit: 10 });
    expect(others).toEqual([]);
    const erasure = left && (await next.subjects.erasure(left.tenant, left.erasureId));
    if (erasure) expectReceipt(await advanceErasure(deps, erasure, patience), run);
    const [text, isErased] = await shown(next, run);
    expect([planted(text).length > 0, isErased]).toEqual([!erasure, erasure !== undefined]);
    // Whoever asked and got no answer asks again.
    const asked = { subject, cancelOpen: true, patience };
    expectReceipt(await eraseSubject(deps, CALLER, asked), run);
    expect(planted((await shown(next, run))[0])).toEqual([]);
    await next.close();
    return erasure !== undefined;
  }

  it(
    'killed before each of its steps: the run is readable, or erased with a receipt, and the next process ends it',
    { timeout: LIMIT_MS },
    async () => {
      /** Of each step before which it died, whether the erasure was begun. */
      const begun: boolean[] = [];
      for (let nth = 1; ; nth++) {
        const subject = `subject-${nth}`;
        const run = await openRun(subject);
        const outcome = await diesBefore(nth, options, (dying) =>
          eraseSubject(depsOf(dying), CALLER, { subject, cancelOpen: true, patience }),
        );
        if (outcome !== 'killed') {
          expect(planted((await shown(stores, run))[0])).toEqual([]);
          break;
        }
        begun.push(await expectReadableOrErased(run, subject));
      }
      expect(begun.length).toBeGreaterThan(20);
      expect(begun.indexOf(true)).toBeGreaterThan(0);
      expect(begun).toEqual(begun.map((_, at) => at >= begun.indexOf(true)));
    },
  );
});
