// GET /.well-known/openwop (spec/01 §10): computed from what is registered; nothing is advertised that this process does
// not do. Families stand at the root and once more under `capabilities` (design §9).
import { createHash } from 'node:crypto';
import { ENVELOPES, familiesOf, roundsOf } from '../../rules/capabilities.ts';
import type { JsonObject } from '../../rules/json.ts';
import {
  MAX_NODE_EXECUTIONS,
  MAX_RUN_DURATION_MS,
  REQUEST_BODY_BYTES,
} from '../../rules/limits.ts';
import { CONFIGURABLE } from '../../runs/configurable.ts';
import type { FacadeDeps } from '../deps.ts';
import { hostFacts } from '../host-facts.ts';
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
  const facts = hostFacts(deps);
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
    supportedEnvelopes: Object.keys(ENVELOPES),
    schemaVersions: { ...ENVELOPES },
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
