// The children of a fork (architecture §6): forks of the children of its source, as the fork leaves that. They are
// accepted as children are, before anything of the fork's own happens, each with a record of its own: what they start they
// fork themselves. Each try makes the same.
import { depthOf, MAX_DESCENDANTS } from '../rules/children.ts';
import { HostError } from '../rules/errors.ts';
import { childForkOf, leavingOf, namesOf, type Leaving } from '../rules/fork-trees.ts';
import { childRunIdOf } from '../rules/ids.ts';
import type { Recording } from '../rules/recording.ts';
import { madeAtMs, type ForkOf, type RunHeader, type RunInput } from '../rules/run-input.ts';
import type { LogRow } from '../ports/log.ts';
import type { NewRun, RunRef, RunRow } from '../ports/runs.ts';
import { freshLog, staleness } from './child-ends.ts';
import { seriesIn } from './child-input.ts';
import type { ChildrenDeps } from './deps.ts';
import { forkedAs, rowsOf } from './fork.ts';
import { holdSources } from './fork-sources.ts';
import { startNew, startRun } from './start.ts';

/**
 * Notes what a fork of a run below has of its source's effects: that source's `rows` which it goes by. `keeper`: the run that they
 * are noted with, which is there: the fork itself, or the branch above it while it is not accepted.
 */
export type NoteEffects = (
  fork: NewRun,
  rows: AsyncIterable<LogRow>,
  keeper: NewRun,
) => Promise<void>;

/** Children of one run that are read at once. */
const PAGE = 100;

export interface Forked {
  readonly recording: Recording;
  readonly signal?: AbortSignal | undefined;
  readonly effects?: EffectsBelow | undefined;
}

/** Of a branch: what the runs below its source have performed is noted for all that may begin in their places. */
export interface EffectsBelow {
  readonly note: NoteEffects;
  /** What a fork that goes on by itself is given. */
  readonly recordingOf: (fork: ForkOf) => Promise<Recording>;
}

/**
 * `recording`: of the source, as far as it is forked. Throws run_not_found, service_unavailable, capability_not_provided (a
 * log that is too long), replay_source_missing, child_limit_exceeded and run_state_conflict (the fork has ended).
 */
export async function forkChildren(
  deps: ChildrenDeps,
  parent: RunRow,
  forked: Forked,
): Promise<void> {
  const { recording, signal, effects } = forked;
  const { fork } = parent.input;
  if (!fork) throw new HostError('internal_error', { reason: 'The run is no fork.' });
  const source = deps.stores.runs.ref(parent.tenant, fork.sourceRunId);
  const at = { deps, signal };
  const leaving = leavingOf(fork, recording);
  const { planned, lacking } = await planOf(at, { source, parent, leaving });
  // One that was open where a branch by recorded tools leaves is asked for in the records behind.
  const isHeld = (name: string) => hasRecordedTools(fork) && !leaving.ended.has(name);
  const childRunId = lacking.find((name) => !isHeld(name));
  if (childRunId !== undefined)
    throw new HostError('replay_source_missing', {
      ...{ childRunId, reason: 'A child run of the source is not there any more.' },
    });
  // Who is in the place of a grandchild may begin before that one's fork is made: the branch notes the effects of all.
  const isFirst = fork.mode === 'branch' && !fork.isBelowBranch;
  const noted = effects && isFirst ? await withAllBelow({ ...at, effects }, planned) : [];
  // What cannot be read has been reported by now: no part of the family is made without the others.
  for (const { source: child, run } of planned) {
    signal?.throwIfAborted();
    await hold(deps, child, run);
  }
  const note = async ({ source: child, run }: Planned, keeper: NewRun): Promise<void> => {
    signal?.throwIfAborted();
    await effects?.note(run, ownRows(deps, child, run), keeper);
  };
  // Before any is accepted: what is accepted may be started by the reaper.
  for (const one of noted) await note(one, parent);
  const starts: (() => Promise<unknown>)[] = [];
  for (const one of planned) {
    signal?.throwIfAborted();
    const { run, start } = await accepted(deps, one.run);
    starts.push(start);
    if (run.input.fork?.isBelowBranch) await note({ ...one, run }, run);
    // It may end before it has forks below it: what these had is nobody's doubt of the branch itself.
    for (const below of noted)
      if (below.top === run.runId && below.run.runId !== run.runId) await note(below, run);
  }
  for (const start of starts) {
    signal?.throwIfAborted();
    await start();
  }
}

