// HTTP suite: discovery, the life of a run, cancel, an agent run (capabilities.md; rest-endpoints.md,
// run-event.schema.json, RFC 0002).
import { describe, expect, it } from 'vitest';
import type { RunOverviewList } from '../../schemas/types.generated.ts';
import { validate } from '../../src/wire/validators.ts';
import {
  ended,
  waiting,
  readLog,
  types,
  expectLawful,
  type Envelope,
  type Suite,
} from './suite-parts.ts';
import { AGENT, ASKING_AGENT } from './suite-workflows.ts';

export function discoveryTests({ host }: Suite): void {
  describe('capabilities.md: discovery', () => {
    it('is public, valid, cacheable, and says nothing that is not so', async () => {
      const answer = await host().api<Record<string, unknown>>('/.well-known/openwop', {
        headers: { authorization: '' },
      });
      expect(answer.status).toBe(200);
      expect(validate.capabilities(answer.body)).toMatchObject({ ok: true });
      expect(answer.headers.get('cache-control')).toContain('max-age');
      for (const absent of ['webhooks', 'testing', 'memory'])
        expect(answer.body).not.toHaveProperty(absent);
      expect(answer.body).toMatchObject({
        protocolVersion: '1.0',
        agents: {
          supported: true,
          liveRuntime: { supported: true },
          decisionEvents: true,
          handoffEvents: true,
        },
        aiProviders: { supported: expect.arrayContaining(['scripted']) as unknown },
        fixtures: [],
      });
      expect((answer.body.capabilities as Record<string, unknown>).agents).toEqual(
        answer.body.agents,
      );
      expect(answer.text).not.toContain('"edit"');
      const again = await host().api('/.well-known/openwop', {
        headers: { authorization: '', 'if-none-match': answer.headers.get('etag') ?? '' },
      });
      expect([again.status, again.text]).toEqual([304, '']);
    });

    it('openapi.json is public, 3.1, and every operation in it answers', async () => {
      const { status, body } = await host().api<{
        openapi: string;
        servers: { url: string }[];
        paths: Record<string, Record<string, unknown>>;
      }>('/v1/openapi.json', { headers: { authorization: '' } });
      expect(status).toBe(200);
      expect(body.openapi).toMatch(/^3\.[1-9]/);
      expect(JSON.stringify(body.servers)).not.toContain('/v1');
      for (const [path, operations] of Object.entries(body.paths)) {
        for (const method of Object.keys(operations)) {
          const address = path.replace(/\{\w+\}/g, 'unknown');
          const answer = await host().api<Envelope>(address, {
            method: method.toUpperCase(),
            headers: { accept: 'application/json' },
          });
          const said = answer.status === 404 ? answer.body?.error : 'answered';
          // An operation may say so of what it looked for; where no operation is, no method is named either.
          if (said === 'not_found') {
            const { headers } = await host().api(address, { method: 'PUT' });
            expect([path, headers.get('allow')?.split(', ')]).toEqual([
              path,
              expect.arrayContaining([method.toUpperCase()]),
            ]);
          }
          expect(answer.status).not.toBe(405);
        }
      }
    });

    it('workflows and agents are listed as they were loaded', async () => {
      const workflow = await host().api<{ id: string; nodes: unknown[] }>('/v1/workflows/approval');
      expect([workflow.status, workflow.body.id, workflow.body.nodes.length]).toEqual([
        200,
        'approval',
        1,
      ]);
      const agents = await host().api('/v1/agents');
      expect(validate.agentInventory(agents.body)).toMatchObject({ ok: true });
      expect(agents.body).toMatchObject({
        total: 2,
        agents: [ASKING_AGENT, AGENT].map((agentId) => ({
          agentId,
          toolAllowlist: ['core:json.query'],
        })),
      });
      expect(agents.text).not.toContain('Decide on refunds.');
      expect((await host().api(`/v1/agents/${AGENT}`)).body).toMatchObject({
        agentId: AGENT,
        hasHandoffSchemas: false,
      });
    });

    it('traceparent is echoed (observability.md §Trace context)', async () => {
      const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
      const answer = await host().api('/healthz', { headers: { traceparent } });
      expect(answer.headers.get('traceparent')).toBe(traceparent);
    });
  });
}

