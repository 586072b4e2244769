// The OpenAPI 3.1 document (spec/01 §2.2), made from the table that makes the routes: what is not served is not in it.
import { ERRORS, type ErrorCode } from '../rules/errors.ts';
import type { JsonObject } from '../rules/json.ts';
import { RUN_STATUSES } from '../rules/status.ts';
import { schemaDocument } from '../wire/validators.ts';
import type { AnswerDoc, ParameterDoc, Route } from './route.ts';

/** Published shapes by the name of their file. */
const SCHEMAS: Readonly<Record<string, string>> = {
  ErrorEnvelope: 'error-envelope',
  RunCreateRequest: 'run-create-request',
  RunCreateResponse: 'run-create-response',
  RunCancelRequest: 'run-cancel-request',
  RunSnapshot: 'run-snapshot',
  RunEventDoc: 'run-event',
  EventPollResponse: 'events-poll-response',
  InterruptResolveRequest: 'interrupt-resolve-request',
  WorkflowDefinition: 'workflow-definition',
  AgentInventoryResponse: 'agent-inventory',
  Capabilities: 'capabilities',
};

/** An index of answers: each of its `$defs` is a component by its own name. */
const INDEX_SCHEMA = 'opensentience-operations';

const text: JsonObject = { type: 'string' };

/** Shapes of answers that no schema file describes: small, and read by nobody but clients. */
const INLINE: JsonObject = {
  RunEventList: {
    type: 'object',
    properties: {
      events: { type: 'array', items: { $ref: '#/components/schemas/RunEventDoc' } },
      isComplete: { type: 'boolean' },
    },
    required: ['events', 'isComplete'],
  },
  RunStatusAnswer: {
    type: 'object',
    properties: { runId: text, status: { enum: [...RUN_STATUSES] } },
    required: ['runId', 'status'],
  },
  InterruptAnswer: {
    type: 'object',
    properties: { runId: text, nodeId: text, status: { enum: ['resolved', 'open'] } },
    required: ['runId', 'nodeId', 'status'],
  },
  RunList: {
    type: 'object',
    properties: {
      runs: {
        type: 'array',
        items: {
          type: 'object',
          properties: {
            runId: text,
            workflowId: text,
            status: { enum: [...RUN_STATUSES] },
            createdAt: { type: 'string', format: 'date-time' },
            tags: { type: 'array', items: text },
            statusUrl: text,
            eventsUrl: text,
          },
          required: ['runId', 'workflowId', 'status', 'createdAt', 'tags'],
        },
      },
      nextCursor: text,
    },
    required: ['runs'],
  },
  Health: {
    type: 'object',
    properties: { status: { const: 'ok' } },
    required: ['status'],
  },
  Readiness: {
    type: 'object',
    properties: {
      status: { enum: ['ready', 'not-ready'] },
      temporal: text,
      engine: text,
      database: text,
      projection: {
        oneOf: [{ const: 'ok' }, { type: 'object', additionalProperties: { type: 'integer' } }],
      },
      draining: { const: true },
    },
    required: ['status', 'temporal', 'engine', 'database', 'projection'],
  },
  PageLink: {
    type: 'object',
    properties: { url: text, expiresAt: { type: 'string', format: 'date-time' } },
    required: ['url', 'expiresAt'],
  },
};

/** References inside a schema file point into that file; here they must point below its place in the document. */
function rebased(value: unknown, prefix: string): unknown {
  if (Array.isArray(value)) return value.map((item) => rebased(item, prefix));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => key !== '$id' && key !== '$schema')
      .map(([key, inner]) => [
        key,
        key === '$ref' && typeof inner === 'string' && inner.startsWith('#')
          ? prefix + inner.slice(1)
          : rebased(inner, prefix),
      ]),
  );
}

