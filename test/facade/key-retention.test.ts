// How long a key holds (idempotency.md §Layer 1): as long as discovery says, for every operation that takes one. Records
// are made older by SQL, between two hosts on one database; on both twins.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  openDatabase,
  openStores,
  type DatabaseOptions,
} from '../../src/adapters/postgres/index.ts';
import { createLog } from '../../src/log/log.ts';
import { createReaper } from '../../src/runs/reaper.ts';
import type { Stores } from '../../src/ports/stores.ts';
import type { ApiAnswer } from '../support/host.ts';
import { newClaim } from '../contract/given.ts';
import { registerRun, ScriptedHistory, silentLogger } from '../support/log-parts.ts';
import { sharePostgres } from '../support/shared-postgres.ts';
import { pgliteDatabase } from '../support/databases.ts';
import { runRef } from '../support/run-ref.ts';
import { startFaultHost, waitingHistory, type FaultHost } from './fault-host.ts';

const RUN = 'run-waits';
/** What the tests themselves may take, in ms: by so much a record is younger, and then older, than its retention. */
const SLACK_MS = 600_000;
const LEASE_MS = 60_000;

/** Operations that take a key, and what each makes Temporal do. */
const OPERATIONS = {
  accept: { path: '/v1/runs', body: { workflowId: 'noop' }, call: 'start' },
  answer: {
    path: `/v1/runs/${RUN}/interrupts/gate`,
    body: { resumeValue: { action: 'accept' } },
    call: 'resolve-interrupt',
  },
  pause: { path: `/v1/runs/${RUN}:pause`, body: { reason: 'lunch' }, call: 'pause' },
  resume: { path: `/v1/runs/${RUN}:resume`, body: {}, call: 'resume' },
  cancel: { path: `/v1/runs/${RUN}/cancel`, body: { reason: 'enough' }, call: 'cancel' },
} as const;
type Operation = keyof typeof OPERATIONS;
const NAMES = Object.keys(OPERATIONS) as Operation[];

interface Round {
  readonly answers: Readonly<Record<Operation, ApiAnswer<{ runId: string }>>>;
  /** What Temporal was asked for. */
  readonly calls: readonly string[];
  /** The interrupt that a key was bound to before. */
  readonly bound: string | undefined;
}

async function ask(host: FaultHost): Promise<Round['answers']> {
  const answers = new Map<Operation, ApiAnswer<{ runId: string }>>();
  for (const name of NAMES) {
    const { path, body } = OPERATIONS[name];
    answers.set(name, await host.api(path, { body, headers: { 'idempotency-key': `k-${name}` } }));
  }
  return Object.fromEntries(answers) as Round['answers'];
}

/** A run that waits at its gate, and no more of its history to come. */
async function waitingRun(stores: Stores): Promise<void> {
  const history = new ScriptedHistory();
  const log = createLog({ stores, history, logger: silentLogger, processId: 'given' });
  await registerRun(stores, RUN);
  history.add(`${RUN}-t1`, waitingHistory());
  await log.catchUp(runRef(RUN));
  log.close();
}

function retentionTests(twin: string, given: () => Promise<DatabaseOptions>): void {
  describe(`idempotency.md §Layer 1: a key on ${twin}`, () => {
    const binding = newClaim({ key: 'bound' });
    let database: DatabaseOptions;
    let host: FaultHost;
    let retentionMs = 0;
    let first: Round;
    let justBelow: Round;
    let past: Round;

    const open = async (): Promise<void> => {
      const stores = await openStores({ database, logger: silentLogger });
      host = await startFaultHost({}, () => ({}), stores);
    };
    const older = async (byMs: number): Promise<void> => {
      await host.stop();
      const { db, close } = await openDatabase(database, silentLogger);
      await db.query('UPDATE idempotency_records SET created_at_ms = created_at_ms - $1', [byMs]);
      await close();
      await open();
    };
    const round = async (): Promise<Round> => {
      const answers = await ask(host);
      const outcome = await host.stores.idempotency.claim('default', binding, 0);
      if (outcome.kind !== 'claimed') throw new Error(outcome.kind);
      return { answers, calls: [...host.temporal.calls], bound: outcome.boundTo };
    };

    beforeAll(async () => {
      database = await given();
      await open();
      const { body } = await host.api<{ idempotency: { layer1RetentionSeconds: number } }>(
        '/.well-known/openwop',
      );
      retentionMs = body.idempotency.layer1RetentionSeconds * 1000;
      await waitingRun(host.stores);
      first = await round();
      const { idempotency } = host.stores;
      const again = await idempotency.claim('default', binding, LEASE_MS);
      const owner = again.kind === 'claimed' ? again.owner : '';
      await idempotency.bind('default', binding, owner, 'int-1');
      await idempotency.release('default', binding, owner);
      await older(retentionMs - SLACK_MS);
      justBelow = await round();
      await older(SLACK_MS);
      past = await round();
    });
    afterAll(() => host.stop());

    const replayed = ({ headers }: ApiAnswer): string | null =>
      headers.get('openwop-idempotent-replay');

    it.each(NAMES)('of %s holds just below its retention, and no longer', (name) => {
      const { call } = OPERATIONS[name];
      expect([first.answers[name].status, replayed(first.answers[name])]).toEqual([
        { accept: 201, answer: 200, pause: 202, resume: 202, cancel: 200 }[name],
        'false',
      ]);
      expect(replayed(justBelow.answers[name])).toBe('true');
      expect(justBelow.answers[name].text).toBe(first.answers[name].text);
      expect(justBelow.calls).not.toContain(call);
      expect([past.answers[name].status, replayed(past.answers[name])]).toEqual([
        first.answers[name].status,
        'false',
      ]);
      expect(past.calls).toContain(call);
    });

    it('past its retention starts another run, and belongs to that one from then on', async () => {
      const { runId } = past.answers.accept.body;
      expect(runId).not.toBe(first.answers.accept.body.runId);
      const { answers } = await round();
      expect([replayed(answers.accept), answers.accept.body.runId]).toEqual(['true', runId]);
    });

    it('is bound to its interrupt just below its retention, and no longer', () => {
      expect([first.bound, justBelow.bound, past.bound]).toEqual([undefined, 'int-1', undefined]);
    });

    it('is deleted when its retention is over, and not before', async () => {
      const claim = newClaim();
      const { idempotency } = host.stores;
      const outcome = await idempotency.claim('default', claim, LEASE_MS);
      const owner = outcome.kind === 'claimed' ? outcome.owner : '';
      const response = { status: 201, body: null };
      await idempotency.complete('default', claim, owner, response);
      const reapedAfter = async (byMs: number) => {
        await older(byMs);
        await createReaper(host.deps).round();
        return host.stores.idempotency.find('default', claim);
      };
      expect(await reapedAfter(retentionMs - SLACK_MS)).toEqual({ kind: 'replay', response });
      expect(await reapedAfter(2 * SLACK_MS)).toBeUndefined();
    });
  });
}

const folder = await mkdtemp(join(tmpdir(), 'openwop-keys-'));
const postgres = await sharePostgres();
afterAll(async () => {
  if (!('missing' in postgres)) await postgres.stop();
  await rm(folder, { recursive: true, force: true });
});

retentionTests('PGlite', pgliteDatabase);

if ('missing' in postgres) {
  describe('PostgreSQL', () => {
    it.skip(postgres.missing, () => undefined);
  });
} else {
  retentionTests('PostgreSQL', async () => ({
    kind: 'postgres',
    url: await postgres.createDatabase(),
  }));
}
