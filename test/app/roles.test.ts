// Which process does what, and in which order it begins and ends.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { HostOptions } from '../../src/app/parts.ts';
import {
  EARLY_ROLES,
  LATE_ROLES,
  startRoles,
  type EarlyNeeds,
  type Role,
} from '../../src/app/roles.ts';
import { exitLimitMs } from '../../src/app/command.ts';
import { Started } from '../../src/app/started.ts';
import { createLog } from '../../src/log/log.ts';
import { createProjector } from '../../src/log/projector.ts';
import type { Logger } from '../../src/ports/logger.ts';
import type { Stores } from '../../src/ports/stores.ts';
import { openAnyStores, registerRun, ScriptedHistory } from '../support/log-parts.ts';
import { closes, isArchived, threeTasks } from '../support/projected.ts';
import { quietLogger } from '../support/quiet-logger.ts';
import { runRef } from '../support/run-ref.ts';

interface Needs {
  readonly options: HostOptions;
}

function needs(facade: boolean, worker: boolean): Needs {
  return { options: { parts: { facade, worker } } as HostOptions };
}

function role(name: string, half: Role<Needs>['half'], seen: string[]): Role<Needs> {
  return {
    name,
    half,
    stopLimitMs: 1_000,
    async start() {
      seen.push(`${name} starts`);
      return { stop: async () => void seen.push(`${name} stops`) };
    },
  };
}

describe('roles', () => {
  it('belong to a half, or to both', () => {
    const halves = Object.fromEntries(
      [...EARLY_ROLES, ...LATE_ROLES].map(({ name, half }) => [name, half]),
    );
    expect(halves).toEqual({
      projector: 'both',
      sweeper: 'both',
      archiver: 'both',
      agents: 'worker',
      'agent queues': 'worker',
      worker: 'worker',
      promoter: 'worker',
      reaper: 'facade',
      families: 'worker',
      expirer: 'both',
      erasures: 'facade',
      health: 'worker',
      http: 'facade',
    });
  });

  it.each([
    { facade: true, worker: true, started: ['all', 'work', 'serve'] },
    { facade: true, worker: false, started: ['all', 'serve'] },
    { facade: false, worker: true, started: ['all', 'work'] },
  ])(
    'start where their half runs: facade $facade, worker $worker',
    async ({ facade, worker, started }) => {
      const seen: string[] = [];
      const rows = [
        role('all', 'both', seen),
        role('work', 'worker', seen),
        role('serve', 'facade', seen),
      ];
      await startRoles(rows, needs(facade, worker), new Started(quietLogger));
      expect(seen).toEqual(started.map((name) => `${name} starts`));
    },
  );

  it('stop in the reverse order, also when one of them does not start', async () => {
    const seen: string[] = [];
    const started = new Started(quietLogger);
    const fails: Role<Needs> = {
      ...role('fails', 'both', seen),
      start: () => Promise.reject(new Error('no')),
    };
    const rows = [role('one', 'both', seen), role('two', 'both', seen), fails];
    await expect(startRoles(rows, needs(true, true), started)).rejects.toThrow('no');
    await started.stop();
    expect(seen).toEqual(['one starts', 'two starts', 'two stops', 'one stops']);
  });

  it('see what earlier ones give, and are passed over where nothing is configured', async () => {
    const worker = { running: () => true } as never;
    const gives: Role<Needs> = {
      ...role('gives', 'both', []),
      start: async () => ({ stop: async () => undefined, gives: { worker } }),
    };
    const absent: Role<Needs> = { ...role('absent', 'both', []), start: async () => undefined };
    const given = await startRoles([absent, gives], needs(true, true), new Started(quietLogger));
    expect(given.worker).toBe(worker);
  });

  it('together have the time that each of those that were started may take, and the process has more', async () => {
    const started = new Started(quietLogger);
    started.add('a part', 500, () => undefined);
    const absent: Role<Needs> = { ...role('absent', 'both', []), start: async () => undefined };
    const rows = [role('one', 'both', []), role('two', 'facade', []), absent];
    await startRoles([...rows, role('no', 'worker', [])], needs(true, false), started);
    expect(started.stopLimitMs()).toBe(2_500);
    expect(exitLimitMs({ stopLimitMs: 2_500 })).toBeGreaterThan(2_500);
  });
});

describe('architecture §3.4, §3.6: the roles that keep logs', () => {
  let stores: Stores;
  beforeAll(async () => {
    stores = await openAnyStores();
  });
  afterAll(() => stores.close());

  /** Those roles of the table, on PGlite and a played history. */
  async function startLogRoles(names: readonly string[], logger: Logger = quietLogger) {
    const history = new ScriptedHistory();
    const processId = randomUUID();
    const log = createLog({ stores, history, logger, processId });
    const projector = createProjector({
      ...{ log, stores, logger, processId, answers: async () => undefined },
    });
    const options = { parts: { facade: true, worker: true }, logger } as HostOptions;
    const given = { options, stores, history, log, projector } as unknown as EarlyNeeds;
    const started = new Started(logger);
    const rows = EARLY_ROLES.filter(({ name }) => names.includes(name));
    const start = async () => void (await startRoles(rows, given, started));
    const stop = () => started.stop().finally(() => log.close());
    return { history, projector, start, stop };
  }

  async function newRun(history: ScriptedHistory): Promise<string> {
    const runId = randomUUID();
    await registerRun(stores, runId);
    history.add(`${runId}-t1`, threeTasks());
    return runId;
  }

  it('a run is caught up by the projector and archived without being asked', async () => {
    const host = await startLogRoles(['projector', 'archiver']);
    const before = await newRun(host.history);
    await host.start();
    await isArchived(stores, before);
    const behind = await newRun(host.history);
    host.projector.hint(runRef(behind), `${behind}-t1`, 3, true);
    await isArchived(stores, behind);
    await host.stop();
  });

  it('each is there without the others: the sweeper alone finds an end, the projector alone archives nothing', async () => {
    const sweeping = await startLogRoles(['sweeper']);
    const swept = await newRun(sweeping.history);
    sweeping.history.ended = { runIds: [swept], newestMs: Date.now() };
    await sweeping.start();
    await closes(stores, swept);
    await sweeping.stop();
    const projecting = await startLogRoles(['projector']);
    const caughtUp = await newRun(projecting.history);
    await projecting.start();
    await closes(stores, caughtUp);
    await projecting.stop();
    expect((await stores.segments.ofRun(runRef(caughtUp)))[0]?.archive).toBeUndefined();
  });

  it('what fails in the background of one is said', async () => {
    const said: string[] = [];
    const note = (message: string) => void said.push(message);
    const host = await startLogRoles(['sweeper', 'archiver'], {
      ...quietLogger,
      debug: note,
      warn: note,
    });
    host.history.closedSince = () => Promise.reject(new Error('away'));
    const claims = vi
      .spyOn(stores.segments, 'claimUnarchived')
      .mockRejectedValue(new Error('away'));
    await host.start();
    const failures = ['archiving failed', 'the sweep failed, trying again'];
    await expect.poll(() => [...said].sort()).toEqual(expect.arrayContaining(failures));
    await host.stop();
    claims.mockRestore();
  });
});