function components(): JsonObject {
  const files = Object.entries(SCHEMAS).map(([name, file]) => [
    name,
    rebased(schemaDocument(file), `#/components/schemas/${name}`),
  ]);
  return { ...(Object.fromEntries(files) as JsonObject), ...indexed(INDEX_SCHEMA), ...INLINE };
}

function indexed(file: string): JsonObject {
  const { $defs } = schemaDocument(file) as { $defs: JsonObject };
  const lifted = JSON.stringify($defs).replaceAll('"#/$defs/', '"#/components/schemas/');
  return JSON.parse(lifted) as JsonObject;
}

function parameterOf({ name, in: place, description, schema }: ParameterDoc): JsonObject {
  return { name, in: place, description, schema, required: false };
}

function pathParameters(path: string): JsonObject[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string', minLength: 1, maxLength: 128 },
  }));
}

/** What any request may get before a route is asked, or when something is broken: bad bytes, Host, slowness, faults. */
const OF_ALL: readonly ErrorCode[] = [
  'validation_error',
  'forbidden',
  'request_timeout',
  'headers_too_large',
  'internal_error',
];
/** And what a body may get, wanted or not. */
const OF_BODIES: readonly ErrorCode[] = ['payload_too_large', 'unsupported_media_type'];

function errorsOf({ method, errors }: Route): readonly ErrorCode[] {
  return [...new Set([...errors, ...OF_ALL, ...(method === 'post' ? OF_BODIES : [])])];
}

/** One response per status, naming its codes. */
function errorResponses(codes: readonly ErrorCode[]): JsonObject {
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of codes)
    byStatus.set(ERRORS[code].status, [...(byStatus.get(ERRORS[code].status) ?? []), code]);
  return Object.fromEntries(
    [...byStatus].map(([status, names]) => [
      String(status),
      {
        description: names.join(', '),
        content: { 'application/json': { schema: { $ref: '#/components/schemas/ErrorEnvelope' } } },
      },
    ]),
  );
}

function contentOf(
  { schema }: AnswerDoc,
  mediaTypes: readonly string[] = ['application/json'],
): JsonObject {
  if (schema === undefined) return {};
  const described = mediaTypes.map((type) => [
    type,
    { schema: type === 'application/json' ? schema : text },
  ]);
  return { content: Object.fromEntries(described) as JsonObject };
}

function operationOf(route: Route): JsonObject {
  const { success, requestBody } = route;
  return {
    operationId: route.operationId,
    summary: route.summary,
    security: route.access === 'public' ? [] : [{ bearer: [] }],
    parameters: [...pathParameters(route.path), ...(route.parameters ?? []).map(parameterOf)],
    ...(requestBody === undefined
      ? {}
      : {
          requestBody: {
            required: requestBody.required,
            content: { 'application/json': { schema: requestBody.schema } },
          },
        }),
    responses: {
      ...errorResponses(errorsOf(route)),
      ...Object.fromEntries(
        [success, ...(route.others ?? [])].map((answer) => [
          String(answer.status),
          { description: answer.description, ...contentOf(answer, success.mediaTypes) },
        ]),
      ),
    },
  };
}

export function openApiDocument(routes: readonly Route[], version: string): JsonObject {
  const paths: Record<string, JsonObject> = {};
  for (const route of routes)
    paths[route.path] = { ...paths[route.path], [route.method]: operationOf(route) };
  return {
    openapi: '3.1.0',
    info: { title: 'openwop-temporal', version, description: 'An OpenWOP v1 host on Temporal.' },
    servers: [{ url: '/' }],
    paths,
    components: {
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } },
      schemas: components(),
    },
  };
}

export function openApiRoute(document: () => JsonObject): Route {
  return {
    method: 'get',
    path: '/v1/openapi.json',
    operationId: 'getOpenApi',
    summary: 'This document.',
    access: 'public',
    success: { status: 200, description: 'OpenAPI 3.1.', schema: { type: 'object' } },
    errors: [],
    handle({ response }) {
      response.status(200).json(document());
    },
  };
}
