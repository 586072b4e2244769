// GET /.well-known/openwop (spec/01 §10): computed from what is registered; nothing is advertised that this process does
// not do. Families stand at the root and once more under `capabilities` (design §9).
import { createHash } from 'node:crypto';
import type { JsonObject } from '../../rules/json.ts';
import {
  MAX_NODE_EXECUTIONS,
  MAX_RUN_DURATION_MS,
  REQUEST_BODY_BYTES,
} from '../../rules/limits.ts';
import { familiesOf, roundsOf, type HostFacts } from '../capabilities.ts';
import { CONFIGURABLE } from '../../runs/configurable.ts';
import { DEFAULT_CALLER, type FacadeDeps } from '../deps.ts';
import type { Route } from '../route.ts';
import { OPENSENTIENCE_ADDRESSES } from './opensentience.ts';

const MAX_AGE_SECONDS = 300;

export type DiscoveryDeps = Pick<FacadeDeps, 'catalog' | 'models' | 'tools' | 'config'>;

export function discoveryRoute(deps: FacadeDeps): Route {
  return {
    method: 'get',
    path: '/.well-known/openwop',
    operationId: 'getCapabilities',
    summary: 'What this host can do.',
    access: 'public',
    success: {
      status: 200,
      description: 'The discovery document.',
      schema: { $ref: '#/components/schemas/Capabilities' },
    },
    others: [{ status: 304, description: 'The client has this document already.' }],
    errors: ['service_unavailable'],
    handle({ request, response }) {
      const text = JSON.stringify(discoveryDocument(deps));
      const etag = `"${createHash('sha256').update(text).digest('hex').slice(0, 32)}"`;
      response.set({ ETag: etag, 'Cache-Control': `public, max-age=${MAX_AGE_SECONDS}` });
      const known = (request.headers['if-none-match'] ?? '')
        .split(',')
        .map((tag) => tag.trim().replace(/^W\//, ''));
      if (known.includes(etag)) response.status(304).end();
      else response.status(200).type('application/json').send(text);
    },
  };
}

/** No clock, no randomness: the same deployment gives the same document. */
export function discoveryDocument(deps: DiscoveryDeps): JsonObject {
  const { config, catalog } = deps;
  const facts = factsOf(deps);
  const families = familiesOf(facts);
  return {
    protocolVersion: '1.0',
    protocolVersions: ['1.0'],
    implementation: {
      name: 'openwop-temporal',
      // A closed object: what is special about this one is build metadata of its version.
      version: config.inMemory ? `${config.version}+in-memory-temporal` : config.version,
      vendor: 'openwop-temporal',
    },
    engineVersion: 1,
    eventLogSchemaVersion: 2,
    supportedTransports: ['rest'],
    // Gates ask a human in this form, and agents in the place of a decision: with or without agents, the profile
    // openwop-interrupts is derived from it (spec/01 §11.1).
    supportedEnvelopes: ['clarification.request'],
    schemaVersions: { 'clarification.request': 1 },
    limits: {
      ...roundsOf(facts),
      maxNodeExecutions: MAX_NODE_EXECUTIONS,
      maxRunDurationMs: MAX_RUN_DURATION_MS,
      maxRequestBodyBytes: REQUEST_BODY_BYTES,
    },
    configurable: configurableKeys(),
    runtimeCapabilities: [],
    ...families,
    capabilities: families,
    ...(config.testMode ? { fixtures: [...catalog.fixtures()] } : {}),
    extensions: {
      'openwop-temporal': {
        listRuns: 'GET /v1/runs',
        pageLink: 'POST /v1/host/openwop-temporal/runs/{runId}/page-link',
        staleReadHeader: 'openwop-log-stale',
        ...(config.opensentience === true ? { opensentience: opensentienceAddresses() } : {}),
      },
    },
  };
}

function opensentienceAddresses(): JsonObject {
  return Object.fromEntries(
    Object.entries(OPENSENTIENCE_ADDRESSES).map(([name, { method, path }]) => [
      name,
      `${method.toUpperCase()} ${path}`,
    ]),
  );
}

function configurableKeys(): JsonObject {
  return Object.fromEntries(
    Object.entries(CONFIGURABLE).map(([key, { type, min, max, values, description }]) => [
      key,
      {
        type: type === 'integer' ? 'number' : type,
        ...(type === 'string' || min === undefined ? {} : { min }),
        ...(type === 'string' || max === undefined ? {} : { max }),
        ...(values ? { values: [...values] } : {}),
        description,
      },
    ]),
  );
}

/** Agents run here only when there is one; else their addresses are 404 as well. */
export function offersAgents({ catalog }: Pick<FacadeDeps, 'catalog'>): boolean {
  return catalog.agents(DEFAULT_CALLER.tenant).length > 0;
}

function factsOf({ catalog, models, tools, config }: DiscoveryDeps): HostFacts {
  return {
    agents: offersAgents({ catalog }),
    // Agents' tools come and go with their processes: that there may be some is what stays.
    tools: tools.list(DEFAULT_CALLER.tenant).length > 0 || config.opensentience === true,
    live: models.isLive(),
    providers: models.providers(),
    testMode: config.testMode,
    escalation: config.escalation,
  };
}
