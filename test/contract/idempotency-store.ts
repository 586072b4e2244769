// What every IdempotencyStore does (idempotency.md §Layer 1).
import { describe, expect, it } from 'vitest';
import type { GivenStores } from './given.ts';
import { newClaim, newId, newRun } from './given.ts';
import { withClockOff } from '../support/wall-clock.ts';

const LEASE_MS = 60_000;
/** A lease that is over when it is given. */
const NO_LEASE_MS = 0;
const HOUR_MS = 3_600_000;

export function idempotencyStoreContract(stores: GivenStores): void {
  const store = (): ReturnType<GivenStores>['idempotency'] => stores().idempotency;

  async function claimed(claim: ReturnType<typeof newClaim>, leaseMs: number): Promise<string> {
    const outcome = await store().claim('default', claim, leaseMs);
    if (outcome.kind !== 'claimed') throw new Error(outcome.kind);
    return outcome.owner;
  }

  /** Abandoned: its lease is over. */
  async function claimedLeft(): Promise<ReturnType<typeof newClaim>> {
    const claim = newClaim();
    await claimed(claim, NO_LEASE_MS);
    return claim;
  }

  describe('IdempotencyStore', () => {
    it('idempotency.md §Layer 1: while the first request runs, the same one is in flight for a second up to the lease', async () => {
      const claim = newClaim();
      await claimed(claim, LEASE_MS);
      const outcome = await store().claim('default', { ...claim }, LEASE_MS);
      if (outcome.kind !== 'in-flight') throw new Error(outcome.kind);
      expect(outcome.retryAfterSeconds).toBeGreaterThanOrEqual(1);
      expect(outcome.retryAfterSeconds).toBeLessThanOrEqual(LEASE_MS / 1000);
    });

    // [I42]
    it('idempotency.md §Layer 1: another body is a mismatch: running, abandoned and answered', async () => {
      for (const leaseMs of [LEASE_MS, NO_LEASE_MS]) {
        const claim = newClaim();
        const owner = await claimed(claim, leaseMs);
        const other = { ...claim, requestDigest: 'sha256:two' };
        expect(await store().claim('default', other, LEASE_MS)).toEqual({ kind: 'mismatch' });
        await store().complete('default', claim, owner, { status: 200, body: null });
        expect(await store().claim('default', other, LEASE_MS)).toEqual({ kind: 'mismatch' });
      }
    });

    it('idempotency.md §Layer 1: what stands against a request can be asked without claiming', async () => {
      const claim = newClaim();
      const other = { ...claim, requestDigest: 'sha256:two' };
      expect(await store().find('default', claim)).toBeUndefined();
      const owner = await claimed(claim, LEASE_MS);
      expect(await store().find('default', claim)).toBeUndefined();
      expect(await store().find('default', other)).toEqual({ kind: 'mismatch' });
      const response = { status: 201, body: { runId: 'run-1' } };
      await store().complete('default', claim, owner, response);
      expect(await store().find('default', claim)).toEqual({ kind: 'replay', response });
      expect(await store().find('another', claim)).toBeUndefined();
    });

    it('architecture §4 the run of an acceptance that was never answered can be asked without claiming', async () => {
      const claim = newClaim();
      const run = newRun();
      const first = await stores().runs.accept(run, claim);
      const accepted = { kind: 'accepted', runId: run.runId };
      expect(await store().find('default', claim)).toEqual(accepted);
      if (first.kind !== 'claimed') throw new Error(first.kind);
      await store().release('default', claim, first.owner);
      expect(await store().find('default', claim)).toEqual(accepted);
    });

    it('idempotency.md §Layer 1: a final response is replayed as it was', async () => {
      const claim = newClaim({ key: "k'\u0000\ud800 ".repeat(200) });
      const response = { status: 422, body: { z: 1, a: [null, 'ü\u0000'] } };
      await store().complete('default', claim, await claimed(claim, LEASE_MS), response);
      for (let times = 0; times < 5; times++) {
        expect(await store().claim('default', claim, LEASE_MS)).toEqual({
          kind: 'replay',
          response,
        });
      }
    });

    it('idempotency.md §Layer 1: an abandoned claim is won once by compare-and-set, and its first owner has no say', async () => {
      const claim = newClaim();
      const first = await claimed(claim, NO_LEASE_MS);
      const outcomes = await Promise.all(
        Array.from({ length: 5 }, () => store().claim('default', claim, LEASE_MS)),
      );
      expect(outcomes.filter((outcome) => outcome.kind === 'claimed')).toHaveLength(1);
      await store().complete('default', claim, first, { status: 200, body: 'stale' });
      await store().release('default', claim, first);
      expect(await store().claim('default', claim, LEASE_MS)).toMatchObject({ kind: 'in-flight' });
    });

    it('idempotency.md §Layer 1: a released claim is forgotten; an answered one is not released', async () => {
      const claim = newClaim();
      const owner = await claimed(claim, LEASE_MS);
      await store().release('default', claim, owner);
      const again = await claimed(claim, LEASE_MS);
      expect(again).not.toBe(owner);
      await store().complete('default', claim, again, { status: 200, body: 1 });
      await store().release('default', claim, again);
      expect(await store().claim('default', claim, LEASE_MS)).toMatchObject({ kind: 'replay' });
    });

    it('architecture §4 a key that is bound to an interrupt stays so when released, and its next claim tells it', async () => {
      const claim = newClaim();
      const owner = await claimed(claim, LEASE_MS);
      expect(await store().bind('default', claim, owner, 'int-1')).toBe(true);
      expect(await store().bind('default', claim, 'another', 'int-2')).toBe(false);
      await store().release('default', claim, owner);
      const again = await store().claim('default', claim, NO_LEASE_MS);
      expect(again).toMatchObject({ kind: 'claimed', boundTo: 'int-1' });
      expect(await store().bind('default', claim, owner, 'int-2')).toBe(false);
      expect(await store().claim('default', claim, LEASE_MS)).toMatchObject({
        boundTo: 'int-1',
      });
    });

    it('idempotency.md §Layer 1: tenants and endpoints have keys of their own', async () => {
      const claim = newClaim();
      await claimed(claim, LEASE_MS);
      expect(await store().claim(newId('tenant'), claim, LEASE_MS)).toMatchObject({
        kind: 'claimed',
      });
      const elsewhere = { ...claim, endpoint: 'POST /v1/runs/{runId}/cancel' };
      expect(await store().claim('default', elsewhere, LEASE_MS)).toMatchObject({
        kind: 'claimed',
      });
    });

    it.each([
      ['ahead by an hour', HOUR_MS],
      ['back by an hour', -HOUR_MS],
      ['ahead by two days', 48 * HOUR_MS],
      ['back by two days', -48 * HOUR_MS],
    ])(
      'idempotency.md §Layer 1: a process whose clock is %s neither loses a claim nor holds one for longer',
      async (_, offMs) => {
        const theirs = <Value>(work: () => Promise<Value>) => withClockOff(offMs, work);
        const waits = async (claim: ReturnType<typeof newClaim>) => {
          const outcome = await store().claim('default', claim, LEASE_MS);
          return outcome.kind === 'in-flight' ? outcome.retryAfterSeconds : Infinity;
        };
        // What it holds, it holds as long as others see; what others hold, it does not take.
        const [its, others, again] = [newClaim(), newClaim(), await claimedLeft()];
        await theirs(() => claimed(its, LEASE_MS));
        await claimed(others, LEASE_MS);
        await theirs(() => claimed(again, LEASE_MS));
        for (const claim of [its, others, again]) {
          expect(await waits(claim)).toBeLessThanOrEqual(LEASE_MS / 1000);
          expect(await theirs(() => waits(claim))).toBeLessThanOrEqual(LEASE_MS / 1000);
        }
        // What it left, others take at once; what others left, it does.
        const itsLeft = await theirs(claimedLeft);
        await claimed(itsLeft, LEASE_MS);
        const othersLeft = await claimedLeft();
        await theirs(() => claimed(othersLeft, LEASE_MS));
        expect(await theirs(() => store().expire(48 * HOUR_MS - 60_000))).toBe(0);
        expect(await waits(its)).toBeLessThanOrEqual(LEASE_MS / 1000);
      },
    );

    it('idempotency.md §Layer 1: records older than asked for are deleted and counted', async () => {
      const claim = newClaim();
      await store().complete('default', claim, await claimed(claim, LEASE_MS), {
        status: 200,
        body: 1,
      });
      expect(await store().expire(60_000)).toBe(0);
      expect(await store().expire(0)).toBeGreaterThanOrEqual(1);
      expect(await store().claim('default', claim, LEASE_MS)).toMatchObject({ kind: 'claimed' });
    });
  });
}
