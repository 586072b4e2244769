// The stream of a session (seed 003 §3.3): all its runs in one order, without gap or repetition, whoever writes and
// however often the facade begins anew; on both twins.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openDatabase, openStores } from '../../src/adapters/postgres/index.ts';
import type { DatabaseOptions } from '../../src/adapters/postgres/index.ts';
import { HostError } from '../../src/rules/errors.ts';
import type { RunHeader } from '../../src/rules/run-input.ts';
import type { NewRow } from '../../src/ports/log.ts';
import type { Stores } from '../../src/ports/stores.ts';
import {
  NO_WAITS,
  appendRows,
  batchAfter,
  delta,
  entry,
  headOf,
  newId,
  newRun,
  refTo,
  startedRun,
} from '../contract/given.ts';
import { openTestStores } from '../support/log-parts.ts';
import { sharePostgres } from '../support/shared-postgres.ts';
import { quietLogger } from '../support/quiet-logger.ts';
import { KEY, refusals, startFaultHost, type FaultHost } from './fault-host.ts';
import { readSse, type Frame } from './sse-client.ts';
import { takes } from '../support/waiting.ts';
const postgres = await sharePostgres();
afterAll(async () => {
  if (!('missing' in postgres)) await postgres.stop();
});

interface Envelope {
  readonly event_id: string;
  readonly event_type: string;
  readonly seq: number;
  readonly timestamp: string;
  readonly session_id: string;
  readonly run_id: string;
  readonly parent_run_id: string | null;
  readonly agent_level: string;
  readonly correlation_id: string;
  readonly causation_id: string | null;
  readonly payload: Record<string, unknown>;
}

const told = ({ data }: Frame): Envelope => JSON.parse(data) as Envelope;
const placed = (frames: readonly Frame[]): string[] =>
  frames.map(told).map(({ run_id: run, seq }) => `${run} ${seq}`);

interface Twin {
  readonly options?: DatabaseOptions;
  readonly stores: Stores;
}

