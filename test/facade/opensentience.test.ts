// The operator's view of agents by HTTP (seed 004 §5; architecture §5): what is there with the feature and what is not
// without it, every answer against its published shape. Answers are recorded for the tests of the CLI
// (test/cli/recorded).
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addFormats } from '../../src/wire/formats.ts';
import { schemaDocument } from '../../src/wire/validators.ts';
import { runCli } from '../../src/cli/program.ts';
import { sha256Hex } from '../../src/rules/ids.ts';
import { AGENT_RECORDS_RETENTION_MS, createReaper } from '../../src/runs/reaper.ts';
import { FIRST } from '../../src/facade/majors.ts';
import { pathOf } from '../../src/facade/route.ts';
import { discoveryDocument } from '../../src/facade/routes/discovery.ts';
import { OPENSENTIENCE } from '../../src/facade/routes/opensentience.ts';
import type { AgentAuditEntry, AgentSessionView } from '../../src/ports/agents.ts';
import type { CatalogAgent } from '../../src/ports/catalog.ts';
import type {
  OpenSentienceAgentDetail,
  OpenSentienceAgentList,
  OpenSentienceAttachment,
  OpenSentienceAudit,
} from '../../schemas/types.generated.ts';
import { agentInstance, agentTool } from '../contract/agent-registry.ts';
import { withClockOff } from '../support/wall-clock.ts';
import { KEY, refusals, startFaultHost, type FaultHost } from './fault-host.ts';

const BASE = '/v1/host/openwop-temporal/opensentience';
const LEASE_MS = 600_000;
const AT_MS = Date.UTC(2026, 0, 2, 3, 4, 5, 678);
/** What a test itself may take. */
const SLACK_MS = 600_000;
const RECORDED = '../cli/recorded';

let host: FaultHost;
let off: FaultHost;

beforeAll(async () => {
  [host, off] = await Promise.all([startFaultHost({ opensentience: true }), startFaultHost()]);
  await seed(host.stores.agents);
});

afterAll(async () => {
  await Promise.all([host.stop(), off.stop()]);
});

const refused = refusals(() => host);
const refusedOff = refusals(() => off);

const CALLS = [
  {
    callId: 'call-1',
    toolId: 'example.notes/add',
    runId: 'run-1',
    state: 'in-flight',
    sinceMs: AT_MS,
  },
  {
    callId: 'call-2',
    toolId: 'example.notes/add',
    runId: 'run-1',
    state: 'canceling',
    sinceMs: AT_MS,
  },
  {
    callId: 'call-3',
    toolId: 'example.notes/list',
    runId: 'run-2',
    state: 'queued',
    sinceMs: AT_MS,
  },
] as const;

function metrics(toolId: string, n: number) {
  return {
    ...{ toolId, calls: 4 * n + 2, succeeded: n, failed: n, canceled: n, unanswered: n },
    ...{ totalMs: 1_000 * n, maxMs: 400 + n },
  };
}

