// POST /v1/runs/{runId}:fork (replay.md): a run made from another one's record, from an event on. The fork is accepted as
// every run is; what it is made from its own workflow reads (architecture §6).
import type { ForkBuild } from '../rules/builds.ts';
import { HostError, invalid } from '../rules/errors.ts';
import { WENT_ON_KEY } from '../rules/ids.ts';
import { madeAtMs, startingMessageId, type ForkOf, type RunInput } from '../rules/run-input.ts';
import { mergedOverlay, withOverlay } from '../rules/overlay.ts';
import type { Caller } from '../ports/caller.ts';
import type { LogRow } from '../ports/log.ts';
import type { NewRun, RunRow } from '../ports/runs.ts';
import type { Stores } from '../ports/stores.ts';
import type { RunForkRequest } from '../../schemas/types.generated.ts';
import { acceptRun, repeated, type AcceptedRun, type AcceptRequest } from './accept.ts';
import { freshLog } from './child-ends.ts';
import type { RunsDeps } from './deps.ts';
import { goneRun } from './find.ts';
import { holdSources } from './fork-sources.ts';
import { newRoot, requireRehearsals } from './input.ts';
import type { Once } from './once.ts';
import { readOverlay, type OverlayDeps, type ReadOverlay } from './overlay.ts';
import { requireScope } from './scopes.ts';

type ForkDeps = Omit<RunsDeps, 'log'> & {
  readonly stores: OverlayDeps['stores'] & Pick<Stores, 'families' | 'retention'>;
  readonly log: Pick<RunsDeps['log'], 'head' | 'endUnstarted' | 'fresh' | 'rows'>;
};

interface Asked {
  readonly source: RunRow;
  readonly asked: RunForkRequest;
}

export type ForkRequest = Pick<Asked, 'asked'> &
  Pick<AcceptRequest, 'once'> & {
    /** A repeat does not need it, and is told what it was told when the source is gone. */
    readonly source: RunRow | (() => Promise<RunRow>);
    /** Of a cohort's fork: its id, which each try to make it has, whose it is, and by which build of the worker. */
    readonly as?: {
      readonly runId: string;
      readonly cohortId: string;
      /** Absent: it begins where new runs do. */
      readonly build?: ForkBuild;
    };
  };

interface Made {
  readonly of: ForkOf;
  readonly overlay: ReadOverlay | undefined;
}

/**
 * Throws validation_error, invalid_from_seq, subject_erased, capability_not_provided (what this host cannot fork yet), what
 * readOverlay throws, run_expired, replay_source_missing (a record that it would go by is gone), forbidden, the errors of a
 * key, and service_unavailable.
 */
export async function forkRun(
  deps: ForkDeps,
  caller: Caller,
  { source: given, asked, once, as }: ForkRequest,
): Promise<Once<AcceptedRun>> {
  // Who makes it may look at all that its source did.
  requireScope(caller, 'runs:read');
  const run = { inputs: {}, configurable: {} };
  const earlier = once && (await repeated(deps, caller, { once, run }));
  if (earlier) return earlier;
  const source = typeof given === 'function' ? await given() : given;
  const fork = await forkOf(deps, caller, { source, asked });
  const make = (): NewRun => newFork(source, fork, as);
  const before = (run: NewRun): Promise<void> => noteFork(deps, caller, { source, run });
  return acceptRun(deps, caller, { run, make, before, ...(once ? { once } : {}) });
}

/** From here on what the fork may read stays for as long as it may. */
async function noteFork(
  deps: ForkDeps,
  caller: Caller,
  { source, run: { runId, input } }: { readonly source: RunRow; readonly run: NewRun },
): Promise<void> {
  const { runs } = deps.stores;
  const { tenant } = source;
  const others = await holdSources(deps, source, { runId, input });
  if (!others) return;
  if (!(await runs.find(tenant, source.runId))) await goneRun(deps, caller, source.runId);
  for (const other of others)
    if (!(await runs.find(tenant, other)))
      throw new HostError('replay_source_missing', {
        runId: other,
        reason:
          'The run whose record the source went by is not there any more: say which record the fork goes by.',
      });
  await goneRun(deps, caller, runId);
}

async function forkOf(deps: ForkDeps, caller: Caller, { source, asked }: Asked): Promise<Made> {
  const { mode, fromSeq, runOptionsOverlay = {} } = asked;
  if (source.input.rehearsal) requireRehearsals(deps.config);
  if (fromSeq === undefined && mode === 'branch')
    throw invalid('/fromSeq', 'is required of a branch');
  if (mode === 'replay' && Object.keys(runOptionsOverlay).length > 0)
    throw invalid('/runOptionsOverlay', 'a replay runs as its source did');
  if (source.erasedAtMs !== undefined)
    throw new HostError('subject_erased', { sourceRunId: source.runId });
  const generation = (source.input.fork?.generation ?? 0) + 1;
  if (generation > MAX_GENERATIONS)
    throw new HostError('capability_not_provided', {
      capability: `replay: forks of forks, more than ${MAX_GENERATIONS}`,
    });
  const { head, stale } = await freshLog(deps.log, source);
  if (stale) throw new HostError('service_unavailable');
  const { runId: sourceRunId } = source;
  const length = head.nextSequence;
  const from = fromSeq ?? 0;
  if (from > length || length === 0)
    throw new HostError('invalid_from_seq', { sourceRunId, fromSeq: from, length });
  const rows = await rowsOf(deps, source, length);
  const { runs: children } = await deps.stores.families.children(source, { limit: 1 });
  const of = {
    ...forkedAs(source, rows, { mode, fromSeq: from, madeAtMs: await deps.stores.runs.nowMs() }),
    // A branch by recorded tools has none of its own for those that its log tells of.
    ...(children.length > 0 || source.input.fork?.hasChildren
      ? { hasChildren: true as const }
      : {}),
  };
  const input = withOverlay(source.input, of.inherited);
  const overlay = await readOverlay(deps, {
    ...{ caller, source, input, length, asked: runOptionsOverlay },
    ...{ before: rows.slice(0, from), at: rows[from] },
  });
  return { of, overlay };
}

