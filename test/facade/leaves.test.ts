// Handlers without HTTP: parsed input goes in, an answer comes out as a value or a refusal is thrown. Every route that
// gives a value has its row here.
import { readdirSync, readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HostError } from '../../src/rules/errors.ts';
import { subjectOf } from '../../src/rules/subject.ts';
import { GET_OPENAPI, openApiDocument } from '../../src/facade/openapi.ts';
import { FIRST, MAJORS } from '../../src/facade/majors.ts';
import { createPageSessions } from '../../src/facade/page-sessions.ts';
import {
  answered,
  pathOf,
  type Answer,
  type Declaration,
  type Route,
} from '../../src/facade/route.ts';
import { DEFAULT_CALLER } from '../../src/facade/deps.ts';
import { routesOf } from '../../src/facade/route-table.ts';
import { CANCEL_RUN } from '../../src/facade/routes/cancel.ts';
import {
  GET_AGENT,
  GET_ARTIFACT,
  GET_WORKFLOW,
  LIST_AGENTS,
  LIST_WORKFLOWS,
} from '../../src/facade/routes/catalog.ts';
import { GET_CAPABILITIES } from '../../src/facade/routes/discovery.ts';
import { HEALTH, READINESS } from '../../src/facade/routes/health.ts';
import { RESOLVE_INTERRUPT } from '../../src/facade/routes/interrupts.ts';
import { OPENSENTIENCE } from '../../src/facade/routes/opensentience.ts';
import { RUN_OVERVIEW } from '../../src/facade/routes/overview.ts';
import { GET_ANCESTRY, GET_CAUSES, GET_EFFECTS } from '../../src/facade/routes/causation.ts';
import { GET_CONVERSATION, SAY_IN_SESSION } from '../../src/facade/routes/conversation.ts';
import { GET_SESSION, LIST_SESSIONS } from '../../src/facade/routes/sessions.ts';
import { LIST_CHILDREN } from '../../src/facade/routes/children.ts';
import { LIST_QUESTIONS } from '../../src/facade/routes/questions.ts';
import { CREATE_PAGE_LINK, REVOKE_PAGE_LINKS } from '../../src/facade/routes/page-link.ts';
import { CREATE_SIGN_IN_LINK } from '../../src/facade/routes/sign-in-link.ts';
import { COMPARE_RUNS, DIFF_RUNS } from '../../src/facade/routes/diff.ts';
import { GET_DEBUG_BUNDLE } from '../../src/facade/routes/debug-bundle.ts';
import { FORK_RUN } from '../../src/facade/routes/fork.ts';
import { PAUSE_RUN, RESUME_RUN } from '../../src/facade/routes/pause.ts';
import { GET_RUN_BUNDLE } from '../../src/facade/routes/run-bundle.ts';
import { GET_RETENTION, HOLD_RUN, RELEASE_RUN } from '../../src/facade/routes/retention.ts';
import { SKIP_TIME } from '../../src/facade/routes/skip.ts';
import { GET_RUN_AT } from '../../src/facade/routes/run-at.ts';
import { CREATE_RUN, GET_RUN, LIST_RUNS } from '../../src/facade/routes/runs.ts';
import { components } from '../../src/facade/shapes.ts';
import { createStreamRegistry } from '../../src/facade/stream-registry.ts';
import { createLog } from '../../src/log/log.ts';
import type { CatalogAgent } from '../../src/ports/catalog.ts';
import type { RunRow } from '../../src/ports/runs.ts';
import { addFormats } from '../../src/wire/formats.ts';
import { agentInstance, agentTool } from '../contract/agent-registry.ts';
import { openAnyStores, registerRun, ScriptedHistory, silentLogger } from '../support/log-parts.ts';
import {
  catalogOf,
  DEFINITIONS,
  faultParts,
  KEY,
  waitingHistory,
  type FaultParts,
} from './fault-host.ts';
import { BUILD_LEAVES } from './build-leaves.ts';
import { COHORT_LEAVES, givenCohort } from './cohort-leaves.ts';
import { breakable, leaf, type Case, type Leaf, type Missing } from './leaf.ts';
import { subjectLeaves } from './subject-leaves.ts';
import { runRef } from '../support/run-ref.ts';

