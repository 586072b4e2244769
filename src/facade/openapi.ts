// The OpenAPI 3.1 document (openapi.yaml), made from the declarations that make the routes: what is not served is not
// in it, and what is parsed is.
import { ERRORS, type ErrorCode } from '../rules/errors.ts';
import type { JsonObject } from '../rules/json.ts';
import type { Parameter } from './parameters.ts';
import {
  answered,
  PATH_PARAMETERS,
  scopeOf,
  type AnswerDoc,
  type Declaration,
  type Route,
} from './route.ts';
import { components } from './shapes.ts';

function parametersOf(name: string, parameter: Parameter<unknown>): JsonObject[] {
  const { in: place, description, schema, example, deprecated, otherwise } = parameter;
  return [
    {
      ...{ name: parameter.name ?? name, in: place, description, schema, example },
      ...{ required: false, ...(deprecated && { deprecated }) },
    },
    ...(otherwise ? parametersOf(otherwise.name, otherwise) : []),
  ];
}

function pathParameters(path: string): JsonObject[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => ({
    ...{ name, in: 'path', required: true },
    ...PATH_PARAMETERS[name as keyof typeof PATH_PARAMETERS],
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
const OF_SCOPE: readonly ErrorCode[] = ['unauthenticated', 'forbidden'];
const OF_RUN: readonly ErrorCode[] = ['run_not_found', 'service_unavailable'];
/** What a body may get, wanted or not. */
const OF_BODIES: readonly ErrorCode[] = ['payload_too_large', 'unsupported_media_type'];
/** Places of a key are counted. */
const OF_STREAMS: readonly ErrorCode[] = ['rate_limited'];

/** What the route declares, and what follows from its access, run, parameters, method and kind. */
function errorsOf(route: Route): readonly ErrorCode[] {
  return [
    ...new Set([
      ...(scopeOf(route.access) ? OF_SCOPE : []),
      ...(route.about === 'run' ? OF_RUN : []),
      ...Object.values(route.parameters ?? {}).flatMap(({ errors = [] }) => errors),
      ...(route.errors ?? []),
      ...(route.kind === 'stream' ? OF_STREAMS : []),
      ...OF_ALL,
      ...(route.method === 'post' ? OF_BODIES : []),
    ]),
  ];
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
    { schema: type === 'application/json' ? schema : { type: 'string' } },
  ]);
  return { content: Object.fromEntries(described) as JsonObject };
}

function bodyOf({ body }: Declaration): JsonObject {
  if (body === undefined) return {};
  const { required, schema, example } = body;
  return { requestBody: { required, content: { 'application/json': { schema, example } } } };
}

function operationOf(route: Route): JsonObject {
  const { success, parameters = {} } = route;
  const scope = scopeOf(route.access);
  return {
    operationId: route.operationId,
    summary: route.summary,
    security: scope ? [{ bearer: [scope] }] : [],
    parameters: [
      ...pathParameters(route.path),
      ...Object.entries(parameters).flatMap(([name, parameter]) => parametersOf(name, parameter)),
    ],
    ...bodyOf(route),
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

export const GET_OPENAPI = {
  method: 'get',
  path: '/v1/openapi.json',
  operationId: 'getOpenApi',
  summary: 'This document.',
  access: 'public',
  success: { status: 200, description: 'OpenAPI 3.1.', schema: { type: 'object' } },
} as const satisfies Declaration;

/** `document` is asked for once. */
export function openApiRoute(document: () => JsonObject): Route {
  let body: JsonObject | undefined;
  return answered(GET_OPENAPI, () => ({ body: (body ??= document()) }));
}
