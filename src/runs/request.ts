// The body of POST /v1/runs (rest-endpoints.md): its schema first, then what a schema cannot say: sizes in bytes, the
// caller's tenant, and what this host refuses instead of ignoring it.
import { lackingOfRequest, REASONS } from '../rules/capabilities.ts';
import { HostError, invalid } from '../rules/errors.ts';
import {
  isJsonObject,
  jsonBytes,
  utf8Length,
  type JsonObject,
  type JsonValue,
} from '../rules/json.ts';
import { INLINE_VALUE_BYTES } from '../rules/limits.ts';
import type { Caller } from '../ports/caller.ts';
import { mustBeValid } from '../wire/checked.ts';
import type { RunCreateRequest } from '../../schemas/types.generated.ts';
import { validate } from '../wire/validators.ts';

/** Longest workflowId in characters. */
const MAX_ID_LENGTH = 128;
/** One tag, in UTF-8 bytes. */
const MAX_TAG_BYTES = 256;
/** Inputs travel in history with the start of the run, and again in run.started. */
export const INPUTS_BYTES = 128 * 1024;

export interface RunRequest {
  /** Exactly one of the two. */
  readonly workflowId?: string;
  readonly agentId?: string;
  /** Extension fields of this host (seed 003): the session that the run joins or makes, and its title where it has none. */
  readonly sessionId?: string;
  readonly sessionTitle?: string;
  /** A message that mentions the agent: it is the agent's task, in the place of `inputs`. */
  readonly said?: { readonly text: string; readonly atMs: number };
  /** Extension field of this host: whose data the run holds (architecture §10.1). It stands in nothing that is kept. */
  readonly dataSubject?: string;
  readonly inputs: JsonObject;
  readonly configurable: JsonObject;
  readonly tags?: readonly string[];
  readonly metadata?: JsonObject;
  /** Extension of this host: its clock stands until somebody moves it. */
  readonly isRehearsal?: true;
}

/** Throws validation_error, payload_too_large, forbidden (another tenant), capability_not_provided (`mode`). */
export function parseRunRequest(caller: Caller, body: JsonValue | undefined): RunRequest {
  const lacking = isJsonObject(body) ? lackingOfRequest(body) : undefined;
  if (lacking !== undefined)
    throw new HostError('capability_not_provided', { capability: lacking });
  const request: RunCreateRequest = mustBeValid(validate.runCreateRequest(body));
  for (const [field, reason] of REASONS.requestFields) {
    if (Object.hasOwn(request, field)) throw invalid(`/${field}`, reason);
  }
  const { workflowId, agentId, tags, metadata, tenantId, sessionId, sessionTitle, rehearsal } =
    request;
  const { dataSubject } = request;
  if ((workflowId?.length ?? 0) > MAX_ID_LENGTH)
    throw invalid('/workflowId', `must not be longer than ${MAX_ID_LENGTH}`);
  if (tenantId !== undefined && tenantId !== caller.tenant) {
    throw new HostError('forbidden', {
      field: '/tenantId',
      reason: 'is not the tenant of the credential',
    });
  }
  tags?.forEach((tag, index) => {
    if (utf8Length(tag) > MAX_TAG_BYTES)
      throw invalid(`/tags/${index}`, `must not be larger than ${MAX_TAG_BYTES} bytes`);
  });
  return {
    workflowId,
    agentId,
    sessionId,
    sessionTitle,
    dataSubject,
    inputs: bounded(request.inputs, '/inputs', INPUTS_BYTES),
    configurable: bounded(request.configurable, '/configurable', INLINE_VALUE_BYTES),
    tags,
    metadata: metadata as JsonObject | undefined,
    ...(rehearsal ? { isRehearsal: true } : {}),
  };
}

function bounded(value: object | undefined, field: string, limit: number): JsonObject {
  if (value === undefined) return {};
  if (jsonBytes(value) > limit) throw new HostError('payload_too_large', { field, limit });
  return value as JsonObject;
}
