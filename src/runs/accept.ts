// Acceptance of a run (architecture §4): one transaction claims the idempotency key and inserts the run row, then
// Temporal is asked to start it; a start that fails is tried again by the reaper, from the row. Trips to the database,
// where the key is new: claim and insert, note the start, keep the answer; without a key the first two. Whoever names a
// session, a subject or a source asks before whether the key is known.
import type { JsonValue } from '../rules/json.ts';
import { codeOf, HostError, isOutage, type ErrorCode } from '../rules/errors.ts';
import { CLAIM_LEASE_MS } from '../rules/limits.ts';
import { withoutCredentials } from '../rules/redaction.ts';
import type { ForkOf } from '../rules/run-input.ts';
import type { RunStatus } from '../rules/status.ts';
import type { Caller } from '../ports/caller.ts';
import type { ClaimOutcome, IdempotencyClaim } from '../ports/idempotency.ts';
import type { NewRun, RunRow } from '../ports/runs.ts';
import type { RunCreateWarning } from '../../schemas/types.generated.ts';
import { configurableWarnings } from './configurable-warnings.ts';
import type { RunsDeps } from './deps.ts';
import { goneRun } from './find.ts';
import { buildRunInput } from './input.ts';
import { claimOf, refusedClaim, type Asked, type Once, type Telling } from './once.ts';
import type { RunRequest } from './request.ts';
import { maskedWarnings } from './secrets.ts';
import { startNew, startRun } from './start.ts';

/** Of one answer (run-create-response.schema.json). */
const MAX_WARNINGS = 16;

export interface AcceptRequest {
  readonly run: RunRequest;
  /** Makes the row, where that is no work of the request alone; throws what it is refused with. */
  readonly make?: () => NewRun;
  /** Of a new row, before it is accepted; throws what it is refused with. */
  readonly before?: (run: NewRun) => Promise<void>;
  /** Absent: this asker has no keys. */
  readonly once?: AcceptOnce;
  /** Nothing stood against it when it was asked (repeated). */
  readonly isNew?: true;
}

export interface AcceptOnce {
  readonly asked: Asked;
  readonly telling: Pick<Telling<AcceptedRun>, 'told'>;
}

/** What is known of a run when Temporal has it. */
export interface AcceptedRun {
  readonly runId: string;
  /** Given by the caller, or made. */
  readonly sessionId: string;
  readonly status: RunStatus;
  /** Keys of `configurable` that have no effect, and where a secret was masked; as they may be shown. */
  readonly warnings: readonly RunCreateWarning[];
  /** Of a fork. */
  readonly fork?: Pick<ForkOf, 'fromSeq' | 'mode'>;
}

type AcceptDeps = Omit<RunsDeps, 'log'> & {
  readonly log: Pick<RunsDeps['log'], 'head' | 'endUnstarted'>;
};

/**
 * A repeat is known by its key: whatever became of its session, its subject or its workflow, it is told what its first asker
 * was told, and once its subject was erased, of the run that was accepted, as it is now. Throws the errors of buildRunInput and
 * of a subject's key, idempotency_key_mismatch, idempotency_in_flight, and service_unavailable with `details.runId` when the
 * run is accepted but not started yet. No error is kept under a key.
 */
export async function acceptRun(
  deps: AcceptDeps,
  caller: Caller,
  request: AcceptRequest,
): Promise<Once<AcceptedRun>> {
  const { run, once } = request;
  // To know its subject takes questions, and may make a key.
  const mayHaveSubject = run.sessionId !== undefined || run.dataSubject !== undefined;
  const isAsked = once !== undefined && mayHaveSubject && !request.isNew;
  const earlier = isAsked ? await repeated(deps, caller, { once, run }) : undefined;
  if (earlier) return earlier;
  let claimed: Claimed;
  try {
    claimed = await claimRow(deps, caller, request);
  } catch (error) {
    const code = codeOf(error);
    if (code === undefined || OF_KEYS.has(code) || isOutage(code)) throw error;
    // Run and answer stay when the workflow has changed or is gone.
    const known = once && (await repeated(deps, caller, { once, run }));
    if (!known) throw error;
    return known;
  }
  return claimed.kind === 'claimed'
    ? startClaimed(deps, caller, { run, once, claimed })
    : toldBefore(deps, caller, { run, once, claimed });
}