const AGENT_ID = 'local.tests.judge';
const AGENT = {
  manifest: { agentId: AGENT_ID, persona: 'Judge', modelClass: 'chat' },
  ...{ packName: 'tests', packVersion: '1.0.0', degraded: [] },
  pinned: { agentId: AGENT_ID, toolAllowlist: [] },
} as unknown as CatalogAgent;
const PROCESS = 'example.echo';
const LEASE_MS = 600_000;

const text: unknown = expect.any(String);
const like = (pattern: RegExp): unknown => expect.stringMatching(pattern);
const waiting = (): { run: RunRow } => ({ run: row });
const at = (sequence: string) => ({ ...waiting(), path: { runId: 'run-waits', sequence } });
const held = (runId = 'run-waits') => ({
  run: { ...row, ...runRef(runId) },
  body: { reason: 'Case 1' },
});
const asked = { idempotencyKey: undefined };
const named = { path: { runId: 'run-waits' }, run: undefined, parameters: asked };
const databaseAway = { without: 'database', told: 'service_unavailable' } as const;
const nobody = { path: { agentId: 'nobody' } };
const noAgent = { given: () => nobody, told: 'agent_not_found' } as const;
const none = { status: undefined, workflowId: undefined, cursor: undefined };
const list = { ...none, cohortId: undefined, limit: 1 };