/** Two Cores: notes runs in both, weather waits in one, files is known by its tools alone. */
async function seed(agents: FaultHost['stores']['agents']): Promise<void> {
  const notes = { agentId: 'example.notes', name: 'Notes', version: '1.2.0' } as const;
  const session: AgentSessionView = {
    sessionId: 'session-1',
    agentVersion: '1.2.0',
    sdk: { name: 'openwop-agent', version: '0.1.0' },
    transport: 'unix',
    attached: false,
    pid: 4711,
    state: 'ready',
    health: 'ok',
    connectedAtMs: AT_MS,
    lastHeartbeatAtMs: AT_MS + 5_000,
    uptimeMs: 5_000,
    manifestMatches: true,
    toolIds: ['example.notes/add', 'example.notes/list'],
    calls: CALLS,
    bytesIn: 1_024,
    bytesOut: 2_048,
  };
  const second: AgentSessionView = {
    ...session,
    sessionId: 'session-2',
    health: 'degraded',
    calls: [],
    attached: true,
    transport: 'tcp',
  };
  await agents.saveInstance(
    agentInstance({ ...notes, session, metrics: [metrics('example.notes/add', 1)], restarts: 2 }),
    LEASE_MS,
  );
  await agents.saveInstance(
    agentInstance({
      ...notes,
      ...{ instanceId: 'core-2', coreHost: 'host-2', socket: '/tmp/core-2.sock', session: second },
      metrics: [metrics('example.notes/add', 2), metrics('example.notes/list', 0)],
      lastExit: { atMs: AT_MS - 1_000, reason: 'signal SIGKILL' },
      restarts: 1,
    }),
    LEASE_MS,
  );
  await agents.saveInstance(
    agentInstance({
      ...{ agentId: 'example.weather', name: 'Weather', launch: 'attach', status: 'waiting' },
    }),
    LEASE_MS,
  );
  await agents.saveInstance(agentInstance({ agentId: 'example.dead' }), 0);
  await agents.saveInstance(agentInstance({ agentId: 'theirs.only', tenant: 'other' }), LEASE_MS);
  await agents.saveTools('default', 'example.notes', [
    agentTool('example.notes', 'add', {
      ...{ description: 'Adds a note.', sideEffects: true, approval: 'ask', tags: ['notes'] },
      outputSchema: { type: 'object' },
    }),
    agentTool('example.notes', 'list'),
  ]);
  await agents.saveTools('default', 'example.files', [agentTool('example.files', 'read')]);
  await agents.saveTools('other', 'theirs.only', [agentTool('theirs.only', 'secret')]);
  const entry = { atMs: AT_MS, tenant: 'default', instanceId: 'core-1' };
  await agents.appendAudit([
    { ...entry, kind: 'hello.refused', details: { code: 'protocol.unauthorized' } },
    {
      ...{ ...entry, agentId: 'example.notes', sessionId: 'session-1' },
      ...{ kind: 'session.opened', details: { pid: 4711 } },
    },
    { ...entry, agentId: 'example.weather', kind: 'process.exited', details: { exitCode: 1 } },
    { ...entry, tenant: 'other', kind: 'session.opened', details: {} },
  ]);
}

const ajv = new Ajv2020({ strict: true });
addFormats(ajv);
ajv.addSchema(schemaDocument('opensentience-operations'));

/** Asks, holds the answer against its shape, and records it for the CLI's tests. */
async function answered<Shape>(
  path: string,
  shape: 'OpenSentienceAgentList' | 'OpenSentienceAgentDetail' | 'OpenSentienceAudit',
  recorded?: string,
): Promise<Shape> {
  const answer = await host.api<Shape>(`${BASE}${path}`);
  expect([answer.status, answer.headers.get('cache-control')]).toEqual([200, 'no-store']);
  const valid = ajv.compile({ $ref: `openwop:opensentience-operations#/$defs/${shape}` });
  expect([valid(answer.body), valid.errors]).toEqual([true, null]);
  if (recorded !== undefined)
    await expect(`${JSON.stringify(answer.body, null, 2)}\n`).toMatchFileSnapshot(
      `${RECORDED}/${recorded}.json`,
    );
  return answer.body;
}

describe('seed 004 §5 the list of agents', () => {
  it('groups instances by agent, sorted; a dead Core and another tenant are not in it', async () => {
    const { agents } = await answered<OpenSentienceAgentList>(
      '/agents',
      'OpenSentienceAgentList',
      'agents',
    );
    expect(
      agents.map(({ agentId, status, instances }) => [agentId, status, instances.length]),
    ).toEqual([
      ['example.files', 'absent', 0],
      ['example.notes', 'connected', 2],
      ['example.weather', 'waiting', 1],
    ]);
    expect(agents[1]).toMatchObject({ health: 'degraded', toolCount: 2, inFlight: 2, queued: 1 });
    expect(agents[2]).not.toHaveProperty('health');
  });
});

