// Acceptance of a run (design §4): one transaction claims the idempotency key and inserts the run row, then Temporal is
// asked to start it; 201 when Temporal has it. A start that fails is tried again by the reaper, from the row.
import { HostError } from '../rules/errors.ts';
import type { JsonObject, JsonValue } from '../rules/json.ts';
import { withoutCredentials } from '../rules/redaction.ts';
import type { Caller } from '../ports/caller.ts';
import type { IdempotencyClaim, StoredResponse } from '../ports/idempotency.ts';
import type { RunRow } from '../ports/runs.ts';
import type { RunCreateWarning } from '../../schemas/types.generated.ts';
import { configurableWarnings } from '../runs/configurable-warnings.ts';
import type { FacadeDeps, RunAnswer } from './deps.ts';
import { refusedClaim, requestDigest } from './idempotency.ts';
import { buildRunInput } from '../runs/input.ts';
import { parseRunRequest, type RunRequest } from '../runs/request.ts';
import { startRun } from '../runs/start.ts';
import { eventsUrlOf, statusUrlOf } from './urls.ts';

export const CREATE_RUN_ENDPOINT = 'POST /v1/runs';

export interface AcceptRequest {
  readonly body: JsonValue | undefined;
  readonly idempotencyKey?: string;
  /** Absolute base of the URLs in the answer. */
  readonly baseUrl: string;
}

export type AcceptDeps = Pick<
  FacadeDeps,
  'stores' | 'engine' | 'catalog' | 'models' | 'redactor' | 'config' | 'logger'
>;

/**
 * Status 201 and a RunAnswer; `replayed` only for keyed requests. Throws the errors of parseRunRequest and
 * buildRunInput, idempotency_key_mismatch, idempotency_in_flight, and service_unavailable with `details.runId` when the
 * run is accepted but not started yet.
 */
export async function acceptRun(
  deps: AcceptDeps,
  caller: Caller,
  request: AcceptRequest,
): Promise<StoredResponse & { replayed?: boolean }> {
  const { stores } = deps;
  const { idempotencyKey: key, baseUrl } = request;
  const parsed = parseRunRequest(caller, request.body);
  const claim: IdempotencyClaim | undefined =
    key === undefined
      ? undefined
      : { endpoint: CREATE_RUN_ENDPOINT, key, requestDigest: requestDigest([], request.body) };
  // Before the catalog is asked: an answer stays the answer, and a run that is accepted stays accepted, when the
  // workflow has changed or is gone.
  const earlier = claim && (await stores.idempotency.find(caller.tenant, claim));
  if (earlier?.kind === 'replay') return { ...earlier.response, replayed: true };
  if (earlier?.kind === 'mismatch') throw refusedClaim(earlier);
  const row = earlier
    ? await earlierRow(deps, caller, earlier.runId)
    : newRow(deps, caller, parsed);
  const outcome = await stores.runs.accept(row, claim);
  if (outcome.kind === 'replay') return { ...outcome.response, replayed: true };
  if (outcome.kind !== 'claimed') throw refusedClaim(outcome);
  try {
    const accepted =
      outcome.runId === undefined || outcome.runId === row.runId
        ? row
        : await earlierRow(deps, caller, outcome.runId);
    await startRun(deps, accepted);
    const warnings = warningsOf(deps, accepted, parsed);
    const response = await answerOf(deps, accepted.runId, { baseUrl, warnings });
    if (!claim) return response;
    await stores.idempotency.complete(caller.tenant, claim, outcome.owner, response);
    return { ...response, replayed: false };
  } catch (error) {
    // Released, not forgotten: the run stays tied to its key, and the retry goes on with it.
    if (claim) await releaseQuietly(deps, caller, { claim, owner: outcome.owner });
    throw error;
  }
}

/** Told to the caller and in the log. A key can be anything that a client sends: known secrets are taken out. */
function warningsOf(
  { redactor, logger }: AcceptDeps,
  { runId, input }: RunRow,
  { configurable }: RunRequest,
): readonly RunCreateWarning[] {
  const found = configurableWarnings(configurable, input.definition);
  if (found.length === 0) return found;
  const shown = JSON.parse(
    withoutCredentials(JSON.stringify(redactor.json(found as unknown as JsonValue))),
  ) as RunCreateWarning[];
  logger.warn('run accepted with keys that have no effect', {
    runId,
    warnings: shown.map(({ message }) => message),
  });
  return shown;
}

async function answerOf(
  { stores }: AcceptDeps,
  runId: string,
  { baseUrl, warnings }: { baseUrl: string; warnings: readonly RunCreateWarning[] },
): Promise<StoredResponse> {
  const head = await stores.log.head(runId);
  const answer: RunAnswer = {
    runId,
    status: head?.status ?? 'pending',
    eventsUrl: eventsUrlOf(baseUrl, runId),
    statusUrl: statusUrlOf(baseUrl, runId),
    ...(warnings.length === 0 ? {} : { warnings }),
  };
  return { status: 201, body: answer as unknown as JsonObject };
}

/** Best effort: a claim that is not released is taken over when its lease ends. */
async function releaseQuietly(
  { stores }: AcceptDeps,
  caller: Caller,
  { claim, owner }: { claim: IdempotencyClaim; owner: string },
): Promise<void> {
  await stores.idempotency.release(caller.tenant, claim, owner).catch(() => undefined);
}

function newRow(deps: AcceptDeps, caller: Caller, parsed: RunRequest): RunRow {
  const input = buildRunInput(deps, caller, parsed);
  return {
    runId: input.runId,
    tenant: caller.tenant,
    workflowId: input.definition.id,
    input,
    createdAtMs: Date.now(),
  };
}

/** A key whose earlier claim accepted a run that was never answered goes on with that run, as it was accepted. */
async function earlierRow({ stores }: AcceptDeps, caller: Caller, runId: string): Promise<RunRow> {
  const earlier = await stores.runs.find(caller.tenant, runId);
  if (!earlier) {
    throw new HostError('internal_error', { reason: 'a claim names a run that is not there' });
  }
  return earlier;
}