/** `besides`: others may write beside a transaction. PGlite has one connection. */
function streamRules(open: () => Promise<Twin>, { besides }: { readonly besides: boolean }): void {
  let twin: Twin;
  let host: FaultHost;
  const refused = refusals(() => host);
  /** Sessions whose events this host has read to the last. */
  let ends: Set<string>;
  const begin = async (perKey = 100): Promise<void> => {
    const seen = (ends = new Set<string>());
    const { feed } = twin.stores;
    const events: typeof feed.events = async (query) => {
      const page = await feed.events(query);
      if (page.rows.length < query.limit) seen.add(query.sessionId);
      return page;
    };
    const kept = {
      ...{ ...twin.stores, feed: { ...feed, events } },
      close: () => Promise.resolve(),
    };
    host = await startFaultHost({ streamLimits: { perKey } }, () => ({}), kept);
  };
  beforeAll(async () => {
    twin = await open();
    await begin();
  });
  afterAll(async () => {
    await host.stop();
    await twin.stores.close();
  });

  const runIn = (sessionId: string, header: Partial<RunHeader> = {}): Promise<string> => {
    const run = newRun({});
    const whole = { ...run.input.header, correlationId: run.runId, ...header, sessionId };
    return startedRun(twin.stores, { ...run, input: { ...run.input, header: whole } });
  };
  const append = async (runId: string, ...rows: readonly Partial<NewRow>[]): Promise<void> => {
    const head = await headOf(twin.stores, runId);
    const named = rows.map((row, at) => entry(runId, `${head.historyEventId}.${at}`, row));
    await twin.stores.log.append(batchAfter(head, named));
  };
  const pathOf = (sessionId: string): string =>
    `/v1/host/openwop-temporal/sessions/${sessionId}/events`;
  const read = async (
    sessionId: string,
    until: (frame: Frame) => boolean,
    { lastId, query = '' }: { readonly lastId?: string; readonly query?: string } = {},
  ): Promise<readonly Frame[]> => {
    const authorization = `Bearer ${KEY}`;
    const headers = { authorization, ...(lastId === undefined ? {} : { 'last-event-id': lastId }) };
    const url = `${host.url}${pathOf(sessionId)}${query}`;
    return (await readSse({ url, headers, until })).frames;
  };
  const reads = (sessionId: string, count: number, more: { readonly lastId?: string } = {}) => {
    let seen = 0;
    return read(sessionId, () => ++seen === count, more);
  };

  // [I97]
  it('tells an event that cannot be read in its place, by name, and goes on', async () => {
    const sessionId = newId('lost');
    const [one, two] = [await runIn(sessionId), await runIn(sessionId)];
    for (const runId of [one, two, one]) await append(runId, {});
    const { feed } = twin.stores;
    const real = feed.events.bind(feed);
    const unreadable = { code: 'history_undecodable', message: 'No such key.' } as const;
    feed.events = async (query) => {
      const page = await real(query);
      const rows = page.rows.map((fed) =>
        fed.run.runId === two ? { ...fed, row: { ...fed.row, payload: '{}', unreadable } } : fed,
      );
      return { ...page, rows };
    };
    try {
      const frames = await reads(sessionId, 3);
      expect(placed(frames)).toEqual([`${one} 0`, `${two} 0`, `${one} 1`]);
      expect(frames.map(told)).toMatchObject([{}, { payload: {}, unreadable }, {}]);
      expect(told(frames[0] as Frame)).not.toHaveProperty('unreadable');
    } finally {
      feed.events = real;
    }
  });

  // [I97]
  it('tells an event with a time that is none, and those of a run whose input is damaged, and goes on', async () => {
    const sessionId = newId('odd');
    const [one, two, three] = [
      await runIn(sessionId),
      await runIn(sessionId),
      await runIn(sessionId),
    ];
    for (const runId of [one, two, three, one]) await append(runId, {});
    const { feed, runs } = twin.stores;
    const [events, findKept] = [feed.events.bind(feed), runs.findKept.bind(runs)];
    const unreadable = { code: 'history_undecodable' };
    feed.events = async (query) => {
      const page = await events(query);
      const rows = page.rows.map((fed) =>
        fed.run.runId === two ? { ...fed, row: { ...fed.row, timestampMs: 9e15 } } : fed,
      );
      return { ...page, rows };
    };
    runs.findKept = (tenant, runId) =>
      runId === three
        ? Promise.reject(new HostError('history_undecodable'))
        : findKept(tenant, runId);
    try {
      const frames = await reads(sessionId, 4);
      expect(placed(frames)).toEqual([`${one} 0`, `${two} 0`, `${three} 0`, `${one} 1`]);
      const lost = { session_id: sessionId, payload: {}, unreadable };
      expect(frames.map(told)).toMatchObject([{}, { unreadable }, lost, {}]);
      expect(told(frames[3] as Frame)).not.toHaveProperty('unreadable');
    } finally {
      feed.events = events;
      runs.findKept = findKept;
    }
  });

  it('seed 003 §3.3 each event in the envelope, of a run and of one that a call of it spawned', async () => {
    const sessionId = newId('talk');
    const parent = await runIn(sessionId);
    const payload = { agentId: 'a', toolName: 'agent:sub', callId: 'call-1', secret: '«masked»' };
    const returned = { ...payload, status: 'ok', outcome: 'x', durationMs: 1_234 };
    await append(parent, { type: 'agent.toolCalled', payload: JSON.stringify(payload) });
    const spawned = { parentRunId: parent, correlationId: parent, causationId: 'call-1' };
    const child = await runIn(sessionId, spawned);
    const chunk = { nodeId: 'n', runId: child, chunk: 'hi', isLast: true };
    await append(child, { type: 'output.chunk', payload: JSON.stringify(chunk), timestampMs: 7 });
    await append(parent, { type: 'agent.toolReturned', payload: JSON.stringify(returned) });
    const [called, piece, result] = await reads(sessionId, 3);
    const names = [called, piece, result].map((frame) => frame?.event);
    expect(names).toEqual([
      ...['agent.toolCalled', 'workflow.node.output.delta', 'workflow.tool.completed'],
    ]);
    if (!called || !piece || !result) throw new Error('missing');
    expect(told(piece)).toEqual({
      ...{ event_id: piece.id, event_type: 'workflow.node.output.delta', seq: 0 },
      ...{ timestamp: '1970-01-01T00:00:00.007Z', session_id: sessionId, run_id: child },
      ...{ parent_run_id: parent, agent_level: 'subagent', correlation_id: parent },
      ...{ causation_id: 'call-1', payload: chunk },
    });
    expect(told(called)).toMatchObject({
      ...{ run_id: parent, parent_run_id: null, agent_level: 'core', correlation_id: parent },
      ...{ causation_id: null, payload: { ...payload, call_id: 'call-1', tool_name: 'agent:sub' } },
    });
    expect(told(result).payload).toMatchObject({
      ...{ call_id: 'call-1', tool_name: 'agent:sub', result: 'x', duration: 1_234 },
    });
    expect(Object.keys(told(called))).toEqual([
      ...['event_id', 'event_type', 'seq', 'timestamp', 'session_id', 'run_id', 'parent_run_id'],
      ...['agent_level', 'correlation_id', 'causation_id', 'payload'],
    ]);
  });

  it('seed 003 §6 with writers at once and a facade that begins anew: every event once, in the order of the feed, seq strictly rising in each run', async () => {
    const sessionId = newId('talk');
    const runs = [await runIn(sessionId)];
    const other = await runIn(newId('other'));
    const rounds = 12;
    const writing = (async () => {
      for (let n = 0; n < 3; n++) runs.push(await runIn(sessionId));
      await Promise.all(
        [...runs, other].map(async (runId) => {
          for (let round = 0; round < rounds; round++) {
            await appendRows(twin.stores, runId, [`${round}a`, `${round}b`]);
            if (round % 4 === 0)
              await twin.stores.log.appendDeltas(refTo(runId), `n/1/0/${round}`, 1, [
                delta(runId, `n/1/0/${round}`, 0),
              ]);
          }
        }),
      );
    })();
    const total = 4 * (2 * rounds + rounds / 4);
    const frames: Frame[] = [];
    while (frames.length < total) {
      const part = Math.min(17, total - frames.length);
      frames.push(...(await reads(sessionId, part, { lastId: frames.at(-1)?.id })));
      await host.stop();
      await begin();
    }
    await writing;
    const { rows } = await twin.stores.feed.read({
      ...{ tenant: 'default', sessionId, after: 0, limit: 10_000 },
    });
    expect(placed(frames)).toEqual(rows.map(({ run, sequence }) => `${run.runId} ${sequence}`));
    expect(new Set(frames.map(({ id }) => id)).size).toBe(total);
    for (const runId of runs) {
      const seqs = frames.map(told).flatMap(({ run_id, seq }) => (run_id === runId ? [seq] : []));
      expect(seqs).toEqual(seqs.map((_, at) => at));
    }
    expect(await reads(sessionId, 3)).toEqual(frames.slice(0, 3));
  });

  it('seed 003 §4.2 a client goes on behind the event that it names, by header or query, live too', async () => {
    const sessionId = newId('talk');
    const runId = await runIn(sessionId);
    await appendRows(twin.stores, runId, ['1', '2', '3']);
    const [first, second, third] = await reads(sessionId, 3);
    expect(await reads(sessionId, 2, { lastId: first?.id })).toEqual([second, third]);
    const query = `?lastEventId=${second?.id}`;
    expect(await read(sessionId, () => true, { query })).toEqual([third]);
    // Of a new host, which no other stream of the session has read for.
    await host.stop();
    await begin();
    const live = reads(sessionId, 1, { lastId: third?.id });
    await expect.poll(() => ends).toContain(sessionId);
    const late = await runIn(sessionId);
    await appendRows(twin.stores, late, ['1']);
    expect(placed(await live)).toEqual([`${late} 0`]);
  });

  it('seed 003 §4.2 an id that no event of the session has is refused, and so is a session that is not there', async () => {
    const [sessionId, elsewhere] = [newId('talk'), newId('talk')];
    const runs = [await runIn(sessionId), await runIn(elsewhere)];
    for (const runId of runs) await appendRows(twin.stores, runId, ['1']);
    const [foreign] = await reads(elsewhere, 1);
    const unknown = `evt-${'0'.repeat(27)}`;
    for (const lastId of [unknown, foreign?.id ?? '', '0', 'evt-x', `${unknown}0`]) {
      const { body } = await refused(
        pathOf(sessionId),
        { headers: { 'last-event-id': lastId } },
        { status: 400, code: 'validation_error' },
      );
      expect(JSON.stringify(body.details)).toContain('Last-Event-ID');
    }
    await refused(pathOf(newId('none')), {}, { status: 404, code: 'not_found' });
  });

  it('architecture §10 its streams are counted with the others of the key', async () => {
    await host.stop();
    await begin(1);
    const sessionId = newId('talk');
    await runIn(sessionId);
    const stop = new AbortController();
    const headers = { authorization: `Bearer ${KEY}` };
    const held = await fetch(host.url + pathOf(sessionId), { headers, signal: stop.signal });
    expect(held.headers.get('content-type')).toContain('text/event-stream');
    await refused(pathOf(sessionId), {}, { status: 429, code: 'rate_limited' });
    stop.abort();
  });

  // PGlite has one connection: nobody commits beside it.
  if (!besides) return;

  it('architecture §3.6 what is committed late is waited for: nothing comes before it', async () => {
    const { options } = twin;
    if (!options) throw new Error('of another process');
    await host.stop();
    await begin();
    const sessionId = newId('talk');
    const [slow, quick] = [await runIn(sessionId), await runIn(sessionId)];
    const { db, close } = await openDatabase(options, quietLogger);
    const frames = reads(sessionId, 3);
    await db.transaction(async (tx) => {
      await tx.query(
        `INSERT INTO run_events (run_id, sequence, tenant_id, event_id, key, type, payload, timestamp_ms)
         VALUES ($1, 0, 'default', $2, 'late', 'x.y', '{}', 0)`,
        [slow, `evt-${slow.replaceAll('-', '').slice(0, 27)}`],
      );
      await appendRows(twin.stores, quick, ['1', '2']);
      await takes(300);
    });
    expect(placed(await frames)).toEqual([`${slow} 0`, `${quick} 0`, `${quick} 1`]);
    await close();
  });

  // [I118]
  it('architecture §3.6 goes on after a failover that gave the positions of lost events to others, and gives those again', async () => {
    const { options } = twin;
    if (!options) throw new Error('of another process');
    const sessionId = newId('talk');
    const [kept, other] = [await runIn(sessionId), await runIn(sessionId)];
    await appendRows(twin.stores, kept, ['1', '2', '3']);
    const { rows: fed } = await twin.stores.feed.read({
      ...{ tenant: 'default', sessionId, after: 0, limit: 10 },
    });
    const { db, close } = await openDatabase(options, quietLogger);
    const failOver = async (): Promise<void> => {
      const run = refTo(kept);
      const head = await headOf(twin.stores, kept);
      const rows = (await twin.stores.log.read(run, { after: -1, limit: 10 })).slice(0, 1);
      const told = { summary: NO_WAITS, head: { ...head, nextSequence: 1 }, rows };
      await twin.stores.log.restore(run, told, head);
      await db.query("SELECT setval('run_feed_position', $1)", [fed[0]?.position ?? 0]);
      await appendRows(twin.stores, other, ['1', '2', '3']);
    };
    let failed: Promise<void> | undefined;
    let seen = 0;
    const frames = await read(sessionId, () => {
      if (++seen === 3) failed = failOver();
      return seen === 7;
    });
    await failed;
    const again = [`${kept} 0`, `${other} 0`, `${other} 1`, `${other} 2`];
    expect(placed(frames)).toEqual([`${kept} 0`, `${kept} 1`, `${kept} 2`, ...again]);
    await close();
  });
}

describe('PGlite', () => {
  streamRules(async () => ({ stores: await openTestStores() }), { besides: false });
});

describe.skipIf('missing' in postgres)('PostgreSQL', () => {
  streamRules(
    async () => {
      if ('missing' in postgres) throw new Error(postgres.missing);
      const options = { kind: 'postgres', url: await postgres.createDatabase() } as const;
      return { options, stores: await openStores({ database: options, logger: quietLogger }) };
    },
    { besides: true },
  );
});