export function lifecycleTests({ host, log }: Suite): void {
  describe('rest-endpoints.md, run-event.schema.json: a run and its log', () => {
    it('noop: 201 with absolute URLs, found at once, four events, completed', async () => {
      const created = await host().api<{
        runId: string;
        status: string;
        eventsUrl: string;
        statusUrl: string;
      }>('/v1/runs', {
        body: { workflowId: 'noop' },
      });
      expect(created.status).toBe(201);
      expect(validate.runCreateResponse(created.body)).toMatchObject({ ok: true });
      const { runId } = created.body;
      expect(created.body.statusUrl).toBe(`${host().url}/v1/runs/${runId}`);
      expect((await host().api(`/v1/runs/${runId}`)).status).toBe(200);
      const snapshot = await host().waitFor(runId, ended);
      expect(validate.snapshot(snapshot)).toMatchObject({ ok: true });
      expect(snapshot).toMatchObject({ runId, workflowId: 'noop', status: 'completed' });
      expect(snapshot.completedAt).toBe(snapshot.endedAt);
      const events = await log(runId);
      expectLawful(events);
      expect(types(events)).toEqual([
        'run.started',
        'node.started',
        'node.completed',
        'run.completed',
      ]);
    });

    it('nested input arrives deep-equal in variables; undeclared inputs in no event', async () => {
      const payload = { a: [1, { b: 'ü' }], c: null };
      const runId = await host().startRun({
        workflowId: 'identity',
        inputs: { payload, stranger: 'unseen-value' },
      });
      const snapshot = await host().waitFor(runId, ended);
      expect(snapshot.variables?.payload).toEqual(payload);
      expect((await readLog(host(), runId)).text).not.toContain('unseen-value');
    });

    it('a failing node: node.failed with an error object, run.failed, the snapshot says why', async () => {
      const runId = await host().startRun({ workflowId: 'failing' });
      const snapshot = await host().waitFor(runId, ended);
      expect(snapshot).toMatchObject({
        status: 'failed',
        error: { code: 'conformance_test_failure' },
      });
      const events = await log(runId);
      expectLawful(events);
      const failed = events.find(({ type }) => type === 'node.failed');
      expect(failed?.payload).toMatchObject({
        nodeId: 'bad',
        error: { code: 'conformance_test_failure' },
      });
      expect(events.at(-1)?.type).toBe('run.failed');
    });

    it('while a delay sleeps the run is running; a chain completes in order', async () => {
      const resting = await host().startRun({ workflowId: 'resting' });
      await host().waitFor(resting, ({ status }) => status === 'running');
      const three = await host().startRun({ workflowId: 'three' });
      await host().waitFor(three, ended);
      const done = (await log(three)).filter(({ type }) => type === 'node.completed');
      expect(done.map(({ nodeId }) => nodeId)).toEqual(['a', 'b', 'c']);
      expect((await host().waitFor(resting, ended)).status).toBe('completed');
    });

    it('repeated reads of a finished run are the same bytes', async () => {
      const runId = await host().startRun({ workflowId: 'three' });
      await host().waitFor(runId, ended);
      const first = await readLog(host(), runId);
      expect((await readLog(host(), runId)).text).toBe(first.text);
      expect(first.isComplete).toBe(true);
    });

    it('lists runs newest first, by status, in pages', async () => {
      const tag = `list-${Date.now()}`;
      const runIds: string[] = [];
      for (let count = 0; count < 3; count++)
        runIds.push(await host().startRun({ workflowId: 'approval', tags: [tag] }));
      for (const runId of runIds) await host().waitFor(runId, waiting);
      interface Page {
        runs: { runId: string; status: string; tags: string[] }[];
        nextCursor?: string;
      }
      const seen: string[] = [];
      let cursor = '';
      do {
        const { status, body } = await host().api<Page>(
          `/v1/runs?status=waiting-approval&workflowId=approval&limit=2${cursor}`,
        );
        expect(status).toBe(200);
        expect(body.runs.every((run) => run.status === 'waiting-approval')).toBe(true);
        seen.push(...body.runs.filter(({ tags }) => tags.includes(tag)).map(({ runId }) => runId));
        cursor = body.nextCursor === undefined ? '' : `&cursor=${body.nextCursor}`;
      } while (cursor !== '');
      expect(seen).toEqual([...runIds].reverse());
      for (const bad of [
        'status=odd',
        'limit=0',
        'limit=201',
        'cursor=%00',
        'cursor=abc',
        'limit=1&limit=2',
      ]) {
        const { status, body } = await host().api<Envelope>(`/v1/runs?${bad}`);
        expect([bad, status, body.error]).toEqual([bad, 400, 'validation_error']);
      }
      for (const runId of runIds) await host().api(`/v1/runs/${runId}/cancel`, { method: 'POST' });
    });
  });
}

