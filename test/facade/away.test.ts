// Parts that are away, retries, slow clients, drain: what is accepted is never lost (idempotency.md §Layer 1,
// architecture §3.3, §4, §10).
import { NO_WAITS } from '../contract/given.ts';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { HostError } from '../../src/rules/errors.ts';
import { eventIdOf } from '../../src/rules/ids.ts';
import { createReaper, FAIL_AFTER_MS } from '../../src/runs/reaper.ts';
import { SEND_LENGTH } from '../../src/facade/sse.ts';
import { POLL_BYTES } from '../../src/facade/routes/poll.ts';
import { fold } from '../../src/log/fold.ts';
import { rebuild } from '../../src/log/rebuild.ts';
import type { RunSnapshot } from '../../schemas/types.generated.ts';
import { KEY, refusals, startFaultHost, type FaultHost, type Envelope } from './fault-host.ts';
import type { RunRef } from '../../src/ports/runs.ts';
import { runRef } from '../support/run-ref.ts';
import { readSse } from './sse-client.ts';
import { takes } from '../support/waiting.ts';

let host: FaultHost;

beforeAll(async () => {
  host = await startFaultHost();
});

afterAll(async () => {
  await host.stop();
});

afterEach(() => {
  host.temporal.away = false;
  host.temporal.startError = undefined;
});

const refused = refusals(() => host);

/** So long a stream waits for a client that takes nothing, in ms. */
const SLOW_CLIENT_MS = 200;

/** What still comes of an answer that the server gave up. */
async function textUntilCut({ body }: Response): Promise<string> {
  const reader = (body as ReadableStream<Uint8Array>)
    .pipeThrough(new TextDecoderStream())
    .getReader();
  let text = '';
  const next = () => reader.read().catch(() => ({ done: true, value: undefined }));
  for (let chunk = await next(); !chunk.done; chunk = await next()) text += chunk.value ?? '';
  return text;
}

describe('idempotency.md §Layer 1: Idempotency-Key', () => {
  const start = (key: string, body: unknown = { workflowId: 'noop' }) =>
    host.api<Envelope & { runId: string }>('/v1/runs', {
      body,
      headers: { 'idempotency-key': key },
    });

  it('same key and body: the first answer again, marked; another body: 409', async () => {
    const first = await start('k1');
    const again = await start('k1');
    expect(first.status).toBe(201);
    expect(first.headers.get('openwop-idempotent-replay')).toBe('false');
    expect(again.headers.get('openwop-idempotent-replay')).toBe('true');
    expect(again.text).toBe(first.text);
    const other = await start('k1', { workflowId: 'noop', tags: ['other'] });
    expect([other.status, other.body.error]).toEqual([409, 'idempotency_key_mismatch']);
  });

  it('ten at once make one run; the others get its answer or 409 with a hint', async () => {
    const answers = await Promise.all(Array.from({ length: 10 }, () => start('k2')));
    const runIds = new Set(
      answers.filter(({ status }) => status === 201).map(({ body }) => body.runId),
    );
    expect(runIds.size).toBe(1);
    for (const { status, body, headers } of answers.filter(({ status: code }) => code !== 201)) {
      expect([status, body.error]).toEqual([409, 'idempotency_in_flight']);
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
    }
  });

  it('a key too long is 400; a refused body is not kept: the key may be used again', async () => {
    expect((await start('k'.repeat(256))).status).toBe(400);
    expect((await start('k3', { workflowId: 'noop', extra: 1 })).status).toBe(400);
    expect((await start('k3')).status).toBe(201);
  });

  it('Temporal away: 503 with Retry-After, and the retry goes on with the accepted run', async () => {
    host.temporal.away = true;
    const failed = await start('k4');
    expect([failed.status, failed.body.error]).toEqual([503, 'service_unavailable']);
    expect(failed.headers.get('retry-after')).toBe(String(failed.body.details?.retryAfter));
    host.temporal.away = false;
    const later = await start('k4');
    expect(later.status).toBe(201);
    expect(later.body.runId).toBe(failed.body.details?.runId);
  });

  it('the retry goes on with the accepted run also when its workflow is gone since', async () => {
    host.temporal.away = true;
    const failed = await start('k5');
    host.temporal.away = false;
    const { catalog } = host.deps;
    const definition = catalog.definition.bind(catalog);
    catalog.definition = () => undefined;
    const later = await start('k5');
    expect((await start('k6')).status).toBe(404);
    catalog.definition = definition;
    expect([later.status, later.body.runId]).toEqual([201, failed.body.details?.runId]);
    expect(host.temporal.started.at(-1)?.runId).toBe(later.body.runId);
  });
});

