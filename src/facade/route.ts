// A route is declared once (openapi.yaml): who may ask, its address, parameters, body, answers and errors. Of the one
// declaration come the input's types and its parsing (input.ts), the mounting (mount.ts), the OpenAPI document
// (openapi.ts) and what discovery tells of extensions. A handler gets parsed input and gives an answer as a value; only
// streams are given the response.
import type { Request, Response } from 'express';
import type { ErrorCode } from '../rules/errors.ts';
import type { JsonObject, JsonValue } from '../rules/json.ts';
import type { Caller } from '../ports/caller.ts';
import type { RunRow } from '../ports/runs.ts';
import type { ID_FIELDS } from '../wire/major.ts';
import type { ServedMajor } from './majors.ts';
import type { Parameter } from './parameters.ts';

export type Scope =
  | 'manifest:read'
  | 'runs:create'
  | 'runs:read'
  | 'runs:cancel'
  | 'artifacts:read'
  | 'approvals:respond'
  | 'agents:operate'
  | 'deployments:operate'
  | 'pages:sign-in'
  | 'subjects:erase';

/**
 * `public` asks for no key. `pageSession` names the path parameter of a run: the cookie of that run's page, or of who is
 * signed in, opens this route for GET; a bearer, where sent, decides.
 */
export type Access = 'public' | Scope | { readonly scope: Scope; readonly pageSession: 'runId' };

export interface AnswerDoc {
  readonly status: number;
  readonly description: string;
  /** Of the JSON among the media types; the others are text. */
  readonly schema?: JsonObject;
}

export interface Body<Value> {
  readonly required: boolean;
  readonly schema: JsonObject;
  readonly example: JsonValue;
  /** Of guarded JSON, undefined where there was none. Throws validation_error. */
  parse(body: JsonValue | undefined): Value;
}

export interface Declaration {
  readonly method: 'get' | 'post';
  /** OpenAPI form, behind the prefix of a major: `/runs/{runId}`; each name is one of PATH_PARAMETERS. */
  readonly path: string;
  /** At one address, whatever major is asked for. */
  readonly ofNoMajor?: true;
  readonly operationId: string;
  readonly summary: string;
  readonly access: Access;
  /**
   * `run`: about the run of the path, which is found for its caller before anything else is read. `run-or-repeat`: where it is
   * not, a request with an Idempotency-Key is read all the same, since a repeat is told its first answer.
   */
  readonly about?: 'run' | 'run-or-repeat';
  /** Read in this order: the first that is wrong is told. */
  readonly parameters?: Readonly<Record<string, Parameter<unknown>>>;
  readonly body?: Body<unknown>;
  readonly success: AnswerDoc & { readonly mediaTypes?: readonly string[] };
  /** Answers beside success and the error envelope. */
  readonly others?: readonly AnswerDoc[];
  /** This route's own; those of access, run, parameters, body and kind follow from them. */
  readonly errors?: readonly ErrorCode[];
}

interface PathParameter {
  readonly description: string;
  readonly example: string;
}

/** What stands in addresses, by its name there. */
export const PATH_PARAMETERS = {
  runId: { description: 'A run.', example: 'run-1srOrx2ZWZBpBUvZwXKQmoEYga2' },
  nodeId: { description: "A node of the run's workflow.", example: 'approve' },
  workflowId: { description: 'A workflow.', example: 'refund' },
  agentId: { description: 'An agent.', example: 'example.notes' },
  artifactId: { description: 'An artifact.', example: 'report' },
  sessionId: { description: 'A session.', example: 'session-1srOrx2ZWZBpBUvZwXKQmoEYga2' },
  cohortId: { description: 'A cohort.', example: 'cohort-1srOrx2ZWZBpBUvZwXKQmoEYga2' },
  buildId: { description: 'A build of the worker.', example: '2026-06-01' },
  erasureId: { description: 'An erasure.', example: 'erasure-p1nD3q8ZbY0mVtq1fXy2Wc0K' },
  eventId: { description: 'An event of the run.', example: 'evt-1srOrx2ZWZBpBUvZwXKQmoEYga2' },
  sequence: { description: "Number of an event in the run's log.", example: '0' },
} as const satisfies Partial<
  Record<
    | keyof typeof ID_FIELDS
    | 'sessionId'
    | 'cohortId'
    | 'buildId'
    | 'erasureId'
    | 'eventId'
    | 'sequence',
    PathParameter
  >