/** The extension: what people look at. */
export function overviewTests({ host, resolve }: Suite): void {
  const at = '/v1/host/openwop-temporal/runs';
  describe('runs with what each waits for', () => {
    it('a run that waits is there with its question, above all others when its time is shortest; answered it is gone', async () => {
      const early = await host().startRun({ workflowId: 'approval' });
      await host().waitFor(early, waiting);
      const runId = await host().startRun({
        workflowId: 'approval',
        ...{ tags: ['desk'], configurable: { runTimeoutMs: 600_000 } },
      });
      const { interrupt } = await host().waitFor(runId, waiting);
      const list = () => host().api<RunOverviewList>(`${at}?waiting=true&workflowId=approval`);
      await expect.poll(async () => (await list()).body.runs[0]?.runId).toBe(runId);
      const { status, body } = await list();
      expect(status).toBe(200);
      expect(validate.runOverviewList(body)).toMatchObject({ ok: true });
      expect(body.runs[0]).toMatchObject({
        ...{ runId, workflowId: 'approval', workflowName: 'approval', tags: ['desk'] },
        status: 'waiting-approval',
        waiting: [
          {
            ...{ nodeId: 'gate', interruptId: interrupt?.interruptId, title: 'Ship it?' },
            ...{ kind: 'approval', forPerson: true, deadline: interrupt?.deadline },
            requestedAt: interrupt?.requestedAt,
          },
        ],
      });
      expect(body.runs.findIndex((run) => run.runId === early)).toBeGreaterThan(0);
      await resolve(runId, 'gate', { action: 'accept' });
      await host().waitFor(runId, ended);
      expect((await list()).body.runs.map((run) => run.runId)).not.toContain(runId);
      const all = await host().api<RunOverviewList>(`${at}?status=completed&limit=1`);
      expect(validate.runOverviewList(all.body)).toMatchObject({ ok: true });
      expect(all.body.runs).toMatchObject([{ runId, status: 'completed', waiting: [] }]);
      expect(Date.parse(all.body.runs[0]?.endedAt ?? '')).toBeGreaterThan(0);
      await host().api(`/v1/runs/${early}/cancel`, { method: 'POST' });
    });

    it('what a list cannot be asked for is 400; without a key it is 401', async () => {
      const newest = Buffer.from('[1,"run"]').toString('base64url');
      for (const bad of [
        ...['status=odd', 'limit=0', 'limit=201', 'limit=x', 'waiting=1', 'waiting='],
        ...['cursor=%00', 'cursor=abc', `waiting=true&cursor=${newest}`, 'limit=1&limit=2'],
      ]) {
        const { status, body } = await host().api<Envelope>(`${at}?${bad}`);
        expect([bad, status, body.error]).toEqual([bad, 400, 'validation_error']);
      }
      const none = await host().api<RunOverviewList>(`${at}?workflowId=%00%3C%25b%3E%27%3B--`);
      expect([none.status, none.body]).toEqual([200, { runs: [] }]);
      const unknown = await host().api<Envelope>(at, { headers: { authorization: '' } });
      expect([unknown.status, unknown.body.error]).toEqual([401, 'unauthenticated']);
    });
  });
}

