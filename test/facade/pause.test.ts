// rest-endpoints.md over HTTP: pausing and resuming a run on a real host.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { chain, node } from '../support/definitions.ts';
import { startTestHost, type TestHost } from '../support/host.ts';
import { checkInvariants } from '../support/invariants.ts';

const builtIn = {
  definitions: [
    chain('ask', [
      node('s', 'core.start'),
      node('gate', 'core.approvalGate'),
      node('e', 'core.end'),
    ]),
  ],
};
interface Told {
  readonly runId: string;
  readonly status?: string;
  readonly error?: string;
  readonly details?: { readonly runStatus?: string; readonly pausedAt?: string };
}

let host: TestHost;
beforeAll(async () => {
  host = await startTestHost({ builtIn });
});
afterAll(() => host?.stop());

const tell = (runId: string, verb: 'pause' | 'resume', body: object = {}, key = '') =>
  host.api<Told>(`/v1/runs/${runId}:${verb}`, { body, headers: { 'idempotency-key': key } });

async function waiting(): Promise<string> {
  const runId = await host.startRun({ workflowId: 'ask' });
  await host.waitFor(runId, ({ status }) => status === 'waiting-approval');
  return runId;
}

describe('POST /v1/runs/{runId}:pause and :resume', () => {
  it('holds a run that waits for a human, whose answer is kept, and lets it go on', async () => {
    const runId = await waiting();
    const paused = await tell(runId, 'pause', {
      reason: 'sk-secret-of-somebody',
      drainPolicy: 'immediate',
    });
    expect([paused.status, paused.body]).toEqual([202, { runId, status: 'paused' }]);
    await host.waitFor(runId, ({ status }) => status === 'paused');
    const answered = await host.api(`/v1/runs/${runId}/interrupts/gate`, {
      body: { resumeValue: { action: 'accept' } },
    });
    expect(answered.status).toBe(200);
    const held = await host.api<{ status: string }>(`/v1/runs/${runId}`);
    expect(held.body.status).toBe('paused');
    const resumed = await tell(runId, 'resume', { reason: 'done' });
    expect([resumed.status, resumed.body]).toEqual([202, { runId, status: 'running' }]);
    await host.waitFor(runId, ({ status }) => status === 'completed');
    const { text } = await host.api(`/v1/runs/${runId}/events`, {
      headers: { accept: 'application/json' },
    });
    const { events } = JSON.parse(text) as {
      events: { type: string; payload: { drainPolicy?: string; reason?: string } }[];
    };
    const held2 = events.filter(({ type }) => /^run\.(paused|resumed)$/.test(type));
    expect(held2.map(({ type, payload }) => [type, payload.drainPolicy])).toEqual([
      ['run.paused', 'immediate'],
      ['run.resumed', undefined],
    ]);
    expect(text).not.toContain('sk-secret-of-somebody');
    await checkInvariants(host, runId);
  });

  it('409 says what the run is: paused already, not paused, ended', async () => {
    const runId = await waiting();
    const early = await tell(runId, 'resume');
    expect([early.status, early.body.error, early.body.details?.runStatus]).toEqual([
      409,
      'run_state_conflict',
      'waiting-approval',
    ]);
    expect((await tell(runId, 'pause')).status).toBe(202);
    const second = await tell(runId, 'pause');
    expect([second.status, second.body.details?.runStatus]).toEqual([409, 'paused']);
    await host.waitFor(runId, ({ status }) => status === 'paused');
    const third = await tell(runId, 'pause');
    const { events } = (
      await host.api<{ events: { type: string; timestamp: string }[] }>(
        `/v1/runs/${runId}/events/poll`,
      )
    ).body;
    const told = events.find(({ type }) => type === 'run.paused');
    expect(third.body.details).toEqual({ runStatus: 'paused', pausedAt: told?.timestamp });
    await host.api(`/v1/runs/${runId}/cancel`, { body: {} });
    await host.waitFor(runId, ({ status }) => status === 'cancelled');
    const late = await tell(runId, 'pause');
    expect([late.status, late.body.details?.runStatus]).toEqual([409, 'cancelled']);
  });

  it('the same key gets the first answer again', async () => {
    const runId = await waiting();
    const first = await tell(runId, 'pause', { reason: 'r' }, 'pause-key-1');
    const again = await tell(runId, 'pause', { reason: 'r' }, 'pause-key-1');
    expect([again.status, again.text]).toEqual([202, first.text]);
    expect(again.headers.get('openwop-idempotent-replay')).toBe('true');
    const other = await tell(runId, 'pause', { reason: 'other' }, 'pause-key-1');
    expect(other.status).toBe(409);
    await host.api(`/v1/runs/${runId}/cancel`, { body: {} });
  });

  it('a key that nothing holds any more pauses once more', async () => {
    const runId = await waiting();
    for (const verb of ['pause', 'resume', 'pause'] as const) {
      await host.stores.idempotency.expire(0);
      expect((await tell(runId, verb, {}, `${verb}-key`)).status).toBe(202);
      await host.waitFor(runId, ({ status }) => (status === 'paused') === (verb === 'pause'));
    }
    await host.api(`/v1/runs/${runId}/cancel`, { body: {} });
  });

  it.each([[{ drainPolicy: 'later' }], [{ because: 'r' }], [{ reason: 'x'.repeat(5_000) }]])(
    '400 for %j',
    async (body) => {
      const runId = await waiting();
      expect((await tell(runId, 'pause', body)).status).toBe(400);
      expect((await host.api('/v1/runs/run-unknown:pause', { body: {} })).status).toBe(404);
      await host.api(`/v1/runs/${runId}/cancel`, { body: {} });
    },
  );

  it('discovery offers both policies', async () => {
    const { body } = await host.api<{ runs: object }>('/.well-known/openwop');
    expect(body.runs).toEqual({
      pauseResume: { supported: true, drainPolicies: ['drain-current-node', 'immediate'] },
    });
  });
});
