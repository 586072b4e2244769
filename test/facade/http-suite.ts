// The HTTP suite (design §8): what a client can observe, on a real Temporal server. Run on PGlite, on PostgreSQL and
// under encryption by the files beside this one.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isTerminalEvent } from '../../src/core/status.ts';
import type { RunEventDoc, RunSnapshot } from '../../src/wire/types.generated.ts';
import { validate, validateEvent } from '../../src/wire/validators.ts';
import type { TestHost } from '../support/host.ts';
import { readSse, type Frame, type SseAnswer } from './sse-client.ts';
import { AGENT } from './suite-workflows.ts';

const ENDED = ['completed', 'failed', 'cancelled'];
const ended = ({ status }: RunSnapshot): boolean => ENDED.includes(status);
const waiting = ({ status }: RunSnapshot): boolean => status.startsWith('waiting-');

interface Envelope {
  readonly error: string;
  readonly details?: Record<string, unknown>;
}

/** `start` gives a ready host with the workflows of suite-workflows.ts. */
export function httpSuite(name: string, start: () => Promise<TestHost>): void {
  describe(`HTTP on ${name}`, () => {
    let host: TestHost;
    beforeAll(async () => {
      host = await start();
    }, 120_000);
    afterAll(async () => {
      await host.stop();
    }, 60_000);
    const suite: Suite = {
      host: () => host,
      auth: () => ({ authorization: `Bearer ${host.apiKey}` }),
      log: async (runId) => (await readLog(host, runId)).events,
      stream: (runId, query = '', headers = {}) =>
        readSse({
          url: `${host.url}/v1/runs/${runId}/events${query}`,
          headers: { authorization: `Bearer ${host.apiKey}`, ...headers },
        }),
      resolve: (runId, nodeId, resumeValue, key) =>
        host.api<Envelope & { status: string }>(`/v1/runs/${runId}/interrupts/${nodeId}`, {
          body: { resumeValue },
          headers: { 'idempotency-key': key ?? '' },
        }),
    };
    discoveryTests(suite);
    lifecycleTests(suite);
    streamTests(suite);
    pollTests(suite);
    cancelTests(suite);
    interruptTests(suite);
    agentTests(suite);
    pageTests(suite);
  });
}

interface Suite {
  readonly host: () => TestHost;
  readonly auth: () => Record<string, string>;
  readonly log: (runId: string) => Promise<RunEventDoc[]>;
  readonly stream: (
    runId: string,
    query?: string,
    headers?: Record<string, string>,
  ) => Promise<SseAnswer>;
  readonly resolve: (
    runId: string,
    nodeId: string,
    resumeValue: unknown,
    key?: string,
  ) => ReturnType<typeof TestHostApi>;
}

/** Only for the type of `resolve`. */
declare function TestHostApi(): Promise<{
  status: number;
  headers: Headers;
  body: Envelope & { status: string };
  text: string;
}>;

async function readLog(
  host: TestHost,
  runId: string,
): Promise<{ events: RunEventDoc[]; isComplete: boolean; text: string }> {
  const answer = await host.api<{ events: RunEventDoc[]; isComplete: boolean }>(
    `/v1/runs/${runId}/events`,
    {
      headers: { accept: 'application/json' },
    },
  );
  expect(answer.status).toBe(200);
  return { ...answer.body, text: answer.text };
}

function types(events: readonly RunEventDoc[]): string[] {
  return events.map(({ type }) => type);
}

function expectLawful(events: readonly RunEventDoc[]): void {
  expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index));
  expect(events.filter(({ type }) => isTerminalEvent(type)).length).toBe(1);
  expect(isTerminalEvent(events.at(-1)?.type ?? '')).toBe(true);
  for (const event of events) expect(validateEvent(event)).toMatchObject({ ok: true });
}