interface Planned {
  readonly source: RunRow;
  /** As an earlier try accepted it, where one has. */
  readonly run: NewRun;
}

interface Noted extends Planned {
  /** The fork that is a child of the branch: itself, or the one above it. */
  readonly top: string;
}

interface Planning {
  readonly deps: ChildrenDeps;
  readonly signal: AbortSignal | undefined;
}

interface Family {
  readonly source: RunRef;
  /** The fork of `source`. */
  readonly parent: NewRun;
  readonly leaving: Leaving;
}

/** `lacking`: names of children that the record has, and that are not there. */
async function planOf(
  { deps, signal }: Planning,
  { source, parent, leaving }: Family,
): Promise<{ readonly planned: readonly Planned[]; readonly lacking: readonly string[] }> {
  const planned: Planned[] = [];
  const lacking = new Set(leaving.dispatched);
  for await (const child of childrenOf(deps, source)) {
    signal?.throwIfAborted();
    for (const name of namesOf(leaving, child)) lacking.delete(name);
    const run = await childFork(deps, { parent, leaving }, child);
    if (!run) continue;
    const known = await deps.stores.runs.find(run.tenant, run.runId);
    planned.push({ source: child, run: known ?? run });
  }
  return { planned, lacking: [...lacking] };
}

/** There are at most MAX_DESCENDANTS, as below each run, over MAX_CHILD_DEPTH generations. */
async function withAllBelow(
  at: Planning & { readonly effects: EffectsBelow },
  planned: readonly Planned[],
): Promise<readonly Noted[]> {
  const all = planned.map((one): Noted => ({ ...one, top: one.run.runId }));
  // It grows meanwhile: each generation follows the one above it.
  for (const { source, run, top } of all) {
    at.signal?.throwIfAborted();
    const { fork } = run.input;
    if (!fork?.hasChildren) continue;
    const recording =
      fork.mode === 'replay'
        ? { entries: await rowsOf(at.deps, source, fork.length), batches: [] }
        : await at.effects.recordingOf(fork);
    const below = { source, parent: run, leaving: leavingOf(fork, recording) };
    const { planned: next } = await planOf(at, below);
    all.push(...next.map((one) => ({ ...one, top })));
  }
  return all;
}

/** Of the source's log, what the fork has of it. */
async function* ownRows(
  { log }: ChildrenDeps,
  source: RunRow,
  { input: { fork } }: NewRun,
): AsyncGenerator<LogRow> {
  const limit = fork?.fromSeq ?? 0;
  if (limit > 0) for await (const rows of log.rows(source, { limit })) yield* rows;
}

async function* childrenOf({ stores }: ChildrenDeps, source: RunRef): AsyncGenerator<RunRow> {
  let cursor: string | undefined;
  do {
    const page = await stores.families.children(source, { cursor, limit: PAGE });
    for (const { run } of page.runs) {
      const row = await stores.runs.find(run.tenant, run.runId);
      if (!row) throw new HostError('run_not_found', { runId: run.runId });
      yield row;
    }
    cursor = page.nextCursor;
  } while (cursor !== undefined);
}