export function cancelTests({ host, log }: Suite): void {
  describe('rest-endpoints.md: cancel', () => {
    it.each([
      ['sleeping', 'running'],
      ['approval', 'waiting-approval'],
    ])('a run that is %s ends cancelled, with one terminal event', async (workflowId, status) => {
      const runId = await host().startRun({ workflowId });
      await host().waitFor(
        runId,
        (snapshot) =>
          snapshot.status === status && Object.keys(snapshot.nodeStates ?? {}).length > 0,
      );
      const answer = await host().api<{ status: string }>(`/v1/runs/${runId}/cancel`, {
        body: { reason: 'no longer needed' },
      });
      expect(answer.status).toBe(200);
      expect(['cancelling', 'cancelled']).toContain(answer.body.status);
      expect((await host().waitFor(runId, ended)).status).toBe('cancelled');
      const events = await log(runId);
      expectLawful(events);
      expect(events.at(-1)).toMatchObject({
        type: 'run.cancelled',
        payload: { reason: 'no longer needed' },
      });
      expect((await host().api(`/v1/runs/${runId}/cancel`, { method: 'POST' })).body).toEqual({
        runId,
        status: 'cancelled',
      });
    });

    it('of a finished run changes nothing and tells its status; a body with unknown fields is 400', async () => {
      const runId = await host().startRun({ workflowId: 'noop' });
      await host().waitFor(runId, ended);
      expect((await host().api(`/v1/runs/${runId}/cancel`, { method: 'POST' })).body).toEqual({
        runId,
        status: 'completed',
      });
      expect((await host().api(`/v1/runs/${runId}/cancel`, { body: { why: 1 } })).status).toBe(400);
    });

    it('with an Idempotency-Key the answer is kept', async () => {
      const runId = await host().startRun({ workflowId: 'sleeping' });
      const cancel = () =>
        host().api(`/v1/runs/${runId}/cancel`, {
          body: {},
          headers: { 'idempotency-key': `c-${runId}` },
        });
      const first = await cancel();
      const again = await cancel();
      expect(again.headers.get('openwop-idempotent-replay')).toBe('true');
      expect(again.text).toBe(first.text);
      await host().waitFor(runId, ended);
    });
  });
}

export function agentTests({ host, log, resolve }: Suite): void {
  describe('RFC 0002 §F, RFC 0077: an agent run', () => {
    it('reasons aloud, is not sure, waits for a human, and goes on with the ratified decision', async () => {
      const runId = await host().startRun({ workflowId: 'refund', inputs: { order: 'o-1' } });
      const snapshot = await host().waitFor(runId, waiting);
      expect(snapshot).toMatchObject({
        status: 'waiting-approval',
        currentNodeId: 'triage',
        agent: { agentId: AGENT },
      });
      const before = await log(runId);
      const deltas = before.filter(({ type }) => type === 'agent.reasoning.delta');
      expect(deltas.length).toBeGreaterThan(0);
      const reasoned = before.find(({ type }) => type === 'agent.reasoned');
      expect(deltas.map(({ payload }) => (payload as { delta: string }).delta).join('')).toBe(
        (reasoned?.payload as { reasoning: string }).reasoning,
      );
      const suspended = before.find(({ type }) => type === 'node.suspended');
      expect(suspended?.payload).toMatchObject({
        kind: 'low-confidence',
        reason: 'low-confidence',
        agentId: AGENT,
        observed: 0.55,
        threshold: 0.7,
      });
      expect((await resolve(runId, 'triage', { action: 'edit-accept' })).status).toBe(400);
      expect((await resolve(runId, 'triage', { action: 'accept' })).status).toBe(200);
      expect((await host().waitFor(runId, ended)).status).toBe('completed');
      const events = await log(runId);
      expectLawful(events);
      expect(types(events).filter((type) => type === 'agent.decided').length).toBe(2);
    });

    it('D-7 agentId runs the agent as the root of a run', async () => {
      const runId = await host().startRun({
        agentId: AGENT,
        inputs: { order: 'o-2' },
        configurable: { escalationThreshold: 0.5 },
      });
      expect((await host().waitFor(runId, ended)).status).toBe('completed');
      const events = await log(runId);
      expectLawful(events);
      const opened = events.find(({ type }) => type === 'agent.invocation.started');
      expect(opened?.payload).toMatchObject({ agentId: AGENT, source: 'run-api' });
    });
  });
}