>;

type PathNames<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? Name | PathNames<Rest>
  : never;

type ParametersOf<Declared> = Declared extends { readonly parameters: infer All }
  ? { readonly [Name in keyof All]: All[Name] extends Parameter<infer Value> ? Value : never }
  : object;

/** What the handler of a declared route is given. */
export interface InputOf<Declared extends Declaration> {
  readonly caller: Caller;
  /** That was asked for: the answer is its own. */
  readonly major: ServedMajor;
  /** Of the addresses in the answer, as this client reaches the host. */
  readonly baseUrl: string;
  /** Ids inside. */
  readonly path: { readonly [Name in PathNames<Declared['path']>]: string };
  readonly run: Declared extends { readonly about: 'run' }
    ? RunRow
    : Declared extends { readonly about: 'run-or-repeat' }
      ? RunRow | undefined
      : undefined;
  readonly parameters: ParametersOf<Declared>;
  readonly body: Declared extends { readonly body: Body<infer Value> } ? Value : undefined;
}

/** The input of any route, as it is read; InputOf says what is in it for one. */
export interface Input {
  readonly caller: Caller;
  readonly major: ServedMajor;
  readonly baseUrl: string;
  readonly path: Readonly<Record<string, string>>;
  readonly run: RunRow | undefined;
  readonly parameters: Readonly<Record<string, unknown>>;
  readonly body: unknown;
}

/** `body` leaves as JSON, `text` as it is with the Content-Type among the headers; without either there is no content. */
export interface Answer {
  /** Default: that of the declared success. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly text?: string;
  /** The run that the answer is about, for the access log, where the address names none. */
  readonly runId?: string;
}

/** Where a stream goes to, and what it looks for in the request beyond its parameters (Accept, HEAD). */
export interface Exchange {
  readonly request: Request;
  readonly response: Response;
}

export interface ValueRoute extends Declaration {
  readonly kind: 'value';
  handle(input: Input): Promise<Answer>;
}

export interface StreamRoute extends Declaration {
  readonly kind: 'stream';
  stream(input: Input, exchange: Exchange): Promise<void>;
}

export type Route = ValueRoute | StreamRoute;

export function answered<const Declared extends Declaration>(
  declared: Declared,
  handle: (input: InputOf<Declared>) => Answer | Promise<Answer>,
): ValueRoute {
  // Input that is read by a declaration is of its types.
  return { ...declared, kind: 'value', handle: async (input) => handle(input as never) };
}

export function streamed<const Declared extends Declaration>(
  declared: Declared,
  stream: (input: InputOf<Declared>, exchange: Exchange) => Promise<void>,
): StreamRoute {
  return {
    ...declared,
    kind: 'stream',
    stream: (input, exchange) => stream(input as never, exchange),
  };
}

/** Reference to a published shape (shapes.ts). */
export function shape(name: string): { readonly $ref: string } {
  return { $ref: `#/components/schemas/${name}` };
}

/** Where the route is mounted for a major. */
export function pathOf(
  { path, ofNoMajor }: Pick<Declaration, 'path' | 'ofNoMajor'>,
  { prefix }: Pick<ServedMajor, 'prefix'>,
): string {
  return ofNoMajor ? path : prefix + path;
}

/** `GET /v1/runs`: as discovery tells it, and as it stands in stored records of idempotency. */
export function addressOf(declared: Declaration, major: Pick<ServedMajor, 'prefix'>): string {
  return `${declared.method.toUpperCase()} ${pathOf(declared, major)}`;
}

/** Undefined: public. */
export function scopeOf(access: Access): Scope | undefined {
  if (access === 'public') return undefined;
  return typeof access === 'string' ? access : access.scope;
}
