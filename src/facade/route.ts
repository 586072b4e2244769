// One row of the route table: it makes the Express route and the operation of the OpenAPI document (spec/01 §2.2).
import type { Request, Response } from 'express';
import type { ErrorCode } from '../rules/errors.ts';
import type { JsonObject, JsonValue } from '../rules/json.ts';
import type { Caller } from '../ports/caller.ts';

export type Scope =
  | 'manifest:read'
  | 'runs:create'
  | 'runs:read'
  | 'runs:cancel'
  | 'artifacts:read'
  | 'approvals:respond'
  | 'agents:operate';

export interface RouteCall {
  readonly request: Request;
  readonly response: Response;
  readonly caller: Caller;
  /** Path parameters, decoded. */
  readonly params: Readonly<Record<string, string>>;
  /** Parsed and guarded JSON; undefined without a body. */
  readonly body: JsonValue | undefined;
}

export interface ParameterDoc {
  readonly name: string;
  readonly in: 'query' | 'header';
  readonly description: string;
  readonly schema: JsonObject;
}

export interface AnswerDoc {
  readonly status: number;
  readonly description: string;
  readonly schema?: JsonObject;
}

export interface Route {
  readonly method: 'get' | 'post';
  /** OpenAPI form: `/v1/runs/{runId}`. */
  readonly path: string;
  readonly operationId: string;
  readonly summary: string;
  /** `public` routes ask for no key. */
  readonly access: 'public' | Scope;
  readonly parameters?: readonly ParameterDoc[];
  readonly requestBody?: { readonly required: boolean; readonly schema: JsonObject };
  /** `schema` describes the JSON among the media types; the others are text. */
  readonly success: AnswerDoc & { readonly mediaTypes?: readonly string[] };
  /** Answers beside success and the error envelope. */
  readonly others?: readonly AnswerDoc[];
  readonly errors: readonly ErrorCode[];
  handle(call: RouteCall): void | Promise<void>;
}

/** `/v1/runs/{runId}` to Express: parameters become `:runId`, characters with a meaning there are escaped. */
export function expressPath(path: string): string {
  return path.replace(/[:*?+()[\]!]/g, '\\$&').replace(/\{(\w+)\}/g, ':$1');
}

export const IDEMPOTENCY_KEY: ParameterDoc = {
  name: 'Idempotency-Key',
  in: 'header',
  description: 'A retry with the same key and body gives the first answer again, for 24 hours.',
  schema: { type: 'string', minLength: 1, maxLength: 255 },
};
