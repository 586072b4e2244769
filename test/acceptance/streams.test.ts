// The protocol's checklist by HTTP: streams and idempotency, on a host that was restarted in between
// (run-event.schema.json, stream-modes.md, idempotency.md §Layer 1).
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isTerminalEvent } from '../../src/rules/status.ts';
import type { RunEventDoc, RunSnapshot } from '../../schemas/types.generated.ts';
import { validate } from '../../src/wire/validators.ts';
import { readSse, type Frame, type SseAnswer } from '../facade/sse-client.ts';
import { ended, readLog, types, waiting } from '../facade/suite-parts.ts';
import { startTestHost, type ApiAnswer, type TestHost } from '../support/host.ts';
import { startTestTemporal, type TestTemporal } from '../support/temporal.ts';
import { writeFixtures } from './definitions.ts';

interface Created {
  readonly runId: string;
  readonly status: string;
  readonly error?: string;
  readonly details?: Record<string, unknown>;
}

const BODY = { workflowId: 'conformance-idempotent', inputs: { nonce: 'one' } };
let temporal: TestTemporal;
let folder = '';
let dataDir = '';
let host: TestHost;
/** What the host said before it was restarted. */
let first: ApiAnswer<Created>;
let firstLog = '';

beforeAll(async () => {
  temporal = await startTestTemporal();
  folder = await writeFixtures();
  dataDir = await mkdtemp(join(tmpdir(), 'openwop-acceptance-data-'));
  const namespace = await temporal.namespace();
  const options = {
    fixturesDir: folder,
    dataDir,
    temporal: { address: temporal.address, namespace },
  };
  host = await startTestHost(options);
  first = await create('kept-over-a-restart', BODY);
  await host.waitFor(first.body.runId, ended);
  firstLog = (await readLog(host, first.body.runId)).text;
  await host.stop();
  host = await startTestHost(options);
});

afterAll(async () => {
  await host.stop();
  await temporal.stop();
  for (const path of [folder, dataDir]) await rm(path, { recursive: true });
});

function create(key: string, body: unknown): Promise<ApiAnswer<Created>> {
  return host.api<Created>('/v1/runs', { body, headers: { 'idempotency-key': key } });
}

const REPLAY = 'openwop-idempotent-replay';

function stream(
  runId: string,
  query = '',
  headers: Record<string, string> = {},
): Promise<SseAnswer> {
  return readSse({
    url: `${host.url}/v1/runs/${runId}/events${query}`,
    headers: { authorization: `Bearer ${host.apiKey}`, ...headers },
  });
}

const eventOf = ({ data }: Frame): RunEventDoc => JSON.parse(data) as RunEventDoc;
const names = ({ frames }: SseAnswer): (string | undefined)[] => frames.map(({ event }) => event);

describe('stream-modes.md: streams', () => {
  it('id is the sequence, event the type, data the event; updates: from start to end, closed by the server', async () => {
    const runId = await host.startRun({ workflowId: 'conformance-multi-node' });
    const answer = await stream(runId);
    expect(answer.headers.get('content-type')).toContain('text/event-stream');
    for (const frame of answer.frames) {
      const event = eventOf(frame);
      expect([frame.id, frame.event]).toEqual([String(event.sequence), event.type]);
    }
    expect(names(answer)[0]).toBe('run.started');
    expect(names(answer).at(-1)).toBe('run.completed');
    const explicit = await stream(runId, '?streamMode=updates');
    expect(explicit.frames).toEqual(answer.frames);
  });

  it('values: snapshots as the GET gives them, the last one terminal, then closed', async () => {
    const runId = await host.startRun({ workflowId: 'conformance-approval' });
    await host.waitFor(runId, waiting);
    const live = stream(runId, '?streamMode=values');
    await host.api(`/v1/runs/${runId}/interrupts/gate`, {
      body: { resumeValue: { action: 'accept' } },
    });
    const snapshots = (await live).frames.map(({ data }) => JSON.parse(data) as RunSnapshot);
    for (const snapshot of snapshots)
      expect(validate.snapshot(snapshot)).toMatchObject({ ok: true });
    expect(snapshots[0]?.status).toBe('waiting-approval');
    expect(snapshots.at(-1)).toEqual((await host.api(`/v1/runs/${runId}`)).body);
  });

  it('debug contains updates; a list is the union in log order; messages of a run without text is empty', async () => {
    const runId = await host.startRun({ workflowId: 'conformance-approval' });
    await host.waitFor(runId, waiting);
    const query = (mode: string) => stream(runId, `?streamMode=${mode}`);
    const live = Promise.all(
      ['updates', 'debug', 'updates,debug', 'updates,messages', 'messages'].map(query),
    );
    await host.api(`/v1/runs/${runId}/interrupts/gate`, {
      body: { resumeValue: { action: 'accept' } },
    });
    const [updates, debug, union, withMessages, messages] = (await live).map(
      ({ frames }) => frames,
    );
    const { events } = await readLog(host, runId);
    expect(debug?.map(({ event }) => event)).toEqual(types(events));
    expect(debug).toEqual(expect.arrayContaining([...(updates ?? [])]));
    expect(union).toEqual(debug);
    expect(withMessages).toEqual(updates);
    expect(messages).toEqual([]);
  });

  it.each(['nothing', 'updates,nothing', 'values,updates', 'debug,values'])(
    'streamMode=%s is 400 with the names that are',
    async (mode) => {
      for (const accept of ['text/event-stream', 'application/json', '*/*']) {
        const path = `/v1/runs/${first.body.runId}/events?streamMode=${mode}`;
        const { status, body } = await host.api<Created>(path, { headers: { accept } });
        expect([status, body.error]).toEqual([400, 'unsupported_stream_mode']);
        expect(body.details?.supported).toEqual(
          expect.arrayContaining(['updates', 'values', 'messages', 'debug']),
        );
      }
    },
  );

  it('bufferMs batches and flushes at the wait and at the end; 0 sends none; above 5000 is 400', async () => {
    const runId = await host.startRun({ workflowId: 'conformance-approval' });
    const suspended = await readSse({
      url: `${host.url}/v1/runs/${runId}/events?bufferMs=5000&streamMode=debug`,
      headers: { authorization: `Bearer ${host.apiKey}` },
      until: ({ data }) => data.includes('"node.suspended"'),
    });
    expect(new Set(names(suspended))).toEqual(new Set(['batch']));
    const rest = stream(runId, '?bufferMs=5000&streamMode=debug', {
      'last-event-id': suspended.frames.at(-1)?.id ?? '',
    });
    await host.api(`/v1/runs/${runId}/interrupts/gate`, {
      body: { resumeValue: { action: 'accept' } },
    });
    const batches = [...suspended.frames, ...(await rest).frames].map(
      ({ id, data }) => [id, JSON.parse(data) as RunEventDoc[]] as const,
    );
    for (const [id, batch] of batches) expect(id).toBe(String(batch.at(-1)?.sequence));
    expect(batches.flatMap(([, batch]) => batch)).toEqual((await readLog(host, runId)).events);
    expect(names(await stream(runId, '?bufferMs=0'))).not.toContain('batch');
    for (const bad of ['5001', '99999', '-1', 'x'])
      expect((await host.api(`/v1/runs/${runId}/events?bufferMs=${bad}`)).status).toBe(400);
  });

  it('Last-Event-ID goes on behind it; behind the end: 200, nothing, closed', async () => {
    const runId = await host.startRun({ workflowId: 'conformance-multi-node' });
    await host.waitFor(runId, ended);
    const { events } = await readLog(host, runId);
    for (const { sequence } of events) {
      const answer = await stream(runId, '?streamMode=debug', {
        'last-event-id': String(sequence),
      });
      expect(answer.status).toBe(200);
      expect(answer.frames.map(eventOf)).toEqual(events.slice(sequence + 1));
    }
  });
});

