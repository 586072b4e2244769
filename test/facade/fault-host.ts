// A facade on a real socket, a real database and the real log, with Temporal played: for what Temporal must do wrong on demand.
import { expect } from 'vitest';
import { validate } from '../../src/wire/validators.ts';
import { HostError } from '../../src/rules/errors.ts';
import type { RunInput } from '../../src/rules/run-input.ts';
import { listen, type Listening } from '../../src/facade/listen.ts';
import type { FacadeConfig, FacadeDeps } from '../../src/facade/deps.ts';
import { createModels } from '../../src/adapters/models/index.ts';
import { createLog } from '../../src/log/log.ts';
import { createRedactor } from '../../src/rules/redaction.ts';
import type { Catalog, CatalogAgent } from '../../src/ports/catalog.ts';
import type { CohortEngine } from '../../src/ports/cohorts.ts';
import type { Deployments } from '../../src/ports/deployments.ts';
import type { RunEngine } from '../../src/ports/engine.ts';
import type { HistoryReader } from '../../src/ports/history.ts';
import type { Logger } from '../../src/ports/logger.ts';
import type { Stores } from '../../src/ports/stores.ts';
import type { WorkflowDefinition } from '../../schemas/types.generated.ts';
import { chain, node } from '../support/definitions.ts';
import { apiClient, type ApiClient } from '../support/host.ts';
import { emitted, HistoryBuilder, memo } from '../support/histories.ts';
import { openAnyStores } from '../support/log-parts.ts';

export const KEY = 'owop_key_of_the_fault_tests';
export const KNOWN_SECRET = 'correct-horse-battery-staple';

/** What the played Temporal does; a test changes it as it likes. */
export interface PlayedTemporal {
  away: boolean;
  /** Thrown by start while Temporal is there. */
  startError?: HostError;
  readonly started: RunInput[];
  readonly calls: string[];
}

/** What a facade is made of, without a socket. */
export interface FaultParts {
  readonly temporal: PlayedTemporal;
  readonly stores: Stores;
  readonly deps: FacadeDeps;
  readonly lines: { message: string; fields: Record<string, unknown> }[];
  readonly close: () => Promise<void>;
}

export interface FaultHost extends ApiClient, Omit<FaultParts, 'close'> {
  readonly url: string;
  readonly server: Listening;
  stop(): Promise<void>;
}

const away = (): HostError => new HostError('service_unavailable');

function playedEngine(temporal: PlayedTemporal): RunEngine {
  const call = (name: string): void => {
    temporal.calls.push(name);
    if (temporal.away) throw away();
  };
  return {
    async start(input) {
      call('start');
      if (temporal.startError) throw temporal.startError;
      temporal.started.push(input);
      return { temporalRunId: `t-${input.runId}` };
    },
    async send(_runId, _updateId, { kind, bodyDigest }) {
      call(kind);
      return { bodyDigest, status: kind === 'cancel' ? 'cancelling' : 'resolved' };
    },
    async childEnded() {
      call('childEnded');
    },
    async terminate() {
      call('terminate');
    },
    async ping() {
      if (temporal.away) throw away();
    },
  };
}

function playedCohortEngine(temporal: PlayedTemporal): CohortEngine {
  const call = (name: string): void => {
    temporal.calls.push(name);
    if (temporal.away) throw away();
  };
  return {
    start: async () => call('start cohort'),
    async cancel() {
      call('cancel cohort');
      return true;
    },
  };
}

/** A history in which nothing has happened yet. */
function playedHistory(temporal: PlayedTemporal): HistoryReader {
  return {
    async page(_runId, _temporalRunId, token) {
      if (temporal.away) throw away();
      return { events: [], token: token === '' ? 'tail' : token, atTail: true };
    },
    raw: async () => new Uint8Array(),
    decode: async () => [],
    closedSince: async (sinceMs) => ({ runIds: [], newestMs: sinceMs }),
  };
}

export const DEFINITIONS: readonly WorkflowDefinition[] = [
  chain('noop', [node('only', 'core.noop')]),
  chain('inputs', [node('only', 'core.noop')], {
    variables: [
      { name: 'count', type: 'number', required: true },
      { name: 'label', type: 'string', defaultValue: 'none' },
      { name: 'list', type: 'array' },
    ],
  }),
  chain('strict', [node('only', 'core.noop')], {
    configurableSchema: {
      type: 'object',
      properties: { region: { enum: ['eu'] } },
      required: ['region'],
      additionalProperties: false,
    },
  }),
];