describe('seed 004 §5 one agent', () => {
  it('has sessions, tools with schemas and policy, calls by id, and metrics over all Cores', async () => {
    const agent = await answered<OpenSentienceAgentDetail>(
      '/agents/example.notes',
      'OpenSentienceAgentDetail',
      'agent-notes',
    );
    expect(agent.tools[0]).toMatchObject({
      ...{ toolId: 'example.notes/add', approval: 'ask', outputSchema: { type: 'object' } },
    });
    expect(agent.calls.map(({ callId, state, instanceId }) => [callId, state, instanceId])).toEqual(
      [
        ['call-1', 'in-flight', 'core-1'],
        ['call-2', 'canceling', 'core-1'],
        ['call-3', 'queued', 'core-1'],
      ],
    );
    expect(agent.metrics).toEqual([
      {
        ...{ toolId: 'example.notes/add', calls: 16, succeeded: 3, failed: 3, canceled: 3 },
        ...{ unanswered: 3, meanMs: 250, maxMs: 402 },
      },
      {
        ...{ toolId: 'example.notes/list', calls: 2, succeeded: 0, failed: 0, canceled: 0 },
        ...{ unanswered: 0, meanMs: 0, maxMs: 400 },
      },
    ]);
  });

  it('is there while only its tools are, and while only its Core is', async () => {
    const files = await answered<OpenSentienceAgentDetail>(
      '/agents/example.files',
      'OpenSentienceAgentDetail',
      'agent-files',
    );
    expect(files).toMatchObject({ status: 'absent', toolCount: 1, instances: [], metrics: [] });
    const weather = await answered<OpenSentienceAgentDetail>(
      '/agents/example.weather',
      'OpenSentienceAgentDetail',
      'agent-weather',
    );
    expect(weather).toMatchObject({ status: 'waiting', tools: [] });
  });

  it.each(['no.such', 'theirs.only', 'example.dead', 'a%00b', '%27%20OR%201=1', 'x'.repeat(300)])(
    '%s is 404 agent_not_found',
    async (agentId) => {
      await refused(`${BASE}/agents/${agentId}`, {}, { status: 404, code: 'agent_not_found' });
    },
  );
});

describe('seed 004 §5 audit', () => {
  it('is newest first, pages without a gap, and is of one agent where asked', async () => {
    const all = await answered<OpenSentienceAudit>('/audit', 'OpenSentienceAudit', 'audit');
    expect(all.entries.map(({ kind }) => kind)).toEqual([
      'process.exited',
      'session.opened',
      'hello.refused',
    ]);
    expect(all).not.toHaveProperty('nextBefore');
    const first = await answered<OpenSentienceAudit>('/audit?limit=2', 'OpenSentienceAudit');
    const rest = await answered<OpenSentienceAudit>(
      `/audit?limit=2&before=${first.nextBefore}`,
      'OpenSentienceAudit',
    );
    expect([...first.entries, ...rest.entries]).toEqual(all.entries);
    const notes = await answered<OpenSentienceAudit>(
      '/audit?agentId=example.notes',
      'OpenSentienceAudit',
      'audit-notes',
    );
    expect(notes.entries.map(({ sessionId }) => sessionId)).toEqual(['session-1']);
  });

  it.each([
    'limit=0',
    'limit=201',
    'limit=x',
    'before=0',
    'before=-1',
    'agentId=',
    'agentId=a%00b',
    'limit=1&limit=2',
  ])('%s is 400', async (query) => {
    await refused(`${BASE}/audit?${query}`, {}, { status: 400, code: 'validation_error' });
  });
});

