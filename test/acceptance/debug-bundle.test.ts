// debug-bundle.md on a real host: a run as one document, which says the same as every other read of it and nothing else.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DebugBundle } from '../../schemas/types.generated.ts';
import { validate } from '../../src/wire/validators.ts';
import { agentNode, definition, edge, node } from '../support/definitions.ts';
import { startTestHost, TEST_API_KEY, type TestHost } from '../support/host.ts';
import { writeCaller, writeDefinition } from '../support/opensentience/agent-folders.ts';

const AGENT = 'local.bundles.clerk';
const SECRET = 'sk-canary0123456789abcdef';
const SENSITIVE = 'the-word-that-opens-doors';
const TOLD = definition(
  'told',
  [
    agentNode('think', AGENT),
    node('gate', 'core.approvalGate', { config: { title: 'Shall it?' } }),
  ],
  [edge('think', 'gate')],
  {
    variables: [
      { name: 'shown', type: 'string' },
      { name: 'word', type: 'string', sensitive: true },
    ],
  },
);
let host: TestHost;
let folder: string;
let runId: string;

const ended = ({ status }: { status: string }) =>
  ['completed', 'failed', 'cancelled'].includes(status);
const bundleOf = (of: string, query = '') =>
  host.api<DebugBundle>(`/v1/runs/${of}/debug-bundle${query}`);
const polled = async (of: string) =>
  (await host.api<{ events: unknown[] }>(`/v1/runs/${of}/events/poll`)).body.events;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'openwop-bundles-'));
  await writeCaller(join(folder, 'agents'), {
    ...{ agentId: AGENT, toolAllowlist: ['core:clock'] },
    turns: [
      { chunks: ['Let me ', 'see.'], calls: [{ toolId: 'core:clock', arguments: {} }] },
      { final: { decision: { told: true }, confidence: 1 } },
    ],
  });
  await writeDefinition(join(folder, 'definitions'), TOLD);
  host = await startTestHost({
    ...{ agentsDir: join(folder, 'agents'), fixturesDir: join(folder, 'definitions') },
  });
  runId = await host.startRun({
    workflowId: TOLD.id,
    inputs: { shown: SECRET, word: SENSITIVE, stranger: 'undeclared-value' },
    metadata: { token: SECRET },
  });
  await host.waitFor(runId, ({ status }) => status === 'waiting-approval');
});

afterAll(async () => {
  await host?.stop();
  await rm(folder, { recursive: true, force: true });
});

describe('debug-bundle.md §The bundle', () => {
  it('is offered by discovery at both places', async () => {
    const { body } = await host.api<{ debugBundle: object; capabilities: object }>(
      '/.well-known/openwop',
    );
    expect(body.debugBundle).toEqual({ supported: true });
    expect(body.capabilities).toMatchObject({ debugBundle: { supported: true } });
  });

  it('of a run that waits, and of one that has ended: the same as state and poll say', async () => {
    for (const isEnded of [false, true]) {
      if (isEnded) {
        const body = { resumeValue: { action: 'accept' } };
        await host.api(`/v1/runs/${runId}/interrupts/gate`, { body });
        await host.waitFor(runId, ended);
      }
      const { status, headers, body } = await bundleOf(runId);
      expect([status, headers.get('cache-control')]).toEqual([200, 'no-store']);
      expect(validate.debugBundle(body)).toMatchObject({ ok: true });
      expect(body.run).toEqual((await host.api(`/v1/runs/${runId}`)).body);
      expect(body.events).toEqual(await polled(runId));
      expect(body.events.length).toBeGreaterThan(10);
      expect(body.metrics).toMatchObject({ eventCount: body.events.length, nodeCount: 2 });
      expect(body.spans).toEqual([]);
      expect(body).not.toHaveProperty('truncated');
    }
  });

  it('its cost is what the log says of usage', async () => {
    const { body } = await bundleOf(runId);
    const { metrics } = (
      await host.api<{ metrics?: { openwopCost?: object } }>(`/v1/runs/${runId}`)
    ).body;
    expect(body.metrics.openwopCost).toEqual(metrics?.openwopCost ?? null);
  });

  it('holds no secret, and says that such were masked before they were stored', async () => {
    const { text, body } = await bundleOf(runId);
    expect([body.redactionApplied, body.redactionMode]).toEqual([true, 'mask']);
    expect(text).toContain('[REDACTED:credential]');
    for (const never of [SECRET, SENSITIVE, 'undeclared-value', TEST_API_KEY])
      expect(text).not.toContain(never);
  });

  it.each([0, 1, 5])(
    'of %d events at most it has the first, and says that it is cut',
    async (n) => {
      const { body } = await bundleOf(runId, `?maxEvents=${n}`);
      expect(validate.debugBundle(body)).toMatchObject({ ok: true });
      expect(body.events).toEqual((await polled(runId)).slice(0, n));
      expect(body).toMatchObject({
        ...{ truncated: true, truncatedReason: 'events_truncated_to_max_events' },
        metrics: { eventCount: n },
      });
    },
  );
});

describe('debug-bundle.md §Errors', () => {
  it.each(['-1', '1.5', 'all', ''])('maxEvents=%s', async (n) => {
    const { status, body } = await bundleOf(runId, `?maxEvents=${n}`);
    expect([status, (body as unknown as { error: string }).error]).toEqual([
      400,
      'validation_error',
    ]);
  });

  it('an unknown run', async () => {
    const { status, body } = await bundleOf('run-unknown');
    expect([status, (body as unknown as { error: string }).error]).toEqual([404, 'run_not_found']);
  });

  it('nobody without the key', async () => {
    const headers = { authorization: '' };
    const { status } = await host.api(`/v1/runs/${runId}/debug-bundle`, { headers });
    expect(status).toBe(401);
  });
});
