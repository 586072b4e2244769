// A second major beside the first: one more row, and nothing else. The row here is made up, of the kind that the
// protocol's next major needs: bound ids, other names of codes and events, its routes at the bare origin.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createFacade } from '../../src/facade/app.ts';
import { FIRST, type ServedMajor } from '../../src/facade/majors.ts';
import { createLog } from '../../src/log/log.ts';
import { HostError } from '../../src/rules/errors.ts';
import { eventRow } from '../../src/rules/events.ts';
import type { JsonObject } from '../../src/rules/json.ts';
import { agentInstance } from '../contract/agent-registry.ts';
import { emitted, HistoryBuilder, memo } from '../support/histories.ts';
import { apiClient, type ApiClient } from '../support/host.ts';
import { openAnyStores, registerRun, ScriptedHistory, silentLogger } from '../support/log-parts.ts';
import { runRef } from '../support/run-ref.ts';
import { catalogOf, DEFINITIONS, faultParts, KEY, type FaultParts } from './fault-host.ts';
import { readSse } from './sse-client.ts';

const nameOf = (type: string): string => eventRow(type).nextMajor ?? type;
const bound = (id: string): string => `default/${id}`;

const TRIAL: ServedMajor = {
  ...FIRST,
  version: '9.0',
  prefix: '',
  ids: {
    bind: (kind, id, tenant) =>
      kind === 'run' || kind === 'interrupt' ? `${tenant}/${id}` : `${kind}~${id}`,
    project: (shown) => shown.replaceAll('/', '~2F'),
    parse(kind, shown, { tenant }) {
      if (kind !== 'run' && kind !== 'interrupt') return shown.replace(`${kind}~`, '');
      const [owner, id] = shown.replace('~2F', '/').split('/');
      if (owner !== tenant || id === undefined) throw new HostError('forbidden');
      return id;
    },
  },
  errors: {
    ...FIRST.errors,
    run_not_found: { error: 'not_found', status: 404 },
    service_unavailable: { error: 'trial.away', status: 502 },
    capability_not_provided: { error: 'capability_not_provided', status: 422 },
  },
  detailsOf: (details) => details,
  events: {
    2: {
      typeOf: nameOf,
      textOf: ({ runId, type, sequence }, tenant) =>
        JSON.stringify({ runId: `${tenant}/${runId}`, type: nameOf(type), sequence }),
      payloadOf: ({ payload }) => payload,
    },
  },
  snapshot: ({ runId, status }, { tenant }) => ({ runId: `${tenant}/${runId}`, status }),
};

const QUESTION = { nodeId: 'gate', interruptId: 'int-1', key: 'q', kind: 'approval' };
const HISTORY = (() => {
  const built = new HistoryBuilder();
  const chunk = { chunk: 'Well', nodeId: 'gate', channel: 'answer' };
  return built.task(
    memo(
      built.carrier(
        emitted('run.started', 'run.started', { workflowId: 'w' }),
        emitted('told', 'agent.promptResolved', { agentId: 'a' }, { nodeId: 'gate' }),
        emitted('said', 'output.chunk', chunk, { nodeId: 'gate' }),
        emitted('asked', 'node.suspended', { ...QUESTION, reason: 'approval' }, { nodeId: 'gate' }),
        emitted('requested', 'interrupt.requested', { ...QUESTION, data: {} }, { nodeId: 'gate' }),
      ),
    ),
  );
})();

let parts: FaultParts;
let server: Server;
let client: ApiClient;
let url: string;

beforeAll(async () => {
  const stores = await openAnyStores();
  const history = new ScriptedHistory();
  const log = createLog({ stores, history, logger: silentLogger, processId: 'majors' });
  parts = await faultParts(
    { opensentience: true },
    () => ({ log, catalog: catalogOf(DEFINITIONS) }),
    stores,
  );
  await registerRun(stores, 'run-waits');
  history.add('run-waits-t1', HISTORY);
  await log.catchUp(runRef('run-waits'));
  await registerRun(stores, 'run-over');
  await log.endUnstarted(runRef('run-over'), { cause: 'It never ran.', atMs: 1 });
  await stores.agents.saveInstance(agentInstance({ agentId: 'local.tests.helper' }), 60_000);
  server = createServer(createFacade(parts.deps, [FIRST, TRIAL]).app);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  client = apiClient(url, KEY, { isPatient: false });
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await parts.close();
});