describe('seed 004 §5.3 a token for an agent that is started by hand', () => {
  const attach = (agentId: string) =>
    host.api<OpenSentienceAttachment>(`${BASE}/agents/${agentId}/attach`, { method: 'POST' });

  it('is 32 random bytes, good once, for this agent, for five minutes; only its hash is stored', async () => {
    const before = Date.now();
    const { status, body, headers } = await attach('example.weather');
    expect([status, headers.get('cache-control')]).toEqual([201, 'no-store']);
    expect(Object.keys(body).sort()).toEqual(['agentId', 'expiresAt', 'socket', 'token']);
    expect(body).toMatchObject({ agentId: 'example.weather', socket: '/tmp/core-1.sock' });
    expect(Buffer.from(body.token, 'base64url')).toHaveLength(32);
    const livesMs = Date.parse(body.expiresAt) - before;
    expect(livesMs).toBeGreaterThanOrEqual(5 * 60_000);
    expect(livesMs).toBeLessThan(6 * 60_000);
    const { agents } = host.stores;
    const token = {
      tenant: 'default',
      agentId: 'example.weather',
      tokenHash: sha256Hex(body.token),
    };
    expect(await agents.consumeToken({ ...token, tokenHash: body.token })).toBe(false);
    expect(await agents.consumeToken({ ...token, agentId: 'example.notes' })).toBe(false);
    expect(await agents.consumeToken(token)).toBe(true);
    expect(await agents.consumeToken(token)).toBe(false);
  });

  it.each([-3_600_000, 3_600_000])(
    'goes by no clock of a process: of one that is off by %i ms',
    async (offMs) => {
      const { agents } = host.stores;
      const made = await withClockOff(offMs, () => attach('example.weather'));
      const other = await attach('example.weather');
      expect(
        Math.abs(Date.parse(made.body.expiresAt) - Date.parse(other.body.expiresAt)),
      ).toBeLessThan(3_000_000);
      const tokenOf = ({ body }: typeof made) => ({
        ...{ tenant: 'default', agentId: 'example.weather', tokenHash: sha256Hex(body.token) },
      });
      expect(await agents.consumeToken(tokenOf(made))).toBe(true);
      const spent = await withClockOff(offMs, () => agents.consumeToken(tokenOf(other)));
      expect(spent).toBe(true);
    },
  );

  it('is new each time, audited without itself, and in no log', async () => {
    const [one, other] = [await attach('example.weather'), await attach('example.weather')];
    expect(one.body.token).not.toBe(other.body.token);
    const [entry] = await host.stores.agents.audit('default', { limit: 1 });
    expect(entry).toMatchObject({ kind: 'token.minted', agentId: 'example.weather' });
    const told = JSON.stringify([
      host.lines,
      await host.stores.agents.audit('default', { limit: 9 }),
    ]);
    for (const { body } of [one, other]) {
      expect(told).not.toContain(body.token);
      expect(told).not.toContain(sha256Hex(body.token));
    }
  });

  it('of an agent that is refused for its permissions is 403; what it asks for is shown', async () => {
    const permissions = [{ permission: 'network:egress', state: 'refused' as const }];
    await host.stores.agents.saveInstance(
      agentInstance({ agentId: 'other.refused', status: 'refused', permissions }),
      LEASE_MS,
    );
    const expected = { status: 403, code: 'forbidden' };
    await refused(`${BASE}/agents/other.refused/attach`, { method: 'POST' }, expected);
    const shown = await answered<OpenSentienceAgentDetail>(
      '/agents/other.refused',
      'OpenSentienceAgentDetail',
    );
    expect(shown).toMatchObject({ status: 'refused', instances: [{ permissions }] });
  });

  it.each(['no.such', 'example.dead', 'example.files', 'theirs.only', 'a%00b'])(
    'of %s, which no living Core knows, is 404',
    async (agentId) => {
      const request = { method: 'POST' };
      const expected = { status: 404, code: 'agent_not_found' };
      await refused(`${BASE}/agents/${agentId}/attach`, request, expected);
    },
  );
});

describe('seed 004 §5.3 the command line on the real routes', () => {
  it('attach --json prints a token that lets its agent in', async () => {
    let out = '';
    const code = await runCli(['agents', 'attach', 'example.weather', '--json'], {
      url: host.url,
      apiKey: KEY,
      out: (text) => void (out += text),
      err: (text) => void (out += text),
    });
    expect(code).toBe(0);
    const { token, ...rest } = JSON.parse(out) as OpenSentienceAttachment;
    expect(Object.keys(rest)).toEqual(['socket', 'expiresAt']);
    const consumed = await host.stores.agents.consumeToken({
      ...{ tenant: 'default', agentId: 'example.weather', tokenHash: sha256Hex(token) },
    });
    expect(consumed).toBe(true);
  });
});

