// Which process does what, and in which order it begins and ends.
import { describe, expect, it } from 'vitest';
import type { HostOptions } from '../../src/app/parts.ts';
import { EARLY_ROLES, LATE_ROLES, startRoles, type Role } from '../../src/app/roles.ts';
import { Started } from '../../src/app/started.ts';
import { quietLogger } from '../support/quiet-logger.ts';

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
      agents: 'worker',
      'agent queues': 'worker',
      worker: 'worker',
      reaper: 'facade',
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
});