function discoveryTests({ host }: Suite): void {
  describe('spec/01 §10 discovery', () => {
    it('is public, valid, cacheable, and says nothing that is not so', async () => {
      const answer = await host().api<Record<string, unknown>>('/.well-known/openwop', {
        headers: { authorization: '' },
      });
      expect(answer.status).toBe(200);
      expect(validate.capabilities(answer.body)).toMatchObject({ ok: true });
      expect(answer.headers.get('cache-control')).toContain('max-age');
      for (const absent of ['replay', 'webhooks', 'testing', 'memory', 'multiAgent', 'runs'])
        expect(answer.body).not.toHaveProperty(absent);
      expect(answer.body).toMatchObject({
        protocolVersion: '1.0',
        agents: {
          supported: true,
          liveRuntime: { supported: true },
          decisionEvents: true,
          handoffEvents: false,
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
          const answer = await host().api<Envelope>(path.replace(/\{\w+\}/g, 'unknown'), {
            method: method.toUpperCase(),
            headers: { accept: 'application/json' },
          });
          expect([
            path,
            [404, 405].includes(answer.status) ? answer.body?.error : 'answered',
          ]).not.toEqual([path, 'not_found']);
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
        total: 1,
        agents: [{ agentId: AGENT, toolAllowlist: ['core:json.query'] }],
      });
      expect(agents.text).not.toContain('Decide on refunds.');
      expect((await host().api(`/v1/agents/${AGENT}`)).body).toMatchObject({
        agentId: AGENT,
        hasHandoffSchemas: false,
      });
    });

    it('traceparent is echoed (spec/01 §1)', async () => {
      const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
      const answer = await host().api('/healthz', { headers: { traceparent } });
      expect(answer.headers.get('traceparent')).toBe(traceparent);
    });
  });
}

function lifecycleTests({ host, log }: Suite): void {
  describe('spec/06 §3, §4 a run and its log', () => {
    it('3.1, 3.2, 3.4 noop: 201 with absolute URLs, found at once, four events, completed', async () => {
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

    it('3.5 nested input arrives deep-equal in variables; 4.6 undeclared inputs in no event', async () => {
      const payload = { a: [1, { b: 'ü' }], c: null };
      const runId = await host().startRun({
        workflowId: 'identity',
        inputs: { payload, stranger: 'unseen-value' },
      });
      const snapshot = await host().waitFor(runId, ended);
      expect(snapshot.variables?.payload).toEqual(payload);
      expect((await readLog(host(), runId)).text).not.toContain('unseen-value');
    });

    it('3.6 a failing node: node.failed with an error object, run.failed, the snapshot says why', async () => {
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

    it('3.7 while a delay sleeps the run is running; 3.8 a chain completes in order', async () => {
      const resting = await host().startRun({ workflowId: 'resting' });
      await host().waitFor(resting, ({ status }) => status === 'running');
      const three = await host().startRun({ workflowId: 'three' });
      await host().waitFor(three, ended);
      const done = (await log(three)).filter(({ type }) => type === 'node.completed');
      expect(done.map(({ nodeId }) => nodeId)).toEqual(['a', 'b', 'c']);
      expect((await host().waitFor(resting, ended)).status).toBe('completed');
    });

    it('4.2 repeated reads of a finished run are the same bytes', async () => {
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

function streamTests({ host, auth, log, stream }: Suite): void {
  describe('spec/02 §3 event streams', () => {
    let runId = '';
    let all: RunEventDoc[] = [];
    let texts: string[] = [];
    beforeAll(async () => {
      runId = await host().startRun({ workflowId: 'three' });
      await host().waitFor(runId, ended);
      all = await log(runId);
      texts = all.map((event) => JSON.stringify(event));
    });
    const dataOf = (frames: readonly Frame[]): string[] => frames.map(({ data }) => data);

    it('§3.2 debug sends every event, with id, event and the bytes of the JSON read, and the server closes', async () => {
      const { status, headers, frames } = await stream(runId, '?streamMode=debug');
      expect([status, headers.get('content-type')]).toEqual([
        200,
        'text/event-stream; charset=utf-8',
      ]);
      expect(dataOf(frames)).toEqual(texts);
      expect(frames.map(({ id }) => id)).toEqual(all.map(({ sequence }) => String(sequence)));
      expect(frames.map(({ event }) => event)).toEqual(types(all));
    });

    it('§3.2 updates is the default and a part of debug; a comma list is the union, each event once', async () => {
      const updates = await stream(runId);
      const names = updates.frames.map(({ event }) => event);
      expect(names).toContain('run.started');
      expect(names.at(-1)).toBe('run.completed');
      expect(names).not.toContain('node.started');
      expect(texts).toEqual(expect.arrayContaining(dataOf(updates.frames)));
      expect(dataOf((await stream(runId, '?streamMode=updates,debug')).frames)).toEqual(texts);
      expect(dataOf((await stream(runId, '?streamMode=updates,messages')).frames)).toEqual(
        dataOf(updates.frames),
      );
      expect((await stream(runId, '?streamMode=messages')).frames).toEqual([]);
    });

    it('§3.2 values sends the snapshot, the same as the GET', async () => {
      const { frames } = await stream(runId, '?streamMode=values');
      const snapshot = await host().api(`/v1/runs/${runId}`);
      expect(frames.map(({ event }) => event)).toEqual(['state.snapshot']);
      expect(frames[0]?.data).toBe(snapshot.text);
      expect(frames[0]?.id).toBe(String(all.length - 1));
    });

    it.each(['nonsense', 'updates,nonsense', 'values,debug', 'updates,', '', 'Updates'])(
      '§3.2 mode "%s" is 400 with the supported names, as JSON too',
      async (mode) => {
        for (const accept of ['text/event-stream', 'application/json']) {
          const { status, body } = await host().api<Envelope>(
            `/v1/runs/${runId}/events?streamMode=${mode}`,
            { headers: { accept } },
          );
          expect([status, body.error]).toEqual([400, 'unsupported_stream_mode']);
          expect(body.details?.supported).toEqual(['values', 'updates', 'messages', 'debug']);
        }
      },
    );

    it.each(['5001', '-1', '99999', 'x', '1.5'])('§3.5 bufferMs=%s is 400', async (value) => {
      const { status, body } = await host().api<Envelope>(
        `/v1/runs/${runId}/events?bufferMs=${value}`,
      );
      expect([status, body.error]).toEqual([400, 'validation_error']);
    });

    it('§3.5 bufferMs sends batches with all events, flushed before the close; 0 sends none', async () => {
      const { frames } = await stream(runId, '?streamMode=debug&bufferMs=5000');
      expect(new Set(frames.map(({ event }) => event))).toEqual(new Set(['batch']));
      expect(
        frames.flatMap(({ data }) =>
          (JSON.parse(data) as RunEventDoc[]).map((event) => JSON.stringify(event)),
        ),
      ).toEqual(texts);
      expect(frames.at(-1)?.id).toBe(String(all.length - 1));
      expect(dataOf((await stream(runId, '?streamMode=debug&bufferMs=0')).frames)).toEqual(texts);
    });

    it('§3.4 Last-Event-ID resumes behind a sequence or an eventId; at and beyond the end nothing comes', async () => {
      const resume = async (id: string) =>
        dataOf((await stream(runId, '?streamMode=debug', { 'last-event-id': id })).frames);
      expect(await resume('2')).toEqual(texts.slice(3));
      expect(await resume(all[2]?.eventId ?? '')).toEqual(texts.slice(3));
      expect(await resume(String(all.length - 1))).toEqual([]);
      expect(await resume('999999')).toEqual([]);
      const bad = await host().api<Envelope>(`/v1/runs/${runId}/events`, {
        headers: { 'last-event-id': 'evt-of-nobody' },
      });
      expect([bad.status, bad.body.error]).toEqual([400, 'validation_error']);
    });

    it('§3.1 order of checks: key, run, mode, buffer', async () => {
      const path = `/v1/runs/unknown/events?streamMode=x&bufferMs=x`;
      expect((await host().api(path, { headers: { authorization: '' } })).status).toBe(401);
      expect((await host().api(path)).status).toBe(404);
      expect((await host().api<Envelope>(path.replace('unknown', runId))).body.error).toBe(
        'unsupported_stream_mode',
      );
    });

    it('a live stream gets the backlog, then each event as it comes, and can be resumed in between', async () => {
      const open = await host().startRun({ workflowId: 'approval' });
      const url = `${host().url}/v1/runs/${open}/events?streamMode=debug`;
      const first = await readSse({
        url,
        headers: auth(),
        until: ({ event }) => event === 'interrupt.requested',
      });
      const rest = readSse({
        url,
        headers: { ...auth(), 'last-event-id': first.frames.at(-1)?.id ?? '' },
      });
      const values = stream(open, '?streamMode=values');
      await host().waitFor(open, waiting);
      expect(
        (
          await host().api(`/v1/runs/${open}/interrupts/gate`, {
            body: { resumeValue: { action: 'accept' } },
          })
        ).status,
      ).toBe(200);
      const texts2 = (await rest, await log(open)).map((event) => JSON.stringify(event));
      expect([...dataOf(first.frames), ...dataOf((await rest).frames)]).toEqual(texts2);
      const snapshots = (await values).frames.map(
        ({ data }) => (JSON.parse(data) as RunSnapshot).status,
      );
      expect(snapshots.at(-1)).toBe('completed');
      expect(snapshots.length).toBeGreaterThan(1);
    });
  });
}

interface Poll {
  readonly events: RunEventDoc[];
  readonly isComplete: boolean;
  readonly lastEventSeq: number;
  readonly runStatus: string;
  readonly isTerminal: boolean;
}

function pollTests({ host, log }: Suite): void {
  describe('spec/02 §3.7 poll', () => {
    it('gives everything without a cursor, what follows with one, nothing and 200 past the end', async () => {
      const runId = await host().startRun({ workflowId: 'three' });
      await host().waitFor(runId, ended);
      const all = await log(runId);
      const poll = async (query: string): Promise<Poll> => {
        const answer = await host().api<Poll & Record<string, unknown>>(
          `/v1/runs/${runId}/events/poll${query}`,
        );
        expect(answer.status).toBe(200);
        expect(validate.eventsPollResponse(answer.body)).toMatchObject({ ok: true });
        return answer.body;
      };
      const last = all.length - 1;
      expect(await poll('')).toEqual({
        events: all,
        isComplete: true,
        isTerminal: true,
        runId,
        lastEventSeq: last,
        runStatus: 'completed',
      });
      expect((await poll('?lastSequence=-1')).events).toEqual(all);
      expect((await poll('?lastSequence=0')).events).toEqual(all.slice(1));
      expect((await poll('?since=1')).events).toEqual(all.slice(2));
      expect(await poll('?lastSequence=100000')).toMatchObject({
        events: [],
        isComplete: true,
        lastEventSeq: 100000,
      });
      expect(await poll('?limit=2')).toMatchObject({
        events: all.slice(0, 2),
        isComplete: false,
        lastEventSeq: 1,
      });
      for (const bad of [
        'lastSequence=x',
        'lastSequence=-2',
        'timeout=0',
        'timeout=61',
        'limit=0',
      ]) {
        expect((await host().api(`/v1/runs/${runId}/events/poll?${bad}`)).status).toBe(400);
      }
    });

    it('waits for the next event of a live run', async () => {
      const runId = await host().startRun({ workflowId: 'approval' });
      await host().waitFor(runId, waiting);
      const lastSequence = (await log(runId)).length - 1;
      const poll = host().api<Poll>(
        `/v1/runs/${runId}/events/poll?lastSequence=${lastSequence}&timeout=20`,
      );
      await host().api(`/v1/runs/${runId}/cancel`, { method: 'POST' });
      expect((await poll).body.events[0]?.sequence).toBe(lastSequence + 1);
    });
  });
}

function cancelTests({ host, log }: Suite): void {
  describe('spec/06 §7 cancel', () => {
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

function interruptTests({ host, log, resolve }: Suite): void {
  const started = async (workflowId: string): Promise<string> => {
    const runId = await host().startRun({ workflowId });
    await host().waitFor(runId, waiting);
    return runId;
  };
  describe('spec/02 §4.4 answering a run', () => {
    it('06 §8.1 approval: waits at the node, takes accept, completes; a second answer is 409', async () => {
      const runId = await started('approval');
      const { body } = await host().api<RunSnapshot>(`/v1/runs/${runId}`);
      expect(body).toMatchObject({
        status: 'waiting-approval',
        currentNodeId: 'gate',
        interrupt: { kind: 'approval', nodeId: 'gate' },
      });
      const answer = await resolve(runId, 'gate', { action: 'accept' });
      expect([answer.status, answer.body]).toEqual([
        200,
        { runId, nodeId: 'gate', status: 'resolved' },
      ]);
      expect((await host().waitFor(runId, ended)).status).toBe('completed');
      expectLawful(await log(runId));
      const late = await resolve(runId, 'gate', { action: 'accept' });
      expect([late.status, late.body.error]).toEqual([409, 'interrupt_already_resolved']);
    });

    it('06 §8.2 a wrong answer is 400 and the run still waits; an unknown node is 404', async () => {
      const runId = await started('approval');
      for (const value of [{ action: 'maybe' }, { action: 'refine' }, {}, 'accept', null, 7]) {
        const { status, body } = await resolve(runId, 'gate', value);
        expect([status, body.error]).toEqual([400, 'validation_error']);
      }
      const closed = await host().api<Envelope>(`/v1/runs/${runId}/interrupts/gate`, {
        body: { resumeValue: { action: 'accept' }, more: 1 },
      });
      expect([closed.status, closed.body.error]).toEqual([400, 'validation_error']);
      expect((await host().api(`/v1/runs/${runId}/interrupts/gate`, { body: {} })).status).toBe(
        400,
      );
      const large = await resolve(runId, 'gate', {
        action: 'accept',
        editedArtifactData: 'x'.repeat(40_000),
      });
      expect([large.status, large.body.error]).toEqual([413, 'payload_too_large']);
      const unknown = await resolve(runId, 'nowhere', { action: 'accept' });
      expect([unknown.status, unknown.body.error]).toEqual([404, 'interrupt_not_found']);
      expect((await host().api<RunSnapshot>(`/v1/runs/${runId}`)).body.status).toBe(
        'waiting-approval',
      );
      expect((await resolve(runId, 'gate', { action: 'reject' })).status).toBe(200);
      expect((await host().waitFor(runId, ended)).status).toBe('failed');
    });

    it('06 §8.3 clarification: waiting-input, answers as an object', async () => {
      const runId = await started('clarify');
      expect((await host().api<RunSnapshot>(`/v1/runs/${runId}`)).body.status).toBe(
        'waiting-input',
      );
      expect((await resolve(runId, 'ask', { answers: { q1: 'blue' } })).status).toBe(200);
      expect((await host().waitFor(runId, ended)).status).toBe('completed');
      expect(types(await log(runId))).toContain('clarification.resolved');
    });

    it('two clients at once: one is taken, the other gets 409', async () => {
      const runId = await started('approval');
      const answers = await Promise.all([
        resolve(runId, 'gate', { action: 'accept' }),
        resolve(runId, 'gate', { action: 'reject' }),
      ]);
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 409]);
      await host().waitFor(runId, ended);
      expect(types(await log(runId)).filter((type) => type === 'interrupt.resolved').length).toBe(
        1,
      );
    });

    it('the same key gives the same answer, another body 409', async () => {
      const runId = await started('approval');
      const key = `r-${runId}`;
      const first = await resolve(runId, 'gate', { action: 'accept' }, key);
      await host().waitFor(runId, ended);
      const again = await resolve(runId, 'gate', { action: 'accept' }, key);
      expect([again.status, again.text]).toEqual([200, first.text]);
      expect(again.headers.get('openwop-idempotent-replay')).toBe('true');
      const other = await resolve(runId, 'gate', { action: 'reject' }, key);
      expect([other.status, other.body.error]).toEqual([409, 'idempotency_key_mismatch']);
    });

    it('06 §8.5 a vote that does not decide leaves the run waiting; the next one ends the wait', async () => {
      const runId = await started('quorum');
      expect((await resolve(runId, 'gate', { action: 'accept', voter: 'a' })).body.status).toBe(
        'open',
      );
      expect((await host().api<RunSnapshot>(`/v1/runs/${runId}`)).body.status).toBe(
        'waiting-approval',
      );
      expect((await resolve(runId, 'gate', { action: 'accept', voter: 'b' })).body.status).toBe(
        'resolved',
      );
      expect((await host().waitFor(runId, ended)).status).toBe('completed');
    });

    it('after its deadline an interrupt is 410 interrupt_expired, and nothing was granted', async () => {
      const runId = await host().startRun({ workflowId: 'expiring' });
      const snapshot = await host().waitFor(runId, ended);
      expect(snapshot).toMatchObject({ status: 'failed', error: { code: 'interrupt_timeout' } });
      const late = await resolve(runId, 'gate', { action: 'accept' });
      expect([late.status, late.body.error]).toEqual([410, 'interrupt_expired']);
    });

    it('of a cancelled run it is 422 interrupt_cancelled', async () => {
      const runId = await started('approval');
      await host().api(`/v1/runs/${runId}/cancel`, { method: 'POST' });
      await host().waitFor(runId, ended);
      const late = await resolve(runId, 'gate', { action: 'accept' });
      expect([late.status, late.body.error]).toEqual([422, 'interrupt_cancelled']);
    });

    it('06 §8.4 cancel against answer: at least one wins, and the run ends', async () => {
      const runId = await started('approval');
      const [cancel, answer] = await Promise.all([
        host().api(`/v1/runs/${runId}/cancel`, { method: 'POST' }),
        resolve(runId, 'gate', { action: 'accept' }),
      ]);
      expect(cancel.status).toBe(200);
      expect([200, 409, 410, 422]).toContain(answer.status);
      await host().waitFor(runId, ended);
      expectLawful(await log(runId));
    });

    it('two gates at once are answered by their nodes', async () => {
      const runId = await started('two-gates');
      await host().waitFor(runId, ({ nodeStates }) => Object.keys(nodeStates ?? {}).length === 3);
      expect((await resolve(runId, 'right', { action: 'accept' })).status).toBe(200);
      const between = await host().api<RunSnapshot>(`/v1/runs/${runId}`);
      expect(between.body).toMatchObject({ status: 'waiting-approval', currentNodeId: 'left' });
      expect((await resolve(runId, 'left', { action: 'accept' })).status).toBe(200);
      expect((await host().waitFor(runId, ended)).status).toBe('completed');
    });
  });
}

function agentTests({ host, log, resolve }: Suite): void {
  describe('spec/06 §11, §12, §15 an agent run', () => {
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

function pageTests({ host, resolve }: Suite): void {
  const page = (path: string, init: RequestInit = {}) =>
    fetch(`${host().url}${path}`, { redirect: 'manual', ...init });
  const form = (fields: Record<string, string>) => ({
    method: 'POST',
    body: new URLSearchParams(fields).toString(),
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  });
  /** Opens a run's page by a fresh link: its path and the cookie. */
  async function open(runId: string): Promise<{ cookie: string; html: string; link: string }> {
    const { status, body } = await host().api<{ url: string; expiresAt: string }>(
      `/v1/host/openwop-temporal/runs/${runId}/page-link`,
      { method: 'POST' },
    );
    expect(status).toBe(201);
    const { pathname, search } = new URL(body.url);
    const button = await page(pathname + search);
    expect([button.status, button.headers.get('set-cookie')]).toEqual([200, null]);
    const consumed = await page(pathname + search, { method: 'POST' });
    expect([consumed.status, consumed.headers.get('location')]).toEqual([303, pathname]);
    const cookies = consumed.headers.getSetCookie();
    expect(cookies.length).toBe(2);
    for (const cookie of cookies) expect(cookie).toMatch(/HttpOnly; SameSite=Strict$/);
    const cookie = cookies[0]?.split(';')[0] ?? '';
    return {
      cookie,
      html: await (await page(pathname, { headers: { cookie } })).text(),
      link: pathname + search,
    };
  }
  describe("the run's page (design §10)", () => {
    it('opens once by its link; used, unknown or foreign links are 410', async () => {
      const runId = await host().startRun({ workflowId: 'approval' });
      await host().waitFor(runId, waiting);
      const { html, link, cookie } = await open(runId);
      expect(html).toContain(runId);
      expect(html).toContain('Ship it?');
      for (const bad of [link, link.replace(/link=.*/, 'link=nonsense'), `/pages/runs/${runId}`]) {
        const answer = await page(bad, { method: 'POST' });
        expect([answer.status, answer.headers.get('content-type')]).toEqual([
          410,
          'text/html; charset=utf-8',
        ]);
      }
      expect((await page(`/pages/runs/${runId}`)).status).toBe(401);
      const csp = (await page(`/pages/runs/${runId}`, { headers: { cookie } })).headers.get(
        'content-security-policy',
      );
      expect(csp).toContain("default-src 'none'");
      expect(csp).not.toContain('unsafe');
      await resolve(runId, 'gate', { action: 'accept' });
    });

    it('its cookie opens the page and the events of that run by GET, and no other route', async () => {
      const runId = await host().startRun({ workflowId: 'noop' });
      const other = await host().startRun({ workflowId: 'noop' });
      await host().waitFor(runId, ended);
      const { cookie } = await open(runId);
      const headers = { cookie, accept: 'application/json' };
      expect((await page(`/v1/runs/${runId}/events`, { headers })).status).toBe(200);
      for (const path of [
        `/v1/runs/${runId}`,
        `/v1/runs/${runId}/events/poll`,
        `/v1/runs/${other}/events`,
        '/v1/runs',
        `/pages/runs/${other}`,
      ]) {
        expect([path, (await page(path, { headers })).status]).toEqual([path, 401]);
      }
      for (const path of [
        `/v1/runs/${runId}/cancel`,
        `/v1/runs/${runId}/interrupts/gate`,
        '/v1/runs',
      ]) {
        expect([path, (await page(path, { method: 'POST', headers })).status]).toEqual([path, 401]);
      }
    });

    it('answers without JavaScript, with its CSRF token only, and once', async () => {
      const runId = await host().startRun({ workflowId: 'approval' });
      await host().waitFor(runId, waiting);
      const { cookie, html } = await open(runId);
      const field = (name: string) =>
        new RegExp(`name="${name}" value="([^"]*)"`).exec(html)?.[1] ?? '';
      const fields = { csrf: field('csrf'), interruptId: field('interruptId'), action: 'accept' };
      const path = `/pages/runs/${runId}/interrupts/gate`;
      const send = (changed: Record<string, string>, more: Record<string, string> = { cookie }) => {
        const request = form({ ...fields, ...changed });
        return page(path, { ...request, headers: { ...request.headers, ...more } });
      };
      expect((await send({}, {})).status).toBe(401);
      expect((await send({ csrf: 'forged' })).status).toBe(403);
      expect((await send({}, { cookie, origin: 'https://evil.example' })).status).toBe(403);
      expect((await send({ action: 'dance' })).status).toBe(400);
      expect((await send({ interruptId: 'int-older' })).status).toBe(409);
      const answered = await send({});
      expect([answered.status, answered.headers.get('location')]).toEqual([
        303,
        `/pages/runs/${runId}?notice=answered`,
      ]);
      expect((await host().waitFor(runId, ended)).status).toBe('completed');
      expect((await send({ action: 'reject' })).status).toBe(409);
    });
  });
}