/**
 * What was told of the same request before, or the run that was accepted for it, which is started where it is not. Undefined:
 * it is new. Throws as acceptRun.
 */
export async function repeated(
  deps: AcceptDeps,
  caller: Caller,
  { once, run }: { readonly once: AcceptOnce; readonly run: RunRequest },
): Promise<Once<AcceptedRun> | undefined> {
  const { idempotency } = deps.stores;
  const { tenant } = caller;
  const claim = claimOf(once.asked);
  const found = claim && (await idempotency.find(tenant, claim));
  if (!claim || !found) return undefined;
  if (found.kind === 'mismatch') throw refusedClaim(found);
  if (found.kind !== 'accepted') return toldBefore(deps, caller, { run, once, claimed: found });
  const row = await earlierRow(deps, caller, found.runId);
  const own = ofSubject(claim, row);
  const claimed = await idempotency.claim(tenant, own, CLAIM_LEASE_MS);
  if (claimed.kind === 'mismatch' || claimed.kind === 'in-flight') throw refusedClaim(claimed);
  if (claimed.kind !== 'claimed') return toldBefore(deps, caller, { run, once, claimed });
  const { owner, runId } = claimed;
  if (runId === row.runId)
    return startClaimed(deps, caller, {
      ...{ run, once, claimed: { kind: 'claimed', owner, row, claim: own, isNew: false } },
    });
  // It was given up between two questions.
  await idempotency.release(tenant, own, owner);
  throw refusedClaim({ kind: 'in-flight', retryAfterSeconds: 1 });
}

/** What is said of the record itself. */
const OF_KEYS: ReadonlySet<string> = new Set<ErrorCode>([
  ...(['idempotency_key_mismatch', 'idempotency_in_flight'] as const),
]);

type Claimed =
  | Extract<ClaimOutcome, { kind: 'replay' | 'erased' }>
  | {
      readonly kind: 'claimed';
      readonly owner: string;
      readonly claim: IdempotencyClaim | undefined;
      readonly row: RunRow;
      /** False: it was accepted by an earlier try. */
      readonly isNew: boolean;
    };

/** Tries of a run whose session gets a subject meanwhile: then it keeps that. */
const SESSION_TRIES = 2;

async function claimRow(
  deps: AcceptDeps,
  caller: Caller,
  { run, make, before, once }: AcceptRequest,
): Promise<Claimed> {
  for (let tries = 1; ; tries++) {
    const asked = make ? make() : await newRun(deps, caller, run);
    await before?.(asked);
    const claim = once && claimOf(once.asked);
    const own = claim && ofSubject(claim, asked);
    const outcome = await deps.stores.runs.accept(asked, own);
    if (outcome.kind === 'session-changed') {
      if (tries < SESSION_TRIES) continue;
      throw new HostError('service_unavailable', { reason: 'The subject of the session changes.' });
    }
    if (outcome.kind === 'mismatch' || outcome.kind === 'in-flight') throw refusedClaim(outcome);
    if (outcome.kind !== 'claimed') return outcome;
    const { owner, inserted, runId = '' } = outcome;
    const row = inserted ?? (await earlierRow(deps, caller, runId));
    const ofRow = claim && ofSubject(claim, row);
    return { kind: 'claimed', owner, claim: ofRow, row, isNew: inserted !== undefined };
  }
}

/** What is kept of a request is kept as the run is. */
function ofSubject(
  claim: IdempotencyClaim,
  { subjectKey }: Pick<NewRun, 'subjectKey'>,
): IdempotencyClaim {
  return { ...claim, ...(subjectKey === undefined ? {} : { subjectKey }) };
}

interface Told<Of> {
  readonly run: RunRequest;
  readonly once: AcceptOnce | undefined;
  readonly claimed: Of;
}

/** The answer that was kept; of one that went with its subject: the same run, as it is now. */
async function toldBefore(
  deps: AcceptDeps,
  caller: Caller,
  { once, claimed }: Told<Extract<Claimed, { kind: 'replay' | 'erased' }>>,
): Promise<Once<AcceptedRun>> {
  if (claimed.kind === 'replay') return { replayed: true, kept: claimed.response };
  if (claimed.runId === undefined || !once) throw new HostError('subject_erased');
  const row = await earlierRow(deps, caller, claimed.runId);
  // What it asks now was not compared: nothing of that is warned of.
  const accepted = await acceptedRun(deps, { row, run: { inputs: {}, configurable: {} } });
  return { replayed: true, kept: once.telling.told(accepted) };
}