const LEAVES: readonly Leaf[] = [
  leaf(GET_OPENAPI, { told: { body: { openapi: '3.1.0' } } }, 'never'),
  leaf(
    GET_CAPABILITIES,
    {
      given: () => ({ parameters: { known: undefined } }),
      told: { headers: { ETag: text }, body: { protocolVersion: '1.0' } },
    },
    'never',
  ),
  leaf(HEALTH, { told: { body: { status: 'ok' } } }, 'never'),
  leaf(
    READINESS,
    { without: 'temporal', told: { status: 503, body: { status: 'not-ready' } } },
    'never',
  ),
  leaf(
    CREATE_RUN,
    {
      given: () => ({ parameters: asked, body: { workflowId: 'noop' } }),
      told: {
        status: 201,
        runId: text,
        body: { eventsUrl: like(/^http:\/\/h:1\//) },
      },
    },
    {
      given: () => ({ parameters: asked, body: { workflowId: 'nothing' } }),
      told: 'workflow_not_found',
    },
  ),
  leaf(
    LIST_RUNS,
    {
      given: () => ({ parameters: { ...list, workflowId: 'w\0' } }),
      told: { body: { runs: [{ workflowId: 'w', statusUrl: text }] } },
    },
    {
      given: () => ({ parameters: { ...list, cursor: 'nobody-gave-it' } }),
      told: 'validation_error',
    },
  ),
  leaf(
    RUN_OVERVIEW,
    {
      given: () => ({ parameters: { ...list, waiting: 'true', workflowId: 'w\0' } }),
      told: {
        body: {
          runs: [
            {
              ...{ workflowId: 'w', workflowName: 'W' },
              waiting: [{ nodeId: 'gate', kind: 'approval', forPerson: true }],
            },
          ],
        },
      },
    },
    { given: () => ({ parameters: { ...list, waiting: undefined } }), ...databaseAway },
  ),
  leaf(
    GET_RUN,
    {
      given: waiting,
      without: 'temporal',
      told: { headers: { 'openwop-log-stale': 'true' }, body: { status: 'waiting-approval' } },
    },
    { given: waiting, ...databaseAway },
  ),
  leaf(
    CANCEL_RUN,
    {
      given: () => ({ ...waiting(), parameters: { idempotencyKey: 'c1' }, body: { reason: 'x' } }),
      told: { status: 200, headers: { 'openwop-Idempotent-Replay': 'false' } },
    },
    {
      given: () => ({ ...waiting(), parameters: { idempotencyKey: 'c1' }, body: {} }),
      told: 'idempotency_key_mismatch',
    },
  ),
  leaf(
    FORK_RUN,
    {
      given: () => ({ ...named, body: { mode: 'replay' as const } }),
      told: { status: 201, body: { sourceRunId: 'run-waits', fromSeq: 0, mode: 'replay' } },
    },
    {
      given: () => ({ ...named, body: { mode: 'branch' as const } }),
      told: 'validation_error',
    },
  ),
  leaf(
    DIFF_RUNS,
    {
      given: () => ({ ...waiting(), parameters: { against: 'run-waits' } }),
      without: 'temporal',
      told: {
        headers: { 'openwop-log-stale': 'true' },
        body: { a: 'run-waits', b: 'run-waits', divergedAtSeq: null, eventDiffs: [] },
      },
    },
    {
      given: () => ({ ...waiting(), parameters: { against: 'run-of-nobody' } }),
      told: 'run_not_found',
    },
  ),
  leaf(
    COMPARE_RUNS,
    {
      given: () => ({ ...waiting(), parameters: { against: 'run-waits' } }),
      told: { body: { same: false, divergence: null, end: [], truncated: true } },
    },
    {
      given: () => ({ ...waiting(), parameters: { against: 'run-waits' } }),
      ...databaseAway,
    },
  ),
  leaf(
    GET_DEBUG_BUNDLE,
    {
      given: () => ({ ...waiting(), parameters: { maxEvents: 1 } }),
      told: {
        headers: { 'Cache-Control': 'no-store' },
        body: { run: { runId: 'run-waits' }, metrics: { eventCount: 1 }, truncated: true },
      },
    },
    { given: () => ({ ...waiting(), parameters: { maxEvents: undefined } }), ...databaseAway },
  ),
  leaf(
    GET_RUN_BUNDLE,
    {
      given: waiting,
      told: { headers: { 'Cache-Control': 'no-store' }, text: like(/^\{"checksum":"sha256:/) },
    },
    { given: waiting, without: 'temporal', told: 'service_unavailable' },
  ),
  leaf(
    GET_RUN_AT,
    { given: () => at('0'), told: { body: { sequence: 0, status: 'running', nodeStates: {} } } },
    { given: () => at('1000'), told: 'not_found' },
  ),
  leaf(
    PAUSE_RUN,
    {
      given: () => ({ ...waiting(), parameters: { idempotencyKey: 'p1' }, body: { reason: 'x' } }),
      told: { status: 202, headers: { 'openwop-Idempotent-Replay': 'false' } },
    },
    {
      given: () => ({ ...waiting(), parameters: { idempotencyKey: 'p1' }, body: {} }),
      told: 'idempotency_key_mismatch',
    },
  ),
  leaf(
    RESUME_RUN,
    {
      given: () => ({ ...waiting(), parameters: { idempotencyKey: 'r1' }, body: {} }),
      told: { status: 202, body: { runId: 'run-waits', status: 'running' } },
    },
    {
      given: () => ({ ...waiting(), parameters: { idempotencyKey: 'r1' }, body: { reason: 'x' } }),
      told: 'idempotency_key_mismatch',
    },
  ),
  leaf(
    RESOLVE_INTERRUPT,
    {
      given: () => ({
        ...{ ...waiting(), path: { runId: row.runId, nodeId: 'gate' }, parameters: asked },
        body: { resumeValue: { action: 'accept' } },
      }),
      told: { status: 200, body: { runId: 'run-waits', nodeId: 'gate', status: 'resolved' } },
    },
    {
      given: () => ({
        ...{ ...waiting(), path: { runId: row.runId, nodeId: 'other' }, parameters: asked },
        body: { resumeValue: {} },
      }),
      told: 'interrupt_not_found',
    },
  ),
  leaf(
    GET_WORKFLOW,
    { given: () => ({ path: { workflowId: 'noop' } }), told: { body: { id: 'noop' } } },
    { given: () => ({ path: { workflowId: 'nothing' } }), told: 'workflow_not_found' },
  ),
  leaf(
    LIST_WORKFLOWS,
    {
      told: {
        body: {
          workflows: expect.arrayContaining([
            { workflowId: 'noop', name: 'noop', version: '1.0', inputs: [] },
          ]) as unknown,
        },
      },
    },
    'never',
  ),
  leaf(
    GET_ANCESTRY,
    { given: waiting, without: 'temporal', told: { body: { runId: text, parent: null } } },
    'never',
  ),
  ...[GET_CAUSES, GET_EFFECTS].map((declared) =>
    leaf(declared, 'never', {
      given: () => ({ ...waiting(), path: { runId: row.runId, eventId: 'evt-of-nothing' } }),
      told: 'not_found',
    }),
  ),
  leaf(
    LIST_SESSIONS,
    {
      given: () => ({ parameters: { cursor: undefined, limit: 1 } }),
      told: { body: { sessions: [{ sessionId: text }] } },
    },
    {
      given: () => ({ parameters: { cursor: 'nobody-gave-it', limit: 1 } }),
      told: 'validation_error',
    },
  ),
  leaf(
    GET_SESSION,
    {
      given: () => ({
        path: { sessionId: row.input.header.sessionId },
        parameters: { cursor: undefined, limit: 1 },
      }),
      told: { body: { sessionId: text, runs: [{ runId: text }] } },
    },
    {
      given: () => ({
        path: { sessionId: 'session-of-nobody' },
        parameters: { cursor: undefined, limit: 1 },
      }),
      told: 'not_found',
    },
  ),
  leaf(
    GET_CONVERSATION,
    {
      given: () => ({
        path: { sessionId: row.input.header.sessionId },
        parameters: { cursor: undefined, limit: 1 },
      }),
      told: { body: { messages: [] } },
    },
    {
      given: () => ({
        path: { sessionId: row.input.header.sessionId },
        parameters: { cursor: 'nobody-gave-it', limit: 1 },
      }),
      told: 'validation_error',
    },
  ),
  leaf(SAY_IN_SESSION, 'never', {
    given: () => ({
      path: { sessionId: row.input.header.sessionId },
      parameters: { idempotencyKey: undefined },
      body: { content: '@local.nobody hello' },
    }),
    told: 'agent_not_found',
  }),
  leaf(
    LIST_CHILDREN,
    { given: waiting, told: { body: { runs: [], more: false } } },
    { given: waiting, ...databaseAway },
  ),
  leaf(
    GET_RETENTION,
    { told: { body: { held: 0, expiredRuns: 0, next: [], expired: [] } } },
    databaseAway,
  ),
  leaf(
    HOLD_RUN,
    { given: held, told: { body: { runId: 'run-waits', held: true, heldAt: text } } },
    { given: () => held('run-gone'), told: 'run_not_found' },
  ),
  leaf(
    RELEASE_RUN,
    { given: waiting, told: { body: { runId: 'run-waits', held: false } } },
    { given: waiting, ...databaseAway },
  ),
  ...COHORT_LEAVES,
  leaf(
    LIST_QUESTIONS,
    {
      given: waiting,
      without: 'temporal',
      told: {
        headers: { 'openwop-log-stale': 'true' },
        body: { questions: [{ nodeId: 'gate', kind: 'approval', interruptId: text }] },
      },
    },
    { given: waiting, ...databaseAway },
  ),
  leaf(LIST_AGENTS, { told: { body: { total: 1, agents: [{ agentId: AGENT_ID }] } } }, 'never'),
  leaf(
    GET_AGENT,
    { given: () => ({ path: { agentId: AGENT_ID } }), told: { body: { label: 'Judge' } } },
    noAgent,
  ),
  leaf(GET_ARTIFACT, 'never', { told: 'artifact_not_found' }),
  leaf(
    CREATE_PAGE_LINK,
    {
      given: waiting,
      told: {
        body: { url: like(/^http:\/\/h:1\/pages\/runs\/run-waits\?link=/) },
      },
    },
    { given: waiting, ...databaseAway },
  ),
  leaf(
    REVOKE_PAGE_LINKS,
    {
      given: () => ({ path: { runId: 'run-waits' } }),
      told: { body: { runId: 'run-waits', sessions: 0 } },
    },
    { given: () => ({ path: { runId: 'run-of-nobody' } }), told: 'run_not_found' },
  ),
  leaf(
    CREATE_SIGN_IN_LINK,
    { told: { body: { url: like(/^http:\/\/h:1\/pages\/sign-in\?link=/) } } },
    databaseAway,
  ),
  ...BUILD_LEAVES,
  ...subjectLeaves(() => at('0')),
  // Moved clocks: acceptance/rehearsals. This host offers none.
  leaf(SKIP_TIME, 'never', {
    given: () => ({ ...waiting(), parameters: asked, body: { forMs: 1 } }),
    told: 'capability_not_provided',
  }),
  leaf(
    OPENSENTIENCE.listAgents,
    { told: { body: { agents: [{ agentId: PROCESS }] } } },
    databaseAway,
  ),
  leaf(
    OPENSENTIENCE.getAgent,
    { given: () => ({ path: { agentId: PROCESS } }), told: { body: { tools: [{ name: 'say' }] } } },
    noAgent,
  ),
  leaf(
    OPENSENTIENCE.attachAgent,
    { given: () => ({ path: { agentId: PROCESS } }), told: { body: { token: text } } },
    noAgent,
  ),
  leaf(
    OPENSENTIENCE.audit,
    {
      given: () => ({ parameters: { agentId: undefined, before: undefined, limit: 1 } }),
      told: { body: { entries: [{ kind: 'token.minted' }] } },
    },
    {
      given: () => ({ parameters: { agentId: undefined, before: undefined, limit: 1 } }),
      ...databaseAway,
    },
  ),
  leaf(
    OPENSENTIENCE.metrics,
    { told: { headers: { 'Content-Type': text }, text: like(new RegExp(PROCESS)) } },
    databaseAway,
  ),
];

const away: Record<Missing, boolean> = { temporal: false, database: false };
let parts: FaultParts;
let row: RunRow;
let routes: ReadonlyMap<string, Route>;

beforeAll(async () => {
  const stores = breakable(await openAnyStores(), () => away.database);
  const history = new ScriptedHistory();
  const log = createLog({ stores, history, logger: silentLogger, processId: 'leaves' });
  const given = { log, catalog: catalogOf(DEFINITIONS, [AGENT]) };
  parts = await faultParts({ opensentience: true }, () => given, stores);
  await registerRun(stores, 'run-waits');
  history.add('run-waits-t1', waitingHistory());
  await log.catchUp(runRef('run-waits'));
  row = (await stores.runs.find('default', 'run-waits')) as RunRow;
  await givenCohort(stores);
  await stores.agents.saveInstance(agentInstance({ agentId: PROCESS }), LEASE_MS);
  await stores.agents.saveTools('default', PROCESS, [agentTool(PROCESS, 'say')]);
  history.onRead = async () => {
    if (away.temporal) throw new HostError('service_unavailable');
  };
  const table = routesOf(parts.deps, {
    streams: createStreamRegistry({ limits: { perKey: 1 }, logger: silentLogger }),
    sessions: createPageSessions(stores.pageSessions, { apiKey: KEY }),
    majors: MAJORS,
    isDraining: () => false,
  });
  routes = new Map(table.map((route) => [route.operationId, route]));
});

afterAll(() => parts.close());

async function handled(
  { operationId }: Declaration,
  { given, without }: Case<Declaration, unknown>,
): Promise<Answer> {
  const route = routes.get(operationId);
  if (route?.kind !== 'value') throw new Error(`${operationId} gives no value`);
  const nothing = { path: {}, run: undefined, parameters: {}, body: undefined };
  const { temporal } = parts;
  const caller = {
    tenant: 'default',
    subject: subjectOf('api-key', 'default', 'tester'),
    scopes: DEFAULT_CALLER.scopes,
  };
  if (without) away[without] = true;
  temporal.away = away.temporal;
  try {
    return await route.handle({
      caller,
      major: FIRST,
      baseUrl: 'http://h:1',
      ...nothing,
      ...given?.(),
    });
  } finally {
    if (without) away[without] = false;
    temporal.away = false;
  }
}

/** As the document has them. */
function declaredCodes(declared: Declaration): string {
  const { paths } = openApiDocument([...routes.values()], {
    ...{ major: FIRST, version: '0' },
  }) as unknown as {
    paths: Record<string, Record<string, { responses: Record<string, { description: string }> }>>;
  };
  const responses = Object.values(
    paths[pathOf(declared, FIRST)]?.[declared.method]?.responses ?? {},
  );
  return responses.map(({ description }) => description).join();
}

const ajv = new Ajv2020({ strict: false });
addFormats(ajv);

describe.each(LEAVES.map((one) => [one.declared.operationId, one] as const))(
  '%s',
  (_operationId, { declared, answers, refuses }) => {
    if (answers !== 'never')
      it('answers in its declared shape', async () => {
        const answer = await handled(declared, answers);
        expect(answer).toMatchObject(answers.told);
        if (answer.body === undefined) return;
        // As it leaves.
        const body: unknown = JSON.parse(JSON.stringify(answer.body));
        const { schema } = declared.success;
        const check = ajv.compile({ ...schema, components: { schemas: components() } });
        expect([check(body), check.errors]).toEqual([true, null]);
      });
    if (refuses === 'never')
      it('declares no refusal of its own: there is none', () => {
        expect(declared.errors ?? []).toEqual([]);
      });
    else
      it('refuses by what it declares', async () => {
        await expect(handled(declared, refuses)).rejects.toMatchObject({ code: refuses.told });
        expect(declaredCodes(declared)).toContain(refuses.told);
      });
  },
);

it('every route that gives a value has its row', () => {
  const values = [...routes.values()].filter(({ kind }) => kind === 'value');
  const rows = LEAVES.map(({ declared }) => declared.operationId);
  expect(rows.sort()).toEqual(values.map(({ operationId }) => operationId).sort());
});

it('capabilities.md: a client that has the discovery document is told so', async () => {
  const { headers } = await handled(GET_CAPABILITIES, { told: undefined });
  const parameters = { known: `"another", W/${headers?.ETag}` };
  const given = () => ({ parameters });
  const again = await handled(GET_CAPABILITIES, { given, told: undefined });
  expect(again).toEqual({ status: 304, headers });
});

describe('the response is out of reach of who gives a value', () => {
  it('by type, as is what the route has not declared', () => {
    // @ts-expect-error there is no response
    answered(HEALTH, ({ response }) => ({ body: response }));
    // @ts-expect-error nor a request
    answered(HEALTH, ({ request }) => ({ body: request }));
    // @ts-expect-error the address has no node
    answered(GET_RUN, ({ path }) => ({ body: path.nodeId }));
    // @ts-expect-error the route is not about a run
    answered(GET_WORKFLOW, ({ run }) => ({ body: run.runId }));
    // @ts-expect-error it is a number
    answered(LIST_RUNS, ({ parameters }) => ({ text: parameters.limit }));
    // @ts-expect-error there may be none
    answered(CANCEL_RUN, ({ parameters }) => ({ text: parameters.idempotencyKey.trim() }));
  });

  it('streams alone know Express', () => {
    const folder = new URL('../../src/facade/routes/', import.meta.url);
    const known = readdirSync(folder).filter((name) =>
      /\bExchange\b|'express'/.test(readFileSync(new URL(name, folder), 'utf8')),
    );
    expect(known.sort()).toEqual(['events.ts', 'poll.ts', 'session-events.ts']);
  });
});