const HERE = '/runs/default~2Frun-waits';
const auth = { authorization: `Bearer ${KEY}` };

describe('[I52] a second major is one more row (architecture §9)', () => {
  it('ids are bound in bodies and projected in addresses, which are those of the major that was asked', async () => {
    const { status, body } = await client.api<Record<string, string>>('/runs', {
      body: { workflowId: 'workflow~noop' },
    });
    const id = body.runId?.replace('default/', '') ?? '';
    expect({ status, body }).toMatchObject({
      status: 201,
      body: { runId: bound(id), statusUrl: `${url}/runs/default~2F${id}` },
    });
    // Inside it is bare.
    expect(parts.temporal.started.at(-1)?.runId).toBe(id);
    expect(id).toMatch(/^run-/);
    const list = await client.api<{ runs: JsonObject[] }>('/runs?limit=1&workflowId=workflow~noop');
    expect(list.body.runs[0]).toMatchObject({
      runId: bound(id),
      workflowId: 'workflow~noop',
      eventsUrl: `${url}/runs/default~2F${id}/events`,
    });
    const first = await client.api<{ runs: JsonObject[] }>('/v1/runs?limit=1');
    expect(first.body.runs[0]).toMatchObject({ runId: id, statusUrl: `${url}/v1/runs/${id}` });
  });

  it('a run is found by the id that the major shows, and no other', async () => {
    expect((await client.api(HERE)).body).toEqual({
      runId: bound('run-waits'),
      status: 'waiting-approval',
    });
    expect((await client.api('/runs/other~2Frun-waits')).status).toBe(403);
    expect((await client.api('/v1/runs/default~2Frun-waits')).status).toBe(404);
    expect((await client.api('/v1/runs/run-waits')).body).toMatchObject({
      runId: 'run-waits',
      eventLogSchemaVersion: 2,
    });
  });

  it('rows are rendered by the era of the run and the major: JSON, poll, frames, batches, pieces, snapshots', async () => {
    const whole = await client.api<{ events: JsonObject[] }>(`${HERE}/events`, {
      headers: { accept: 'application/json' },
    });
    const poll = await client.api<{ runId: string; events: JsonObject[] }>(`${HERE}/events/poll`);
    expect(poll.body.runId).toBe(bound('run-waits'));
    for (const { events } of [whole.body, poll.body]) {
      expect(events.map(({ runId }) => runId)).toEqual(Array(5).fill(bound('run-waits')));
      expect(events[1]?.type).toBe('agent.prompt-resolved');
    }
    const stream = async (query: string, last: string) => {
      const read = { url: `${url}${HERE}/events?${query}`, headers: auth };
      const { frames } = await readSse({ ...read, until: ({ event }) => event === last });
      return frames.map(({ event, data }) => ({ event, data: JSON.parse(data) as unknown }));
    };
    const frames = await stream('streamMode=debug', 'interrupt.requested');
    expect(frames[1]).toEqual({ event: 'agent.prompt-resolved', data: whole.body.events[1] });
    const [batch] = await stream('streamMode=debug&bufferMs=10', 'batch');
    expect(batch?.data).toEqual(whole.body.events.slice(0, 4));
    const [piece] = await stream('streamMode=messages', 'ai.message.chunk');
    expect(piece?.data).toMatchObject({ runId: bound('run-waits'), chunk: 'Well' });
    const [snapshot] = await stream('streamMode=values', 'state.snapshot');
    expect(snapshot?.data).toEqual({ runId: bound('run-waits'), status: 'waiting-approval' });
  });

  // stream-modes.md: a request behind the end of a run is answered with 200, so nothing but `retry:` holds a browser's
  // EventSource back, which asks again whenever a stream ends.
  it.each(['/v1/runs/run-over', '/runs/default~2Frun-over'])(
    'streams of an ended run say to ask again in a day, and send nothing of what the client has: %s',
    async (run) => {
      const ask = async (query: string, headers = {}) => {
        const answer = await client.api(`${run}/events?${query}`, {
          headers: { accept: 'text/event-stream', ...headers },
        });
        expect(answer.status).toBe(200);
        return answer.text;
      };
      const retry = 'retry: 86400000\n\n';
      expect(await ask('streamMode=messages')).toBe(retry);
      for (const query of ['streamMode=updates', 'streamMode=debug', 'bufferMs=200']) {
        expect(await ask(query)).toMatch(/"sequence":\d.*\n\nretry: 86400000\n\n$/);
        expect(await ask(query, { 'last-event-id': '9' })).toBe(retry);
        expect(await ask(`${query}&lastEventId=9`)).toBe(retry);
      }
      // The protocol wants a fresh snapshot, whatever the client has.
      const snapshot = await ask('streamMode=values', { 'last-event-id': '9' });
      expect(snapshot).toMatch(/^id: \d+\nevent: state.snapshot\ndata: .*\n\nretry: 86400000\n\n$/);
    },
  );

  it('our codes are inside: each major has its names, statuses and details', async () => {
    const gone = await client.api('/runs/default~2Frun-nobody');
    expect(gone).toMatchObject({ status: 404, body: { error: 'not_found' } });
    expect((await client.api('/v1/runs/run-nobody')).body.error).toBe('run_not_found');
    parts.temporal.away = true;
    const away = await client.api('/runs', { body: { workflowId: 'noop' } });
    const first = await client.api('/v1/runs', { body: { workflowId: 'noop' } });
    parts.temporal.away = false;
    expect(away).toMatchObject({ status: 502, body: { error: 'trial.away' } });
    expect(away.body.details).not.toHaveProperty('retryAfter');
    expect((away.body.details as JsonObject).runId).toMatch(/^default\/run-/);
    expect((first.body.details as JsonObject).runId).toMatch(/^run-/);
    expect(away.headers.get('retry-after')).toBe('2');
    expect(first).toMatchObject({ status: 503, body: { details: { retryAfter: 2 } } });
  });

  it('a message reaches the run, and what a key keeps belongs to the major that it was used in', async () => {
    const body = { resumeValue: {}, interruptId: bound('int-1') };
    expect(await client.api(`${HERE}/interrupts/node~gate`, { body })).toMatchObject({
      status: 200,
      body: { runId: bound('run-waits'), nodeId: 'node~gate', status: 'resolved' },
    });
    const headers = { 'idempotency-key': 'once' };
    const cancel = () => client.api(`${HERE}/cancel`, { body: {}, headers });
    const answer = await cancel();
    expect(answer.body).toEqual({ runId: bound('run-waits'), status: 'cancelling' });
    expect((await cancel()).text).toBe(answer.text);
    const first = await client.api('/v1/runs/run-waits/cancel', { body: {}, headers });
    expect(first.headers.get('openwop-idempotent-replay')).toBe('false');
    expect(first.body).toEqual({ runId: 'run-waits', status: 'cancelling' });
    const kept = { body: { workflowId: 'nothing' }, headers: { 'idempotency-key': 'refused' } };
    expect((await client.api('/runs', kept)).text).toBe((await client.api('/runs', kept)).text);
    const again = { body: { workflowId: 'noop' }, headers: { 'idempotency-key': 'run' } };
    const accepted = await client.api<{ runId: string }>('/runs', again);
    expect((await client.api('/runs', again)).text).toBe(accepted.text);
    // The log names runs as they are called inside.
    const logged = parts.lines.map(({ fields }) => fields.runId);
    expect(logged).toContain(accepted.body.runId.replace('default/', ''));
    expect(logged).not.toContain(accepted.body.runId);
  });

  it('what is at one address for all is there once, and the preferred major is told first', async () => {
    const discovery = await client.api('/.well-known/openwop');
    expect(discovery.body).toMatchObject({
      protocolVersion: '1.0',
      protocolVersions: ['1.0', '9.0'],
    });
    expect((await client.api('/v1/healthz')).status).toBe(404);
    expect((await client.api('/healthz')).status).toBe(200);
    const [first, trial] = await Promise.all(
      ['/v1/openapi.json', '/openapi.json'].map(async (path) => {
        const { body } = await client.api<{ paths: Record<string, unknown> }>(path);
        return Object.keys(body.paths);
      }),
    );
    expect(first).toContain('/v1/runs/{runId}:pause');
    expect(trial).toEqual(first?.map((path) => path.replace(/^\/v1/, '')));
  });
});