describe('metrics in the text format of Prometheus', () => {
  it('are counters per agent and tool, summed over Cores', async () => {
    const { status, headers, text } = await host.api(`${BASE}/metrics`);
    expect([status, headers.get('content-type')]).toEqual([
      200,
      'text/plain; version=0.0.4; charset=utf-8',
    ]);
    const tool = 'agent_id="example.notes",tool_id="example.notes/add"';
    for (const line of [
      '# TYPE openwop_agent_tool_calls_total counter',
      'openwop_agent_sessions{agent_id="example.notes"} 2',
      'openwop_agent_sessions{agent_id="example.files"} 0',
      'openwop_agent_restarts_total{agent_id="example.notes"} 3',
      'openwop_agent_calls_in_flight{agent_id="example.notes"} 2',
      'openwop_agent_calls_queued{agent_id="example.notes"} 1',
      `openwop_agent_tool_calls_total{${tool}} 16`,
      `openwop_agent_tool_results_total{${tool},outcome="unanswered"} 3`,
      `openwop_agent_tool_duration_seconds_total{${tool}} 3`,
      `openwop_agent_tool_duration_seconds_max{${tool}} 0.402`,
    ])
      expect(text.split('\n')).toContain(line);
    expect(text).not.toContain('theirs.only');
    const form =
      /^(# (HELP|TYPE) [a-z_]+ .+|[a-z_]+\{[a-z_]+="[^"\n]*"(,[a-z_]+="[^"\n]*")*\} [0-9.]+)$/;
    expect(
      text
        .trimEnd()
        .split('\n')
        .filter((line) => line !== '' && !form.test(line)),
    ).toEqual([]);
    expect(text.endsWith('\n')).toBe(true);
  });
});

describe('with and without the feature', () => {
  const discovery = async (of: FaultHost) =>
    (
      await of.api<{ extensions: Record<string, { opensentience?: Record<string, string> }> }>(
        '/.well-known/openwop',
      )
    ).body.extensions['openwop-temporal']?.opensentience;
  const paths = async (of: FaultHost) =>
    (await of.api<{ paths: Record<string, object> }>('/v1/openapi.json')).body.paths;

  it('discovery and OpenAPI tell exactly the addresses that answer', async () => {
    const told = Object.values((await discovery(host)) ?? {});
    expect(told).toHaveLength(Object.keys(OPENSENTIENCE).length);
    const served = Object.entries(await paths(host))
      .filter(([path]) => path.startsWith(BASE))
      .flatMap(([path, operations]) =>
        Object.keys(operations).map((method) => `${method.toUpperCase()} ${path}`),
      );
    expect([...told].sort()).toEqual(served.sort());
  });

  it('every reference of the OpenAPI document is to something in it', async () => {
    const { body } = await host.api<Record<string, unknown>>('/v1/openapi.json');
    const references = [...JSON.stringify(body).matchAll(/"\$ref":"#\/([^"]+)"/g)];
    const lost = references.filter(([, path = '']) => {
      let at: unknown = body;
      for (const step of path.split('/')) at = (at as Record<string, unknown> | undefined)?.[step];
      return at === undefined;
    });
    expect(lost.map(([reference]) => reference)).toEqual([]);
    const names = references.map(([, path]) => path);
    for (const name of ['AgentList', 'AgentDetail', 'Audit', 'Attachment'])
      expect(names).toContain(`components/schemas/OpenSentience${name}`);
  });

  it('without it the addresses are 404 and not told', async () => {
    expect(await discovery(off)).toBeUndefined();
    expect(Object.keys(await paths(off)).join(' ')).not.toContain('opensentience');
    for (const declared of Object.values(OPENSENTIENCE)) {
      const [method, path] = [declared.method, pathOf(declared, FIRST)];
      const request = { method: method.toUpperCase() };
      await refusedOff(path.replace('{agentId}', 'example.notes'), request, {
        ...{ status: 404, code: 'not_found' },
      });
    }
  });

  it('every address asks for the key first, and takes its own method alone', async () => {
    for (const declared of Object.values(OPENSENTIENCE)) {
      const [method, path] = [declared.method, pathOf(declared, FIRST)];
      const address = path.replace('{agentId}', 'example.notes');
      const anonymous = { method: method.toUpperCase(), headers: { authorization: '' } };
      await refused(address, anonymous, { status: 401, code: 'unauthenticated' });
      await refused(address, { method: 'DELETE' }, { status: 405, code: 'method_not_allowed' });
    }
  });
});

describe('RFC 0002 §D tool events', () => {
  it('are told where agents may bring tools, though this process registers none itself', () => {
    const agent = {} as CatalogAgent;
    const catalog = { ...host.deps.catalog, agents: () => [agent] };
    const told = (of: FaultHost) => discoveryDocument({ ...of.deps, catalog }).agents;
    expect(told(host)).toMatchObject({ toolEvents: true });
    expect(told(off)).toMatchObject({ toolEvents: false });
  });
});

describe('architecture §7 what was kept long enough', () => {
  it('the reaper deletes audit after its retention, and not before', async () => {
    const { agents } = host.stores;
    const entryOf = (atMs: number, kind: AgentAuditEntry['kind']) => ({
      ...{ atMs, kind, tenant: 'older', instanceId: 'core-1', details: {} },
    });
    const nowMs = Date.now();
    await agents.appendAudit([
      entryOf(nowMs - AGENT_RECORDS_RETENTION_MS - SLACK_MS, 'session.opened'),
      entryOf(nowMs - AGENT_RECORDS_RETENTION_MS + SLACK_MS, 'process.exited'),
    ]);
    await createReaper(host.deps).round();
    const left = await agents.audit('older', { limit: 9 });
    expect(left.map(({ kind }) => kind)).toEqual(['process.exited']);
  });
});
