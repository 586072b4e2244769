// The OpenAPI 3.1 document (openapi.yaml), made from the declarations that make the routes: what is not served is not
// in it, and what is parsed is.
import type { ErrorCode } from '../rules/errors.ts';
import type { JsonObject } from '../rules/json.ts';
import type { ServedMajor } from './majors.ts';
import type { Parameter } from './parameters.ts';
import {
  answered,
  PATH_PARAMETERS,
  pathOf,
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
      ...{ required: parameter.required ?? false, ...(deprecated && { deprecated }) },
    },
    ...(otherwise ? parametersOf(otherwise.name, otherwise) : []),
  ];
}

function pathParameters(path: string): JsonObject[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => {
    const { description, example } = PATH_PARAMETERS[name as keyof typeof PATH_PARAMETERS];
    return {
      ...{ name, in: 'path', required: true },
      ...{ description, example },
      schema: { type: 'string', minLength: 1 },
    };
  });
}

/** What any request may get before a route is asked, or when something is broken: bad bytes, Host, slowness, faults. */
const OF_ALL: readonly ErrorCode[] = [
  'validation_error',
  'forbidden',
  'request_timeout',
  'headers_too_large',
  'internal_error',
];
/** Wrong keys are counted, and open streams. */
const OF_SCOPE: readonly ErrorCode[] = ['unauthenticated', 'rate_limited', 'forbidden'];
const OF_RUN: readonly ErrorCode[] = [
  ...(['run_not_found', 'run_expired', 'service_unavailable'] as const),
  ...(['history_undecodable', 'key_unavailable'] as const),
];
/** What a body may get, wanted or not. */
const OF_BODIES: readonly ErrorCode[] = ['payload_too_large', 'unsupported_media_type'];

/** What the route declares, and what follows from its access, run, parameters and method. */
function errorsOf(route: Route): readonly ErrorCode[] {
  return [
    ...new Set([
      ...(scopeOf(route.access) ? OF_SCOPE : []),
      ...(route.about === undefined ? [] : OF_RUN),
      ...Object.values(route.parameters ?? {}).flatMap(({ errors = [] }) => errors),
      ...(route.errors ?? []),
      ...OF_ALL,
      ...(route.method === 'post' ? OF_BODIES : []),
    ]),
  ];
}

/** One response per status, naming its codes. */
function errorResponses(codes: readonly ErrorCode[], { errors }: ServedMajor): JsonObject {
  const byStatus = new Map<number, string[]>();
  for (const code of codes) {
    const { status, error } = errors[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), error]);
  }
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

function operationOf(route: Route, major: ServedMajor): JsonObject {
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
      ...errorResponses(errorsOf(route), major),
      ...Object.fromEntries(
        [success, ...(route.others ?? [])].map((answer) => [
          String(answer.status),
          { description: answer.description, ...contentOf(answer, success.mediaTypes) },
        ]),
      ),
    },
  };
}

/** Of what is served in one major. */
export function openApiDocument(
  routes: readonly Route[],
  { major, version }: { readonly major: ServedMajor; readonly version: string },
): JsonObject {
  const paths: Record<string, JsonObject> = {};
  for (const route of routes) {
    const path = pathOf(route, major);
    paths[path] = { ...paths[path], [route.method]: operationOf(route, major) };
  }
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
  path: '/openapi.json',
  operationId: 'getOpenApi',
  summary: 'This document.',
  access: 'public',
  success: { status: 200, description: 'OpenAPI 3.1.', schema: { type: 'object' } },
} as const satisfies Declaration;

/** `document` is asked for once per major. */
export function openApiRoute(document: (major: ServedMajor) => JsonObject): Route {
  const documents = new Map<ServedMajor, JsonObject>();
  return answered(GET_OPENAPI, ({ major }) => {
    const body = documents.get(major) ?? document(major);
    documents.set(major, body);
    return { body };
  });
}