describe('architecture §4 a run that failed to start stays so', () => {
  const failure = { cause: 'payload_too_large', atMs: 7 };
  const startKeyed = () =>
    host.api<Envelope & { runId: string; status: string }>('/v1/runs', {
      body: { workflowId: 'noop' },
      headers: { 'idempotency-key': 'failed-to-start' },
    });

  it('a retry with its key, and a cancel, answer that it failed, and start nothing', async () => {
    host.temporal.away = true;
    const runId = String((await startKeyed()).body.details?.runId);
    host.temporal.away = false;
    // Marked, and the process that did it is gone before the log says so.
    await host.stores.runs.markStartFailed(runRef(runId), failure);
    const calls = host.temporal.calls.length;
    const again = await startKeyed();
    expect([again.status, again.body.runId, again.body.status]).toEqual([201, runId, 'failed']);
    const cancelled = await host.api(`/v1/runs/${runId}/cancel`, { method: 'POST' });
    expect([cancelled.status, cancelled.body.status]).toEqual([200, 'failed']);
    expect(host.temporal.calls.length).toBe(calls);
  });

  it('one that is given up while it is being started is cancelled in Temporal, and its log says failed', async () => {
    const { engine } = host.deps;
    const start = engine.start.bind(engine);
    engine.start = async (input) => {
      engine.start = start;
      await host.stores.runs.markStartFailed(runRef(input.runId), failure);
      return start(input);
    };
    const { status, body } = await host.api<{ runId: string; status: string }>('/v1/runs', {
      body: { workflowId: 'noop' },
    });
    expect([status, body.status]).toEqual([201, 'failed']);
    expect(host.temporal.calls.slice(-2)).toEqual(['start', 'terminate']);
    const row = await host.stores.runs.find('default', body.runId);
    expect([row?.temporalRunId, row?.startFailure]).toEqual([undefined, failure]);
  });
});

describe('architecture §4 the reaper', () => {
  /** As if it were so many ms later. */
  const reaperNow = (ms: number) => {
    const { runs } = host.stores;
    const noteRefusal = async (run: RunRef, apartMs: number) =>
      (await runs.noteRefusal(run, apartMs)) + ms;
    const stores = { ...host.stores, runs: { ...runs, noteRefusal } };
    return createReaper({ ...host.deps, stores, unstartedMs: -ms, calmMs: 0 }).round();
  };
  const accepted = async (): Promise<string> => {
    const { body } = await host.api<Envelope>('/v1/runs', { body: { workflowId: 'noop' } });
    return String(body.details?.runId);
  };

  it('starts a run again from its row when Temporal is back', async () => {
    host.temporal.away = true;
    const runId = await accepted();
    await reaperNow(FAIL_AFTER_MS * 2);
    expect((await host.stores.log.head(runRef(runId)))?.status).toBe('pending');
    host.temporal.away = false;
    await reaperNow(10_000);
    expect((await host.stores.runs.find('default', runId))?.temporalRunId).toBe(`t-${runId}`);
    expect(host.temporal.started.at(-1)?.runId).toBe(runId);
  });

  it('a run that Temporal refuses for good fails after 30 s, with one terminal entry', async () => {
    host.temporal.startError = new HostError('payload_too_large');
    const before = new Set((await host.stores.runs.unstarted(0, 100)).map((row) => row.runId));
    await refused(
      '/v1/runs',
      { body: { workflowId: 'noop' } },
      { status: 413, code: 'payload_too_large' },
    );
    const row = (await host.stores.runs.unstarted(0, 100)).find(({ runId }) => !before.has(runId));
    const runId = row?.runId ?? '';
    await reaperNow(10_000);
    expect((await host.stores.log.head(runRef(runId)))?.closed).toBe(false);
    await reaperNow(FAIL_AFTER_MS + 10_000);
    const { body } = await host.api<RunSnapshot>(`/v1/runs/${runId}`);
    expect(body).toMatchObject({ status: 'failed', error: { code: 'start_failed' } });
    const log = await host.api<{ events: { type: string }[]; isComplete: boolean }>(
      `/v1/runs/${runId}/events`,
      {
        headers: { accept: 'application/json' },
      },
    );
    expect(log.body.events.map(({ type }) => type)).toEqual(['run.failed']);
    expect(log.body.isComplete).toBe(true);
    expect((await host.stores.runs.unstarted(0, 100)).some((item) => item.runId === runId)).toBe(
      false,
    );
    const stored = await host.stores.log.read(runRef(runId), { after: -1, limit: 10 });
    const head = await host.stores.log.head(runRef(runId));
    const {
      stores,
      deps: { logger },
    } = host;
    await rebuild({ stores, logger, history: undefined as never }, runRef(runId));
    expect(await host.stores.log.read(runRef(runId), { after: -1, limit: 10 })).toEqual(stored);
    expect(await host.stores.log.head(runRef(runId))).toEqual(head);
  });
});