export function catalogOf(
  definitions: readonly WorkflowDefinition[],
  agents: readonly CatalogAgent[] = [],
): Catalog {
  return {
    definition: (_tenant, id) => definitions.find((definition) => definition.id === id),
    definitions: () => definitions,
    agent: (_tenant, id) => agents.find(({ pinned }) => pinned.agentId === id),
    agents: () => agents,
    faults: () => ({ faults: [], more: 0 }),
    fixtures: () => ['noop'],
  };
}

/** A server that knows no builds, or whose workers name none. */
const noBuilds = async (): Promise<never> => {
  throw new HostError('build_conflict', { reason: 'No worker here names a build.' });
};
function noDeployments(temporal: PlayedTemporal): Deployments {
  return {
    async read() {
      if (temporal.away) throw new HostError('service_unavailable');
      return undefined;
    },
    lastBuildOf: async () => undefined,
    ...{ promote: noBuilds, runsOf: noBuilds, moveRuns: noBuilds, moveFrom: noBuilds },
  };
}

/** `changed` replaces parts, so that a test can hold or break them; `given` stores are closed with the others. */
export async function faultParts(
  config: Partial<FacadeConfig> = {},
  changed: (deps: FacadeDeps) => Partial<FacadeDeps> = () => ({}),
  given?: Stores,
): Promise<FaultParts> {
  const stores = given ?? (await openAnyStores());
  const temporal: PlayedTemporal = { away: false, started: [], calls: [] };
  const lines: FaultParts['lines'] = [];
  const line = (message: string, fields: Record<string, unknown> = {}): void =>
    void lines.push({ message, fields });
  const logger: Logger = { debug: () => undefined, info: line, warn: line, error: line };
  const log = createLog({ stores, history: playedHistory(temporal), logger, processId: 'facade' });
  const played: FacadeDeps = {
    stores,
    engine: playedEngine(temporal),
    cohortEngine: playedCohortEngine(temporal),
    deployments: noDeployments(temporal),
    log,
    catalog: catalogOf(DEFINITIONS),
    models: createModels({}),
    tools: { list: () => [] },
    redactor: createRedactor([{ id: 'known', value: KNOWN_SECRET }]),
    config: {
      ...{ host: '127.0.0.1', apiKey: KEY, testMode: false, escalation: true, version: '0.0.0' },
      ...config,
    },
    logger,
  };
  return {
    ...{ temporal, stores, lines },
    deps: { ...played, ...changed(played) },
    close: async () => {
      log.close();
      await stores.close();
    },
  };
}

/** faultParts on a real socket. */
export async function startFaultHost(...given: Parameters<typeof faultParts>): Promise<FaultHost> {
  const { close, ...parts } = await faultParts(...given);
  const server = await listen(parts.deps, { host: '127.0.0.1', port: 0 });
  return {
    ...apiClient(server.url, KEY, { isPatient: false }),
    ...parts,
    url: server.url,
    server,
    async stop() {
      await server.stop();
      await close();
    },
  };
}

/** A run that waits at its node `gate`: everything about it is in its history. */
export function waitingHistory(): HistoryBuilder {
  const built = new HistoryBuilder();
  const question = { nodeId: 'gate', interruptId: 'int-1', key: 'q', kind: 'approval' };
  const entries = [
    emitted('run.started', 'run.started', { workflowId: 'w' }),
    emitted('asked', 'node.suspended', { ...question, reason: 'approval' }, { nodeId: 'gate' }),
    emitted(
      'requested',
      'interrupt.requested',
      { ...question, data: {}, resumeSchema: { type: 'object', required: ['action'] } },
      { nodeId: 'gate' },
    ),
  ];
  return built.task(memo(built.carrier(...entries)));
}

export interface Envelope {
  readonly error: string;
  readonly message: string;
  readonly details?: Record<string, unknown>;
}

/** Asks and holds the answer against the closed error envelope, its status and its code. */
export function refusals(host: () => FaultHost) {
  return async (
    path: string,
    request: Parameters<FaultHost['api']>[1],
    expected: { status: number; code: string },
  ): Promise<{ body: Envelope; headers: Headers; text: string }> => {
    const answer = await host().api<Envelope>(path, request);
    expect(answer.text).not.toBe('');
    expect(validate.errorEnvelope(answer.body)).toMatchObject({ ok: true });
    expect({ status: answer.status, code: answer.body.error }).toEqual(expected);
    return answer;
  };
}