/** How a run is forked whose log has these rows. */
export function forkedAs(
  { runId: sourceRunId, input }: Pick<RunRow, 'runId' | 'input'>,
  rows: readonly Pick<LogRow, 'timestampMs'>[],
  asked: Pick<ForkOf, 'mode' | 'fromSeq'> & { readonly madeAtMs: number },
): ForkOf {
  const { mode, fromSeq } = asked;
  const { length } = rows;
  const last = (mode === 'branch' ? Math.max(fromSeq, 1) : length) - 1;
  const recordEndsMs = rows
    .slice(0, last + 1)
    .reduce((endsMs, { timestampMs }) => Math.max(endsMs, timestampMs), 0);
  const own = { recordEndsMs, madeAtMs: Math.max(asked.madeAtMs, recordEndsMs) };
  const before = (input.fork?.clocks ?? []).filter((clock) => clock.recordEndsMs < recordEndsMs);
  return {
    ...{ sourceRunId, fromSeq, length, mode, clocks: [...before, own] },
    generation: (input.fork?.generation ?? 0) + 1,
    ...inheritedBy({ mode, fromSeq }, input.fork),
  };
}

/** Forks of forks of …: each holds the records of all before it. */
const MAX_GENERATIONS = 16;

/** What its source went by from where that left its own source. */
function inheritedBy(
  { mode, fromSeq }: Pick<ForkOf, 'mode' | 'fromSeq'>,
  source: ForkOf | undefined,
): Pick<ForkOf, 'inherited'> {
  // A replay has no border of its own: what it inherited counts all along.
  if (!source) return {};
  if (mode === 'branch' && source.mode === 'branch' && fromSeq < source.fromSeq) return {};
  const { inherited, overlay } = source;
  if (!inherited && !overlay) return {};
  return { inherited: mergedOverlay(inherited, overlay) };
}

/** What is refused by its name, rather than done by half. */
function notYet(what: string): HostError {
  return new HostError('capability_not_provided', { capability: `replay: ${what}` });
}

/** Its log tells two stories: what its source did, and what its own code did in the place of that. */
export function wentOn({ fork }: RunInput, rows: readonly Pick<LogRow, 'key'>[]): boolean {
  return fork?.overlay?.onDivergence === 'live' && rows.some(({ key }) => key === WENT_ON_KEY);
}
export const WENT_ON = 'runs that went on behind a difference';

/** Of a log, in characters (UTF-16 units of its JSON): it enters the fork's history, which Temporal bounds, beside what it came of. */
const RECORD_CHARACTERS = 12 * 1024 * 1024;

/** Throws capability_not_provided for a run whose log is too long. */
export async function rowsOf(
  { log }: { readonly log: Pick<RunsDeps['log'], 'rows'> },
  source: RunRow,
  length: number,
): Promise<LogRow[]> {
  const all: LogRow[] = [];
  let characters = 0;
  for await (const rows of log.rows(source, { limit: length })) {
    for (const { payload } of rows) characters += payload.length;
    if (characters > RECORD_CHARACTERS)
      throw notYet(`logs of more than ${RECORD_CHARACTERS} characters`);
    all.push(...rows);
  }
  if (wentOn(source.input, all)) throw notYet(WENT_ON);
  return all;
}

/**
 * Owner, definition, agents and limits are the source's (RFC 0165). It is a root of its own, and in a session of its own:
 * what is said in the source's is not said twice.
 */
function newFork(row: RunRow, { of, overlay }: Made, as: ForkRequest['as']): NewRun {
  const { input: source, tenant, workflowId, subjectKey } = row;
  const own = newRoot();
  const { runId, cohortId, build } = as ?? { runId: own.runId };
  // The forks of a cohort are one session.
  const sessionId = cohortId ?? own.sessionId;
  const { startedBy } = source.header;
  const { asked, variables, ...lived } = overlay ?? {};
  // From 0 on it goes by nothing else: as if it had been started so.
  const isWhole = of.mode === 'branch' && of.fromSeq === 0;
  // Who answers it is said of its life, also where that takes back what its source went by (null).
  const saysWhoAnswers =
    overlay?.recordedTools !== undefined || overlay?.recordedAnswers !== undefined;
  const input: RunInput = {
    ...(isWhole ? withOverlay(source, lived) : source),
    ...(variables ? { variables } : {}),
    ...(source.message
      ? { message: { ...source.message, messageId: startingMessageId(runId) } }
      : {}),
    runId,
    header: { sessionId, correlationId: runId, ...(startedBy ? { startedBy } : {}) },
    fork: {
      ...of,
      ...(cohortId === undefined ? {} : { cohortId }),
      ...(build ? { build } : {}),
      ...(asked ? { asked } : {}),
      ...(overlay && (!isWhole || saysWhoAnswers) ? { overlay: lived } : {}),
    },
  };
  return {
    ...{ runId, tenant, workflowId, input, createdAtMs: madeAtMs(of) },
    ...(subjectKey === undefined ? {} : { subjectKey }),
  };
}
