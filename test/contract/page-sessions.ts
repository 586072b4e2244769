// What every PageSessionStore does (architecture §10).
import { describe, expect, it } from 'vitest';
import type { NewSession } from '../../src/ports/page-sessions.ts';
import type { GivenStores } from './given.ts';
import { newId, refTo } from './given.ts';
import { runRef } from '../support/run-ref.ts';

/** Races at the same time. */
const ROUNDS = 30;
/** Longer than the tests take. */
const LIFE_MS = 3_600_000;

export function pageSessionStoreContract(stores: GivenStores): void {
  describe('PageSessionStore', () => {
    it('architecture §10 a link opens once and not after its time', async () => {
      const [link, late] = [newId('link'), newId('link')];
      const run = runRef('run-1');
      await stores().pageSessions.createLink(run, link, LIFE_MS);
      await stores().pageSessions.createLink(run, late, 0);
      const given = Array.from({ length: 4 }, () => newId('session'));
      const consume = (linkHash: string, sessionHash = newId('session')) =>
        stores().pageSessions.consumeLink({ runId: 'run-1', linkHash }, session(sessionHash));
      const opened = await Promise.all(given.map((hash) => consume(link, hash)));
      expect(opened.filter(Boolean)).toEqual([true]);
      const found = await Promise.all(given.map((hash) => stores().pageSessions.findSession(hash)));
      expect(found).toEqual(
        opened.map((isOpen) => (isOpen ? { tenant: 'default', runId: 'run-1' } : undefined)),
      );
      expect(await consume(late)).toBe(false);
      expect(await consume("' OR '1'='1")).toBe(false);
    });

    it('architecture §10 says when a link expires, the later the longer it lives', async () => {
      const { pageSessions } = stores();
      const lives = [LIFE_MS, 3 * LIFE_MS];
      for (const create of [
        (lifeMs: number) => pageSessions.createLink(runRef('run-1'), newId('link'), lifeMs),
        (lifeMs: number) => pageSessions.createHostLink('acme', newId('link'), lifeMs),
      ]) {
        const [first = 0, second = 0] = [await create(lives[0] ?? 0), await create(lives[1] ?? 0)];
        expect(second - first).toBeGreaterThanOrEqual(2 * LIFE_MS);
      }
    });

    it('architecture §10 a link opens no other run', async () => {
      const { pageSessions } = stores();
      const linkHash = newId('link');
      await pageSessions.createLink(runRef('run-1', 'acme'), linkHash, LIFE_MS);
      const opened = session(newId('session'));
      expect(await pageSessions.consumeLink({ runId: 'run-2', linkHash }, opened)).toBe(false);
      expect(await pageSessions.consumeLink({ runId: 'run-1', linkHash }, opened)).toBe(true);
    });

    /** Gives the hash of the session. */
    async function openRun(tenant: string, runId: string, lifeMs = LIFE_MS): Promise<string> {
      const [linkHash, sessionHash] = [newId('link'), newId('session')];
      await stores().pageSessions.createLink(runRef(runId, tenant), linkHash, LIFE_MS);
      await stores().pageSessions.consumeLink({ runId, linkHash }, { sessionHash, lifeMs });
      return sessionHash;
    }

    it('architecture §10 a session is found until its time', async () => {
      const found = async (lifeMs?: number) =>
        stores().pageSessions.findSession(await openRun('acme', 'run-2', lifeMs));
      expect(await found()).toEqual({ tenant: 'acme', runId: 'run-2' });
      expect(await found(0)).toBeUndefined();
    });

    // [I109]
    it('architecture §10 links and sessions of a run are revoked, and no others', async () => {
      const { pageSessions } = stores();
      const run = refTo(newId('run'));
      const opened = await openRun(run.tenant, run.runId);
      const others = [
        await openRun(run.tenant, newId('run')),
        await openRun(newId('tenant'), run.runId),
      ];
      const late = await openRun(run.tenant, run.runId, -1);
      const [link, lateLink] = [newId('link'), newId('link')];
      await pageSessions.createLink(run, link, LIFE_MS);
      await pageSessions.createLink(run, lateLink, -1);
      const revoked = await pageSessions.revoke(run);
      expect(revoked).toMatchObject({ links: 1, sessions: 1 });
      expect(new Set(revoked.sessionHashes)).toEqual(new Set([opened, late]));
      expect(await pageSessions.findSession(opened)).toBeUndefined();
      for (const other of others) expect(await pageSessions.findSession(other)).toMatchObject({});
      const given = { runId: run.runId, linkHash: link };
      expect(await pageSessions.consumeLink(given, session(newId('session')))).toBe(false);
      expect(await pageSessions.revoke(run)).toEqual({ links: 0, sessions: 0, sessionHashes: [] });
    });

    // [I109]
    it('architecture §10 a link that is consumed while it is revoked leaves no session', async () => {
      const { pageSessions } = stores();
      /** The revocation comes before, between and after those that open. */
      const race = async (at: number): Promise<void> => {
        const run = refTo(newId('run'));
        const { runId } = run;
        const pairs = Array.from({ length: 4 }, () => [newId('link'), newId('session')] as const);
        for (const [link] of pairs) await pageSessions.createLink(run, link, LIFE_MS);
        const steps = pairs.map(([linkHash, sessionHash]) => async () => {
          await pageSessions.consumeLink({ runId, linkHash }, session(sessionHash));
        });
        steps.splice(at % 5, 0, async () => void (await pageSessions.revoke(run)));
        await Promise.all(steps.map((step) => step()));
        for (const [, sessionHash] of pairs)
          expect(await pageSessions.findSession(sessionHash)).toBeUndefined();
      };
      await Promise.all(Array.from({ length: ROUNDS }, (_, at) => race(at)));
    });

    // [I58]
    it('architecture §10 a link that signs in does so once and not after its time', async () => {
      const sessions = stores().pageSessions;
      const [link, late] = [newId('link'), newId('link')];
      await sessions.createHostLink('acme', link, LIFE_MS);
      await sessions.createHostLink('acme', late, 0);
      const given = Array.from({ length: 4 }, () => newId('session'));
      const opened = await Promise.all(
        given.map((hash) => sessions.consumeHostLink(link, session(hash))),
      );
      expect(opened.filter(Boolean)).toEqual([{ tenant: 'acme' }]);
      const found = await Promise.all(given.map((hash) => sessions.findHostSession(hash)));
      expect(found).toEqual(opened);
      const tooLate = session(newId('session'));
      expect(await sessions.consumeHostLink(late, tooLate)).toBeUndefined();
      expect(await sessions.findHostSession(tooLate.sessionHash)).toBeUndefined();
    });

    it('architecture §10 a session of the host is found until its time or until it is ended', async () => {
      const sessions = stores().pageSessions;
      const [first, second, late] = [newId('session'), newId('session'), newId('session')];
      await sessions.createHostSession('acme', session(first));
      await sessions.createHostSession('acme', session(second));
      await sessions.createHostSession('acme', { sessionHash: late, lifeMs: 0 });
      expect(await sessions.findHostSession(first)).toEqual({ tenant: 'acme' });
      expect(await sessions.findHostSession(late)).toBeUndefined();
      await sessions.endHostSession(first);
      expect(await sessions.findHostSession(first)).toBeUndefined();
      expect(await sessions.findHostSession(second)).toEqual({ tenant: 'acme' });
    });

    it('architecture §10 what is of a run signs in nowhere, and the other way round', async () => {
      const sessions = stores().pageSessions;
      const [ofRun, ofHost] = [newId('token'), newId('token')];
      await sessions.createLink(runRef('run-1', 'acme'), ofRun, LIFE_MS);
      await sessions.createHostLink('acme', ofHost, LIFE_MS);
      await sessions.createHostSession('acme', session(ofHost));
      const opened = session(newId('session'));
      expect(await sessions.consumeHostLink(ofRun, opened)).toBeUndefined();
      expect(await sessions.findHostSession(ofRun)).toBeUndefined();
      const linked = { runId: 'run-1', linkHash: ofHost };
      expect(await sessions.consumeLink(linked, opened)).toBe(false);
      expect(await sessions.findSession(ofHost)).toBeUndefined();
    });
  });
}

function session(sessionHash: string): NewSession {
  return { sessionHash, lifeMs: LIFE_MS };
}