describe('architecture §3.3 Temporal away', () => {
  it('"with the same Idempotency-Key" is said to a request that had one, and to no other', async () => {
    const runId = await host.startRun({ workflowId: 'noop' });
    host.temporal.away = true;
    const told = async (path: string, body: unknown, headers: Record<string, string> = {}) => {
      const { body: answer, text } = await host.api<Envelope>(path, { body, headers });
      expect([answer.error, text.includes('same key')]).toEqual(['service_unavailable', false]);
      return answer.message.includes('Retry with the same Idempotency-Key.');
    };
    const key = { 'idempotency-key': `told-${runId}` };
    const writes: [string, unknown][] = [
      ['/v1/runs', { workflowId: 'noop' }],
      [`/v1/runs/${runId}/cancel`, {}],
      [`/v1/runs/${runId}/interrupts/gate`, { resumeValue: 1 }],
    ];
    for (const [path, body] of writes) {
      expect([path, await told(path, body, key)]).toEqual([path, true]);
      expect([path, await told(path, body)]).toEqual([path, false]);
    }
  });

  it('reads come from the database and say so; writes are 503; readiness names the part', async () => {
    const runId = await host.startRun({ workflowId: 'noop' });
    host.temporal.away = true;
    const read = await host.api<RunSnapshot>(`/v1/runs/${runId}`);
    expect([read.status, read.headers.get('openwop-log-stale')]).toEqual([200, 'true']);
    const events = await host.api(`/v1/runs/${runId}/events`, {
      headers: { accept: 'application/json' },
    });
    expect([events.status, events.headers.get('openwop-log-stale')]).toEqual([200, 'true']);
    await refused(
      `/v1/runs/${runId}/cancel`,
      { method: 'POST' },
      { status: 503, code: 'service_unavailable' },
    );
    await refused(
      `/v1/runs/${runId}/interrupts/gate`,
      { body: { resumeValue: 1 } },
      { status: 503, code: 'service_unavailable' },
    );
    const ready = await host.api('/readyz', { headers: { authorization: '' } });
    expect([ready.status, ready.body.temporal, ready.body.database]).toEqual([
      503,
      'service_unavailable',
      'ok',
    ]);
    expect((await host.api('/healthz', { headers: { authorization: '' } })).status).toBe(200);
    host.temporal.away = false;
    const back = await host.api(`/v1/runs/${runId}`);
    expect(back.headers.get('openwop-log-stale')).toBeNull();
    await expect.poll(async () => (await host.api('/readyz')).status).toBe(200);
  });
});