async function startClaimed(
  deps: AcceptDeps,
  { tenant }: Caller,
  { run, once, claimed }: Told<Extract<Claimed, { kind: 'claimed' }>>,
): Promise<Once<AcceptedRun>> {
  const { idempotency } = deps.stores;
  const { owner, claim, row, isNew } = claimed;
  try {
    const { status } = await (isNew ? startNew(deps, row) : startRun(deps, row));
    const data = await acceptedRun(deps, { row, run, known: status });
    if (!claim || !once) return { data };
    await idempotency.complete(tenant, claim, owner, once.telling.told(data));
    return { replayed: false, data };
  } catch (error) {
    // Released, not forgotten: the run stays tied to its key, and the retry goes on with it. Best effort: a claim that is
    // not released is taken over when its lease ends.
    if (claim) await idempotency.release(tenant, claim, owner).catch(() => undefined);
    throw error;
  }
}

interface AcceptedRow {
  readonly row: RunRow;
  readonly run: RunRequest;
  /** Where it is known already. */
  readonly known?: RunStatus | undefined;
}

async function acceptedRun(
  deps: AcceptDeps,
  { row, run, known }: AcceptedRow,
): Promise<AcceptedRun> {
  const warnings = warningsOf(deps, row, run);
  const status = known ?? (await deps.log.head(row))?.status ?? 'pending';
  const { header, fork } = row.input;
  const accepted = { runId: row.runId, sessionId: header.sessionId, status, warnings };
  if (!fork) return accepted;
  const { fromSeq, mode } = fork;
  return { ...accepted, fork: { fromSeq, mode } };
}

/** Told to the caller and in the log. A key can be anything that a client sends: known secrets are taken out. */
function warningsOf(
  { redactor, logger, models }: AcceptDeps,
  { runId, input }: RunRow,
  request: RunRequest,
): readonly RunCreateWarning[] {
  const masked = maskedWarnings({ redactor }, request, input);
  const most = MAX_WARNINGS - masked.length;
  const { configurable } = request;
  const { definition } = input;
  const unread = configurableWarnings({ configurable, definition, models }, most);
  const found = [...masked, ...unread];
  if (found.length === 0) return found;
  const shown = JSON.parse(
    withoutCredentials(JSON.stringify(redactor.json(found as unknown as JsonValue))),
  ) as RunCreateWarning[];
  logger.warn('run accepted with values that have no effect', {
    runId,
    warnings: shown.map(({ message }) => message),
  });
  return shown;
}

/** Of the subject that the request names, or its session's. Throws what keyFor does. */
function subjectKeyOf(
  { stores }: AcceptDeps,
  { tenant }: Caller,
  { dataSubject, sessionId }: RunRequest,
): Promise<string | undefined> {
  return stores.subjects.keyFor(tenant, {
    ...(dataSubject === undefined ? {} : { subject: dataSubject }),
    ...(sessionId === undefined ? {} : { sessionId }),
  });
}

async function newRun(deps: AcceptDeps, caller: Caller, run: RunRequest): Promise<NewRun> {
  const input = buildRunInput(deps, caller, run);
  // Last: it may make a key.
  const subjectKey = await subjectKeyOf(deps, caller, run);
  return {
    runId: input.runId,
    tenant: caller.tenant,
    workflowId: input.definition.id,
    input,
    ...(run.sessionTitle === undefined
      ? {}
      : { sessionTitle: deps.redactor.text(run.sessionTitle) }),
    createdAtMs: Date.now(),
    ...(subjectKey === undefined ? {} : { subjectKey }),
  };
}

/** A key whose earlier claim accepted a run that was never answered goes on with that run, as it was accepted. */
async function earlierRow({ stores }: AcceptDeps, caller: Caller, runId: string): Promise<RunRow> {
  return (
    (await stores.runs.find(caller.tenant, runId)) ?? (await goneRun({ stores }, caller, runId))
  );
}
