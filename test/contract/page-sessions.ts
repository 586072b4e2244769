// What every PageSessionStore does (architecture §10).
import { describe, expect, it } from 'vitest';
import type { GivenStores } from './given.ts';
import { newId, refTo } from './given.ts';

/** Races at the same time. */
const ROUNDS = 30;

export function pageSessionStoreContract(stores: GivenStores): void {
  describe('PageSessionStore', () => {
    it('architecture §10 a link opens once and not after its time', async () => {
      const [link, late] = [newId('link'), newId('link')];
      const now = Date.now();
      await stores().pageSessions.createLink('default', 'run-1', late, now + 50_000);
      await stores().pageSessions.createLink('default', 'run-1', link, now + 60_000);
      const given = Array.from({ length: 4 }, () => newId('session'));
      const session = (sessionHash: string) => ({ sessionHash, expiresAtMs: now + 90_000 });
      const consume = (linkHash: string, atMs: number, hash = newId('session')) =>
        stores().pageSessions.consumeLink({ runId: 'run-1', linkHash }, atMs, session(hash));
      const opened = await Promise.all(given.map((hash) => consume(link, now, hash)));
      expect(opened.filter(Boolean)).toEqual([true]);
      const found = await Promise.all(
        given.map((hash) => stores().pageSessions.findSession(hash, now)),
      );
      expect(found).toEqual(
        opened.map((isOpen) => (isOpen ? { tenant: 'default', runId: 'run-1' } : undefined)),
      );
      expect(await consume(late, now + 50_000)).toBe(false);
      expect(await consume("' OR '1'='1", now)).toBe(false);
    });

    it('architecture §10 a link opens no other run', async () => {
      const { pageSessions } = stores();
      const [linkHash, sessionHash] = [newId('link'), newId('session')];
      const now = Date.now();
      await pageSessions.createLink('acme', 'run-1', linkHash, now + 60_000);
      const session = { sessionHash, expiresAtMs: now + 60_000 };
      expect(await pageSessions.consumeLink({ runId: 'run-2', linkHash }, now, session)).toBe(
        false,
      );
      expect(await pageSessions.consumeLink({ runId: 'run-1', linkHash }, now, session)).toBe(true);
    });

    /** Gives the hash of the session. */
    async function openRun(tenant: string, runId: string, lifeMs = 60_000): Promise<string> {
      const [linkHash, sessionHash] = [newId('link'), newId('session')];
      const now = Date.now();
      await stores().pageSessions.createLink(tenant, runId, linkHash, now + 60_000);
      const session = { sessionHash, expiresAtMs: now + lifeMs };
      await stores().pageSessions.consumeLink({ runId, linkHash }, now, session);
      return sessionHash;
    }

    it('architecture §10 a session is found until its time', async () => {
      const session = await openRun('acme', 'run-2');
      const now = Date.now();
      expect(await stores().pageSessions.findSession(session, now)).toEqual({
        tenant: 'acme',
        runId: 'run-2',
      });
      expect(await stores().pageSessions.findSession(session, now + 60_000)).toBeUndefined();
    });

    // [I109]
    it('architecture §10 links and sessions of a run are revoked, and no others', async () => {
      const { pageSessions } = stores();
      const run = refTo(newId('run'));
      const now = Date.now();
      const session = await openRun(run.tenant, run.runId);
      const others = [
        await openRun(run.tenant, newId('run')),
        await openRun(newId('tenant'), run.runId),
      ];
      const late = await openRun(run.tenant, run.runId, -1);
      const [link, lateLink] = [newId('link'), newId('link')];
      await pageSessions.createLink(run.tenant, run.runId, link, now + 60_000);
      await pageSessions.createLink(run.tenant, run.runId, lateLink, now - 1);
      const revoked = await pageSessions.revoke(run);
      expect(revoked).toMatchObject({ links: 1, sessions: 1 });
      expect(new Set(revoked.sessionHashes)).toEqual(new Set([session, late]));
      expect(await pageSessions.findSession(session, now)).toBeUndefined();
      for (const other of others)
        expect(await pageSessions.findSession(other, now)).toMatchObject({});
      const opened = { sessionHash: newId('session'), expiresAtMs: now + 60_000 };
      const given = { runId: run.runId, linkHash: link };
      expect(await pageSessions.consumeLink(given, now, opened)).toBe(false);
      expect(await pageSessions.revoke(run)).toEqual({ links: 0, sessions: 0, sessionHashes: [] });
    });

    // [I109]
    it('architecture §10 a link that is consumed while it is revoked leaves no session', async () => {
      const { pageSessions } = stores();
      const now = Date.now();
      /** The revocation comes before, between and after those that open. */
      const race = async (at: number): Promise<void> => {
        const run = refTo(newId('run'));
        const pairs = Array.from({ length: 4 }, () => [newId('link'), newId('session')] as const);
        for (const [link] of pairs)
          await pageSessions.createLink(run.tenant, run.runId, link, now + 60_000);
        const steps = pairs.map(([linkHash, sessionHash]) => async () => {
          const session = { sessionHash, expiresAtMs: now + 60_000 };
          await pageSessions.consumeLink({ runId: run.runId, linkHash }, now, session);
        });
        steps.splice(at % 5, 0, async () => void (await pageSessions.revoke(run)));
        await Promise.all(steps.map((step) => step()));
        for (const [, session] of pairs)
          expect(await pageSessions.findSession(session, now)).toBeUndefined();
      };
      await Promise.all(Array.from({ length: ROUNDS }, (_, at) => race(at)));
    });

    // [I58]
    it('architecture §10 a link that signs in does so once and not after its time', async () => {
      const sessions = stores().pageSessions;
      const [link, late] = [newId('link'), newId('link')];
      const now = Date.now();
      await sessions.createHostLink('acme', late, now + 50_000);
      await sessions.createHostLink('acme', link, now + 60_000);
      const given = Array.from({ length: 4 }, () => newId('session'));
      const session = (sessionHash: string) => ({ sessionHash, expiresAtMs: now + 90_000 });
      const opened = await Promise.all(
        given.map((hash) => sessions.consumeHostLink(link, now, session(hash))),
      );
      expect(opened.filter(Boolean)).toEqual([{ tenant: 'acme' }]);
      const found = await Promise.all(given.map((hash) => sessions.findHostSession(hash, now)));
      expect(found).toEqual(opened);
      const tooLate = session(newId('session'));
      expect(await sessions.consumeHostLink(late, now + 50_000, tooLate)).toBeUndefined();
      expect(await sessions.findHostSession(tooLate.sessionHash, now)).toBeUndefined();
    });

    it('architecture §10 a session of the host is found until its time or until it is ended', async () => {
      const sessions = stores().pageSessions;
      const [first, second] = [newId('session'), newId('session')];
      const now = Date.now();
      await sessions.createHostSession('acme', first, now + 60_000);
      await sessions.createHostSession('acme', second, now + 60_000);
      expect(await sessions.findHostSession(first, now)).toEqual({ tenant: 'acme' });
      expect(await sessions.findHostSession(first, now + 60_000)).toBeUndefined();
      await sessions.endHostSession(first);
      expect(await sessions.findHostSession(first, now)).toBeUndefined();
      expect(await sessions.findHostSession(second, now)).toEqual({ tenant: 'acme' });
    });

    it('architecture §10 what is of a run signs in nowhere, and the other way round', async () => {
      const sessions = stores().pageSessions;
      const [ofRun, ofHost] = [newId('token'), newId('token')];
      const now = Date.now();
      await sessions.createLink('acme', 'run-1', ofRun, now + 60_000);
      await sessions.createHostLink('acme', ofHost, now + 60_000);
      await sessions.createHostSession('acme', ofHost, now + 60_000);
      const session = { sessionHash: newId('session'), expiresAtMs: now + 60_000 };
      expect(await sessions.consumeHostLink(ofRun, now, session)).toBeUndefined();
      expect(await sessions.findHostSession(ofRun, now)).toBeUndefined();
      const linked = { runId: 'run-1', linkHash: ofHost };
      expect(await sessions.consumeLink(linked, now, session)).toBe(false);
      expect(await sessions.findSession(ofHost, now)).toBeUndefined();
    });
  });
}