describe('stream-modes.md: streams under load', () => {
  async function append(
    runId: string,
    rows: { type: string; payload: unknown }[],
    closed = false,
  ): Promise<void> {
    const head = await host.stores.log.head(runRef(runId));
    if (!head) throw new Error('no head');
    const { temporalRunId, historyEventId, token } = head;
    const cursor = { temporalRunId, historyEventId, token };
    await host.stores.log.append({
      summary: () => NO_WAITS,
      run: runRef(runId),
      behind: cursor,
      cursor,
      rows: rows.map(({ type, payload }, index) => {
        const key = `test|${head.nextSequence + index}`;
        return {
          runId,
          eventId: eventIdOf(runId, key),
          key,
          type,
          payload: JSON.stringify(payload),
          timestampMs: 1_000,
        };
      }),
      closedBlocks: [],
      status: closed ? 'completed' : 'running',
      closed,
      translateState: head.translateState,
      fold,
    });
  }

  it('a client that takes nothing is closed, and the server does not hold the events for it; when it comes again, nothing is lost', async () => {
    const runId = await host.startRun({ workflowId: 'noop' });
    const blob = 'x'.repeat(16 * 1024);
    await append(runId, [{ type: 'run.started', payload: { workflowId: 'noop' } }]);
    for (let round = 0; round < 4; round++) {
      await append(
        runId,
        Array.from({ length: 200 }, (_, index) => ({
          type: 'variable.changed',
          payload: { name: `${round}/${index}`, next: blob },
        })),
      );
    }
    await append(runId, [{ type: 'run.completed', payload: {} }], true);
    const impatient = await startFaultHost({ slowClientMs: SLOW_CLIENT_MS }, () => ({}), {
      ...host.stores,
      close: () => Promise.resolve(),
    });
    const path = `/v1/runs/${runId}/events?streamMode=debug`;
    const authorization = `Bearer ${KEY}`;
    // It takes nothing before it is closed.
    const response = await fetch(impatient.url + path, {
      headers: { authorization, accept: 'text/event-stream' },
    });
    const closed = () => impatient.lines.find(({ message }) => message === 'slow client closed');
    await expect.poll(closed).toBeDefined();
    expect(closed()?.fields.bufferedBytes).toBeLessThan(2 * SEND_LENGTH);
    const taken = await textUntilCut(response);
    await impatient.stop();
    const ids = [...taken.matchAll(/^id: (\d+)\n.*\n.*\n\n/gm)].map(([, id]) => Number(id));
    expect(ids.length).toBeLessThan(802);
    const lastId = ids.at(-1);
    const again = await readSse({
      url: host.url + path,
      headers: {
        authorization,
        ...(lastId === undefined ? {} : { 'last-event-id': String(lastId) }),
      },
    });
    ids.push(...again.frames.map(({ id }) => Number(id)));
    expect(ids).toEqual(Array.from({ length: 802 }, (_, index) => index));
  });

  it('version-negotiation.md §events/poll: a poll of a long log is bounded in bytes, and its cursor goes on to the last event', async () => {
    const runId = await host.startRun({ workflowId: 'noop' });
    const blob = 'x'.repeat(32 * 1024);
    await append(runId, [{ type: 'run.started', payload: { workflowId: 'noop' } }]);
    for (let round = 0; round < 3; round++)
      await append(
        runId,
        Array.from({ length: 100 }, () => ({
          type: 'log.appended',
          payload: { level: 'info', message: 'm', blob },
        })),
      );
    await append(runId, [{ type: 'run.completed', payload: {} }], true);
    const seen: number[] = [];
    const answers: { bytes: number; isComplete: boolean }[] = [];
    for (let after = -1; !answers.at(-1)?.isComplete; after = seen.at(-1) ?? -1) {
      const { body, text } = await host.api<{
        events: { sequence: number }[];
        isComplete: boolean;
        lastEventSeq: number;
      }>(`/v1/runs/${runId}/events/poll?lastSequence=${after}`);
      seen.push(...body.events.map(({ sequence }) => sequence));
      expect(body.lastEventSeq).toBe(seen.at(-1));
      answers.push({ bytes: text.length, isComplete: body.isComplete });
    }
    expect(seen).toEqual(Array.from({ length: 302 }, (_, index) => index));
    expect(answers.length).toBeGreaterThan(1);
    for (const { bytes } of answers) expect(bytes).toBeLessThan(POLL_BYTES * 1.1);
  });

  it('streams are capped per key: 429 with Retry-After (architecture §10)', async () => {
    const small = await startFaultHost({ streamLimits: { perKey: 1 } });
    const stop = new AbortController();
    try {
      const runId = await small.startRun({ workflowId: 'noop' });
      const headers = { authorization: `Bearer ${KEY}`, accept: 'text/event-stream' };
      const held = await fetch(`${small.url}/v1/runs/${runId}/events`, {
        headers,
        signal: stop.signal,
      });
      expect(held.status).toBe(200);
      const second = await small.api<Envelope>(`/v1/runs/${runId}/events`, {
        headers: { accept: 'text/event-stream' },
      });
      expect([second.status, second.body.error]).toEqual([429, 'rate_limited']);
      expect(Number(second.headers.get('retry-after'))).toBeGreaterThan(0);
    } finally {
      stop.abort();
      await small.stop();
    }
  });

  it('drain ends streams with a comment and answers waiting polls', async () => {
    const own = await startFaultHost();
    const runId = await own.startRun({ workflowId: 'noop' });
    const stream = await fetch(`${own.url}/v1/runs/${runId}/events`, {
      headers: { authorization: `Bearer ${KEY}`, accept: 'text/event-stream' },
    });
    const text = stream.text();
    const poll = own.api<{ events: unknown[]; isComplete: boolean }>(
      `/v1/runs/${runId}/events/poll?timeout=30`,
    );
    await takes(200);
    await own.stop();
    expect(await text).toContain(':draining');
    // Who is cut off here asks again at once.
    expect(await text).not.toContain('retry:');
    expect((await poll).body).toMatchObject({ events: [], isComplete: false });
  });
});

describe('the access log', () => {
  it('has route, status and run, and never a key, a body or a query', async () => {
    const runId = await host.startRun(
      { workflowId: 'noop' },
      { 'idempotency-key': 'very-private-key' },
    );
    await host.api(`/v1/runs/${runId}/events/poll?lastSequence=0&timeout=1`);
    const lines = host.lines.filter(({ message }) => message === 'request');
    expect(lines.at(-1)?.fields).toMatchObject({
      method: 'GET',
      route: '/v1/runs/{runId}/events/poll',
      status: 200,
      runId,
    });
    const all = JSON.stringify(host.lines);
    for (const secret of [KEY, 'very-private-key', 'lastSequence=0'])
      expect(all).not.toContain(secret);
  });
});
