// The third story of examples/: agents that call agents (examples/team), on a host of its own.
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RunSnapshot } from '../../schemas/types.generated.ts';
import { ended, expectLawful, readLog, waiting } from '../facade/suite-parts.ts';
import { startTestHost, until, type TestHost } from '../support/host.ts';
import { checkInvariants } from '../support/invariants.ts';

const at = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));
let host: TestHost;

beforeAll(async () => {
  host = await startTestHost({
    fixturesDir: at('examples/team/definitions'),
    agentsDir: at('examples/team/agents'),
  });
});
afterAll(() => host.stop());

interface Below {
  readonly runId: string;
  readonly questions: readonly unknown[];
}

interface Session {
  readonly runs: readonly { readonly runId: string }[];
}

describe('examples/team', () => {
  it('two researchers work at once, a person confirms each, and the editor answers; all in one session', async () => {
    const created = await host.api<{ runId: string; sessionId: string }>('/v1/runs', {
      body: { workflowId: 'research' },
    });
    const { runId, sessionId } = created.body;
    let children: string[] = [];
    await until(async () => {
      const { body } = await host.api<Session>(`/v1/host/openwop-temporal/sessions/${sessionId}`);
      children = body.runs.map((run) => run.runId).filter((id) => id !== runId);
      return children.length === 2;
    }, 'both researchers have runs');
    const path = `/v1/host/openwop-temporal/runs/${runId}/children`;
    for (const child of children) await host.waitFor(child, waiting);
    const below = await host.api<{ runs: Below[] }>(path);
    expect(below.body.runs.map((one) => one.runId).sort()).toEqual([...children].sort());
    for (const { questions } of below.body.runs)
      expect(questions).toMatchObject([{ kind: 'low-confidence', nodeId: 'agent' }]);
    for (const child of children) {
      const { body } = await host.api<RunSnapshot>(`/v1/runs/${child}`);
      expect(body.parentRunId).toBe(runId);
      await host.waitFor(child, waiting);
      const answered = await host.api(`/v1/runs/${child}/interrupts/agent`, {
        body: { resumeValue: { action: 'accept' } },
      });
      expect(answered.status).toBe(200);
    }
    const { status, outputs } = await host.waitFor(runId, ended);
    expect([status, outputs]).toEqual([
      'completed',
      expect.objectContaining({
        decision: expect.objectContaining({ sources: ['the bridge', 'the river'] }) as unknown,
      }),
    ]);
    for (const id of [runId, ...children]) {
      expectLawful((await readLog(host, id)).events);
      await checkInvariants(host, id);
    }
  });
});