/** Undefined: it is none of what the fork has of its source, or the fork goes by what it comes to there. */
async function childFork(
  deps: ChildrenDeps,
  { parent, leaving }: { readonly parent: NewRun; readonly leaving: Leaving },
  child: RunRow,
): Promise<NewRun | undefined> {
  const { header } = child.input;
  const runId = childRunIdOf(parent.runId, header.causationId ?? '', 0);
  const { head, stale } = await freshLog(deps.log, child);
  if (stale) throw staleness(head);
  if (isUnread(child.input, head))
    // It ends by itself, and then there is a record: it is waited for.
    throw new HostError('service_unavailable', {
      ...{
        childRunId: child.runId,
        reason: 'A child run there is a fork whose record is still played.',
      },
    });
  const rows = await rowsOf(deps, child, head.nextSequence);
  const timesMs = rows.map(({ timestampMs }) => timestampMs);
  const known = childForkOf(leaving, { ...child, isClosed: head.closed, timesMs });
  if (!known || !parent.input.fork) return undefined;
  // Nobody takes what it would come to: nothing is performed for it.
  const { length } = timesMs;
  const isAnswered = head.closed && isAnsweredFor(parent.input.fork, header);
  const how = isAnswered ? { mode: 'replay' as const, fromSeq: length, length } : known;
  if (how.mode === 'branch' && hasRecordedTools(parent.input.fork)) return undefined;
  const { cohortId, build } = parent.input.fork;
  const forkedAtMs = madeAtMs(parent.input.fork);
  const fork = forkedAs(child, rows, { ...how, madeAtMs: forkedAtMs });
  const { runs: below } = await deps.stores.families.children(child, { limit: 1 });
  return {
    ...{ runId, tenant: parent.tenant, workflowId: child.workflowId },
    ...(parent.subjectKey === undefined ? {} : { subjectKey: parent.subjectKey }),
    input: {
      ...child.input,
      runId,
      header: headerOf(parent, header),
      fork: {
        ...fork,
        ...(cohortId === undefined ? {} : { cohortId }),
        // By which build its own source went is another question.
        ...(build ? { build: { buildId: build.buildId } } : {}),
        ...(below.length > 0 ? { hasChildren: true } : {}),
        ...(isBelowBranch(parent.input.fork) ? { isBelowBranch: true } : {}),
      },
    },
    // Who reads a family finds a parent before its children.
    createdAtMs: Math.max(forkedAtMs, parent.createdAtMs + 1),
  };
}

/** Nothing is performed below a replay. */
function isBelowBranch({ mode, isBelowBranch: isBelow }: ForkOf): boolean {
  return mode === 'branch' || isBelow === true;
}

/** Its calls and its children get what they got in its source, and nothing is performed: an open child would. */
function hasRecordedTools({ overlay, inherited }: ForkOf): boolean {
  const own = overlay?.recordedTools;
  return Boolean(own === undefined ? inherited?.recordedTools : own);
}

/** Another answer stands in the place of what this child came to. */
function isAnsweredFor({ overlay }: ForkOf, { causationId }: RunHeader): boolean {
  const { answer } = overlay ?? {};
  return answer?.kind === 'outcome' && causationId !== undefined && answer.callId === causationId;
}

/** A fork whose log does not have yet what it begins with, or a replay that goes on: what it will be is not known. */
function isUnread(
  { fork }: RunInput,
  { closed, nextSequence }: { readonly closed: boolean; readonly nextSequence: number },
): boolean {
  return !closed && fork !== undefined && (fork.mode === 'replay' || nextSequence < fork.fromSeq);
}

/** The child's own, but for the family that it is in. */
function headerOf({ runId, input }: NewRun, child: RunHeader): RunHeader {
  const { sessionId, correlationId } = input.header;
  const { startedBy, place } = child;
  return {
    ...child,
    ...(place === undefined ? {} : seriesIn({ runId, input }, place)),
    ...{ sessionId, correlationId, parentRunId: runId, depth: depthOf(input.header) + 1 },
    ...(typeof startedBy === 'object' ? { startedBy: { ...startedBy, runId } } : {}),
  };
}

/** It may outlive the fork that it is a child of, whose own note ends with that. */
async function hold(deps: ChildrenDeps, source: RunRow, run: NewRun): Promise<void> {
  if (!(await holdSources(deps, source, run))) return;
  throw new HostError('replay_source_missing', {
    ...{ runId: run.runId, childRunId: source.runId },
    reason: 'A run that a child run of the fork would go by is not there any more.',
  });
}

/** `start` starts it. One that an earlier try accepted stays as it is. */
async function accepted(
  deps: ChildrenDeps,
  child: NewRun,
): Promise<{ readonly run: NewRun; readonly start: () => Promise<unknown> }> {
  const { families, runs } = deps.stores;
  const known = await runs.find(child.tenant, child.runId);
  if (known) return { run: known, start: () => startRun(deps, known) };
  const row = await families.acceptChild(child, MAX_DESCENDANTS);
  if (row === 'parent-ended') throw new HostError('run_state_conflict');
  if (row === 'full')
    throw new HostError('child_limit_exceeded', { kind: 'child-runs', limit: MAX_DESCENDANTS });
  return { run: row, start: () => startNew(deps, row) };
}