describe('idempotency.md §Layer 1: idempotency', () => {
  it('the same key and body give the same run, over a restart of the host too', async () => {
    expect([first.status, first.headers.get(REPLAY) ?? 'false']).toEqual([201, 'false']);
    for (let retry = 0; retry < 5; retry++) {
      const again = await create('kept-over-a-restart', BODY);
      expect(again.status).toBe(201);
      expect(again.body).toEqual(first.body);
      expect(again.headers.get(REPLAY)).toBe('true');
    }
    const reordered = { inputs: BODY.inputs, workflowId: BODY.workflowId };
    expect((await create('kept-over-a-restart', reordered)).body.runId).toBe(first.body.runId);
  });

  it('the same key with another body is 409, before and after, and starts nothing', async () => {
    const other = await create('kept-over-a-restart', { ...BODY, inputs: { nonce: 'two' } });
    expect([other.status, other.body.error]).toEqual([409, 'idempotency_key_mismatch']);
    const unknown = await create('kept-over-a-restart', { workflowId: 'conformance-unknown' });
    expect([unknown.status, unknown.body.error]).toEqual([409, 'idempotency_key_mismatch']);
  });

  it('ten at once with one key: one run, every answer that run or 409 with a retry hint', async () => {
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => create('all-at-once', BODY)),
    );
    const runs = new Set(
      answers.filter(({ status }) => status < 300).map(({ body }) => body.runId),
    );
    expect(runs.size).toBe(1);
    for (const { status, body, headers } of answers) {
      if (status === 201) continue;
      expect([status, body.error]).toEqual([409, 'idempotency_in_flight']);
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
      expect(Number(body.details?.retryAfter)).toBeGreaterThan(0);
    }
    const [runId = ''] = runs;
    expect((await create('all-at-once', BODY)).body.runId).toBe(runId);
    expect((await host.waitFor(runId, ended)).status).toBe('completed');
  });

  it('ten at once with ten keys: ten runs', async () => {
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, index) => create(`own-${index}`, BODY)),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => 201));
    expect(new Set(answers.map(({ body }) => body.runId)).size).toBe(10);
    for (const { body } of answers) await host.waitFor(body.runId, ended);
  });

  it('a refused body is not kept: the key works with the corrected one; keys are bounded', async () => {
    expect((await create('corrected', { workflowId: 7 })).status).toBe(400);
    expect((await create('corrected', BODY)).status).toBe(201);
    expect((await create('k'.repeat(256), BODY)).status).toBe(400);
    expect((await create('k'.repeat(255), BODY)).status).toBe(201);
  });

  it('a key belongs to its operation: on another one it is a new key', async () => {
    const { runId } = (await create('one-key', BODY)).body;
    const answer = await host.api(`/v1/runs/${runId}/cancel`, {
      body: {},
      headers: { 'idempotency-key': 'one-key' },
    });
    expect([answer.status, answer.headers.get(REPLAY)]).toEqual([200, 'false']);
    await host.waitFor(runId, ended);
  });

  it('the log of a run is the same bytes after the restart', async () => {
    expect((await readLog(host, first.body.runId)).text).toBe(firstLog);
    expect(
      (await readLog(host, first.body.runId)).events.some(({ type }) => isTerminalEvent(type)),
    ).toBe(true);
  });
});
