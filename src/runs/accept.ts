// Acceptance of a run (architecture §4): one transaction claims the idempotency key and inserts the run row, then
// Temporal is asked to start it; a start that fails is tried again by the reaper, from the row. Trips to the database,
// where the key is new: claim and insert, note the start, keep the answer; without a key the first two.
import type { JsonValue } from '../rules/json.ts';
import { withoutCredentials } from '../rules/redaction.ts';
import type { RunStatus } from '../rules/status.ts';
import type { Caller } from '../ports/caller.ts';
import type { IdempotencyClaim, StoredResponse } from '../ports/idempotency.ts';
import type { NewRun, RunRow } from '../ports/runs.ts';
import type { RunCreateWarning } from '../../schemas/types.generated.ts';
import { configurableWarnings } from './configurable-warnings.ts';
import type { RunsDeps } from './deps.ts';
import { goneRun } from './find.ts';
import { buildRunInput } from './input.ts';
import { claimOf, refusedClaim, type Asked, type Once, type Telling } from './once.ts';
import type { RunRequest } from './request.ts';
import { startNew, startRun } from './start.ts';

export interface AcceptRequest {
  readonly run: RunRequest;
  /** Makes the row, where that is no work of the request alone; throws what it is refused with. */
  readonly make?: () => NewRun;
  /** Of a new row, before it is accepted; throws what it is refused with. */
  readonly before?: (run: NewRun) => Promise<void>;
  /** Of what `make` makes: the run that it is made from has it. */
  readonly subjectKey?: string | undefined;
  /** Absent: this asker has no keys. */
  readonly once?: {
    readonly asked: Asked;
    readonly telling: Pick<Telling<AcceptedRun>, 'told'>;
  };
}

/** What is known of a run when Temporal has it. */
export interface AcceptedRun {
  readonly runId: string;
  /** Given by the caller, or made. */
  readonly sessionId: string;
  readonly status: RunStatus;
  /** Keys of `configurable` that have no effect; as they may be shown. */
  readonly warnings: readonly RunCreateWarning[];
}

type AcceptDeps = Omit<RunsDeps, 'log'> & {
  readonly log: Pick<RunsDeps['log'], 'head' | 'endUnstarted'>;
};

/**
 * Throws the errors of buildRunInput and of a subject's key, idempotency_key_mismatch, idempotency_in_flight, and service_unavailable with
 * `details.runId` when the run is accepted but not started yet. No error is kept under a key.
 */
export async function acceptRun(
  deps: AcceptDeps,
  caller: Caller,
  { run, make, subjectKey: given, before, once }: AcceptRequest,
): Promise<Once<AcceptedRun>> {
  const subjectKey = make ? given : await subjectKeyOf(deps, caller, run);
  const claim = once && claimOf({ ...once.asked, ...(subjectKey ? { subjectKey } : {}) });
  const row = make ?? (() => newRun(deps, caller, { run, subjectKey }));
  const outcome = await claimRow(deps, caller, { make: row, before, claim });
  if (outcome.kind === 'replay') return { replayed: true, kept: outcome.response };
  const { owner } = outcome;
  try {
    const data = await startClaimed(deps, caller, { run, outcome });
    if (!claim) return { data };
    await deps.stores.idempotency.complete(caller.tenant, claim, owner, once.telling.told(data));
    return { replayed: false, data };
  } catch (error) {
    // Released, not forgotten: the run stays tied to its key, and the retry goes on with it. Best effort: a claim that is
    // not released is taken over when its lease ends.
    if (claim)
      await deps.stores.idempotency.release(caller.tenant, claim, owner).catch(() => undefined);
    throw error;
  }
}

type Claimed =
  | { readonly kind: 'replay'; readonly response: StoredResponse }
  | {
      readonly kind: 'claimed';
      readonly owner: string;
      readonly inserted?: RunRow;
      /** Of an earlier run: what is to be started is that one. */
      readonly runId?: string;
      readonly known?: RunRow;
    };

interface Making {
  readonly make: () => NewRun;
  readonly before: AcceptRequest['before'];
  readonly claim: IdempotencyClaim | undefined;
}

async function claimRow(
  deps: AcceptDeps,
  caller: Caller,
  { make, before, claim }: Making,
): Promise<Claimed> {
  const { idempotency, runs } = deps.stores;
  let asked: NewRun;
  let known: RunRow | undefined;
  try {
    asked = make();
  } catch (error) {
    // An answer stays the answer, and a run that is accepted stays accepted, when the workflow has changed or is gone.
    const earlier = claim && (await idempotency.find(caller.tenant, claim));
    if (!earlier) throw error;
    if (earlier.kind === 'replay') return earlier;
    if (earlier.kind === 'mismatch') throw refusedClaim(earlier);
    asked = known = await earlierRow(deps, caller, earlier.runId);
  }
  if (!known) await before?.(asked);
  const outcome = await runs.accept(asked, claim);
  if (outcome.kind === 'replay') return outcome;
  if (outcome.kind !== 'claimed') throw refusedClaim(outcome);
  return { ...outcome, known };
}

async function startClaimed(
  deps: AcceptDeps,
  caller: Caller,
  { run, outcome }: { run: RunRequest; outcome: Extract<Claimed, { kind: 'claimed' }> },
): Promise<AcceptedRun> {
  const { inserted, known, runId = '' } = outcome;
  const row = inserted ?? (known?.runId === runId ? known : await earlierRow(deps, caller, runId));
  const { status } = await (inserted ? startNew(deps, row) : startRun(deps, row));
  const warnings = warningsOf(deps, row, run);
  return {
    runId: row.runId,
    sessionId: row.input.header.sessionId,
    status: status ?? (await deps.log.head(row))?.status ?? 'pending',
    warnings,
  };
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

function newRun(
  deps: AcceptDeps,
  caller: Caller,
  { run, subjectKey }: { readonly run: RunRequest; readonly subjectKey: string | undefined },
): NewRun {
  const input = buildRunInput(deps, caller, run);
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
