// Entries -> snapshot: what a head keeps of a run beside its rows, and its wire form RunSnapshot
// (run-snapshot.schema.json). Live deltas do not change it: the append of a delta need not touch it, and a rebuild
// gives the same snapshot.
import { channelRules, channelValues } from '../rules/channels.ts';
import { HostError } from '../rules/errors.ts';
import { eventRow } from '../rules/events.ts';
import { isText, isTime, listOf, mapOf, members, optional } from '../rules/forms.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../rules/json.ts';
import { WITHHELD } from '../rules/redaction.ts';
import { withOverlay } from '../rules/overlay.ts';
import { countedFromMs, durationLimitMs, ownPrincipal, type ForkOf } from '../rules/run-input.ts';
import type { RunStatus } from '../rules/status.ts';
import { iso } from '../rules/unreadable.ts';
import type { Head, LogRow } from '../ports/log.ts';
import type { RunRow, RunSummary, SummedWait } from '../ports/runs.ts';
import type {
  NodeSettings,
  RunSnapshot,
  WorkflowDefinition,
} from '../../schemas/types.generated.ts';
import {
  EMPTY_RUN,
  foldRow,
  objectOr,
  text,
  type FoldableRow,
  type FoldedChannels,
  type FoldedRun,
  type OpenInterrupt,
} from './fold-rows.ts';

export type { FoldedRun, OpenInterrupt } from './fold-rows.ts';

/** The snapshot as stored in a head, readable; null (before the first row) is the empty one. */
export function foldedRun(snapshot: JsonValue): FoldedRun {
  if (snapshot === null) return EMPTY_RUN;
  if (isFolded(snapshot)) return snapshot as unknown as FoldedRun;
  throw new HostError('history_undecodable', { reason: 'The snapshot of a run is damaged.' });
}

const isObject = members({});

/** What is read of a snapshot, and what the next row is folded into. */
const isFolded = members<FoldedRun>({
  ...{ startedAtMs: optional(isTime), endedAtMs: optional(isTime), atSequence: Number.isInteger },
  clock: optional(members<NonNullable<FoldedRun['clock']>>({ beganMs: isTime, nowMs: isTime })),
  ...{ variables: isObject, channels: isObject, nodes: mapOf(isObject), nodeAgents: isObject },
  attemptsSinceMs: mapOf(isTime),
  interrupts: listOf(
    members<OpenInterrupt>({
      ...{ nodeId: isText, interruptId: isText, kind: isText, key: isText, data: isObject },
      ...{ requestedAtMs: isTime, attemptSinceMs: optional(isTime), deadlineMs: optional(isTime) },
    }),
  ),
});

/** Whether folding rows of these types needs the run's own definition. */
export function needsDefinition(rows: readonly Pick<LogRow, 'type'>[]): boolean {
  return rows.some(({ type }) => eventRow(type).part === 'channel');
}

/**
 * Folds rows, in log order, into a head's snapshot. Pure: batches may be cut anywhere. `definition` may be absent where
 * none is needed (`needsDefinition`).
 */
export function fold(
  snapshot: JsonValue,
  rows: readonly LogRow[],
  definition?: Pick<WorkflowDefinition, 'channels'>,
): JsonValue {
  let run = foldedRun(snapshot);
  const channels = channelsOf(definition);
  for (const { type, nodeId, payload, timestampMs, sequence } of rows) {
    if (eventRow(type).piece) continue;
    const body = objectOr(JSON.parse(payload) as JsonValue, {});
    const row: FoldableRow = {
      type,
      nodeId: nodeId ?? text(body.nodeId),
      payload: body,
      timeMs: timestampMs,
      sequence,
    };
    run = { ...foldRow(run, row, channels), atSequence: sequence };
  }
  return run as unknown as JsonValue;
}

function channelsOf(definition: Pick<WorkflowDefinition, 'channels'> | undefined): FoldedChannels {
  return Object.fromEntries(
    Object.entries(definition?.channels ?? {}).map(([name, declared]) => [
      name,
      { rules: channelRules(declared), initial: declared.default as JsonValue | undefined },
    ]),
  );
}

/** What waits for an answer, oldest first; also what the log does not tell yet. */
export function openInterrupts(snapshot: JsonValue): readonly OpenInterrupt[] {
  return foldedRun(snapshot).interrupts;
}

/**
 * The same with the deadlines that hold, without those that nobody can answer any more: a pause keeps a question's
 * deadline, and it is closed in the log only when the run goes on.
 */
export function askedInterrupts(
  { snapshot, status }: Pick<Head, 'snapshot' | 'status'>,
  run: RunRow,
  nowMs = Date.now(),
): OpenInterrupt[] {
  const { clock } = foldedRun(snapshot);
  return stillAsked(timedInterrupts(snapshot, run), status, clock?.nowMs ?? nowMs);
}

/** Of what is open, what can still be answered. */
export function stillAsked<Open extends { readonly deadlineMs?: number }>(
  open: readonly Open[],
  status: RunStatus,
  nowMs: number,
): Open[] {
  const endMs = status === 'paused' ? nowMs : -Infinity;
  return open.filter(({ deadlineMs = Infinity }) => deadlineMs > endMs);
}

/** Each that the log tells, with the question's own deadline, its node's or the run's, whichever is first. */
function timedInterrupts(snapshot: JsonValue, { input }: RunRow): OpenInterrupt[] {
  const { startedAtMs, interrupts, clock } = foldedRun(snapshot);
  const beganMs = clock?.beganMs ?? startedAtMs;
  const runEndsMs =
    beganMs === undefined ? Infinity : countedFromMs(input, beganMs) + durationLimitMs(input);
  const told = interrupts.filter(({ isUntold }) => !isUntold);
  return told.map((open) => {
    const { nodeId, requestedAtMs, deadlineMs = Infinity, attemptSinceMs = Infinity } = open;
    const node = input.definition.nodes.find(({ id }) => id === nodeId);
    const { timeoutMs = Infinity } = (node?.settings ?? {}) as NodeSettings;
    const ownEndsMs = deadlineMs + countedFromMs(input, requestedAtMs) - requestedAtMs;
    const attemptEndsMs = countedFromMs(input, attemptSinceMs) + timeoutMs;
    const first = Math.min(ownEndsMs, attemptEndsMs, runEndsMs);
    return isTime(first) ? { ...open, deadlineMs: first } : open;
  });
}

/** What the title of a question is made of (src/words). */
const TITLE_FIELDS = ['title', 'artifactType'];
/** Texts of a summary are cut behind this many UTF-16 units: a list shows one line of each. */
const SUMMARY_TEXT_LENGTH = 300;

/**
 * What lists tell of a run. `run` may be absent where nothing can be open (`MAY_WAIT`). Deadlines of a rehearsal are by a
 * clock of its own: among those of others they say nothing.
 */
export function summaryOf(snapshot: JsonValue, run: RunRow | undefined): RunSummary {
  const { startedAtMs, endedAtMs, clock } = foldedRun(snapshot);
  const timed = run ? timedInterrupts(snapshot, run) : [];
  const open = clock ? timed.map(({ deadlineMs: _, ...one }) => one) : timed;
  return {
    ...(startedAtMs === undefined ? {} : { startedAtMs }),
    ...(endedAtMs === undefined ? {} : { endedAtMs }),
    ...(clock ? { isRehearsal: true } : {}),
    waits: run ? open.map((one) => summedWait(one, run)) : [],
  };
}

function summedWait(open: OpenInterrupt, { input }: RunRow): SummedWait {
  const { nodeId, interruptId, kind, requestedAtMs, deadlineMs, data } = open;
  const node = input.definition.nodes.find(({ id }) => id === nodeId);
  const texts = TITLE_FIELDS.flatMap((name) => {
    const value = data[name];
    return typeof value === 'string' ? [[name, value.slice(0, SUMMARY_TEXT_LENGTH)]] : [];
  });
  return {
    ...{ nodeId, interruptId, kind, requestedAtMs },
    nodeName: (node?.name ?? nodeId).slice(0, SUMMARY_TEXT_LENGTH),
    data: Object.fromEntries(texts) as JsonObject,
    ...(deadlineMs === undefined ? {} : { deadlineMs }),
  };
}

/** Values of variables declared `sensitive` never leave by a snapshot (observability.md). */
function masked(variables: JsonObject, definition: WorkflowDefinition): JsonObject {
  const sensitive = new Set(
    definition.variables.filter((declared) => declared.sensitive).map(({ name }) => name),
  );
  if (sensitive.size === 0) return variables;
  return Object.fromEntries(
    Object.entries(variables).map(([name, value]) => [
      name,
      sensitive.has(name) ? WITHHELD : value,
    ]),
  );
}

/** Post-reduction, defaults included; what is declared `sensitive` never leaves. */
function shownChannels({ channels }: WorkflowDefinition, written: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(channelValues(channels, written)).map(([name, value]) => [
      name,
      channels?.[name]?.sensitive ? WITHHELD : value,
    ]),
  );
}

/** The wire form of a question. */
export function interruptView(open: OpenInterrupt): JsonObject {
  const { data, nodeId, interruptId, kind, key, resumeSchema, requestedAtMs, deadlineMs } = open;
  return {
    ...data,
    kind,
    nodeId,
    interruptId,
    key,
    requestedAt: iso(requestedAtMs),
    ...(resumeSchema ? { resumeSchema } : {}),
    ...(deadlineMs === undefined ? {} : { expiresAt: iso(deadlineMs), deadline: iso(deadlineMs) }),
  };
}

/** Of what, from where, and by what it goes in its source's place. */
function lineageOf(
  { sourceRunId, fromSeq, mode, asked, cohortId }: ForkOf,
  definition: WorkflowDefinition,
): JsonObject {
  const inputs = asked && isJsonObject(asked.inputs) ? masked(asked.inputs, definition) : undefined;
  const overlay = asked && { ...asked, ...(inputs ? { inputs } : {}) };
  return {
    ...{ sourceRunId, fromSeq, mode },
    ...(overlay ? { runOptionsOverlay: overlay } : {}),
    ...(cohortId === undefined ? {} : { cohortId }),
  };
}

function rehearsalOf({ clock }: FoldedRun): NonNullable<RunSnapshot['rehearsal']> {
  return clock
    ? { now: iso(clock.nowMs), skippedMs: clock.nowMs - clock.beganMs }
    : { skippedMs: 0 };
}

/**
 * The wire form. `status` is the head's: status notes move it without a row. Only declared inputs are in the row's
 * start values, so nothing else a client sent is shown.
 */
export function snapshotOf(head: Head, run: RunRow, nowMs = Date.now()): RunSnapshot {
  const folded = foldedRun(head.snapshot);
  const { fork } = run.input;
  const input = withOverlay(withOverlay(run.input, fork?.inherited), fork?.overlay);
  const [waiting] = askedInterrupts(head, run, nowMs);
  const ended = folded.endedAtMs === undefined ? undefined : iso(folded.endedAtMs);
  const channels = shownChannels(input.definition, folded.channels);
  return {
    runId: run.runId,
    workflowId: run.workflowId,
    status: head.status,
    owner: { tenant: run.tenant, principal: ownPrincipal(input) },
    ...(waiting ? { currentNodeId: waiting.nodeId, interrupt: interruptView(waiting) } : {}),
    createdAt: iso(run.createdAtMs),
    ...(folded.startedAtMs === undefined ? {} : { startedAt: iso(folded.startedAtMs) }),
    ...(ended === undefined ? {} : { completedAt: ended, endedAt: ended }),
    ...(input.header.parentRunId ? { parentRunId: input.header.parentRunId } : {}),
    ...(input.header.parentNodeId ? { parentNodeId: input.header.parentNodeId } : {}),
    ...(folded.agent ? { agent: folded.agent } : {}),
    ...(folded.runOrchestrator ? { runOrchestrator: folded.runOrchestrator } : {}),
    nodeStates: { ...folded.nodes },
    inputs: masked(input.variables, input.definition),
    // Channels stand on both surfaces (channels-and-reducers.md §Channel TTL).
    variables: {
      ...masked({ ...input.variables, ...folded.variables }, input.definition),
      ...channels,
    },
    ...(input.definition.channels ? { channels } : {}),
    ...(folded.error ? { error: folded.error } : {}),
    ...(folded.outputs ? { outputs: folded.outputs } : {}),
    eventLogSchemaVersion: input.era,
    ...(input.tags ? { tags: [...input.tags] } : {}),
    ...(input.metadata ? { metadata: input.metadata } : {}),
    configurable: input.configurable,
    ...(input.rehearsal ? { rehearsal: rehearsalOf(folded) } : {}),
    ...(fork ? { fork: lineageOf(fork, input.definition) } : {}),
    ...(folded.cost ? { metrics: { openwopCost: { ...folded.cost } } } : {}),
    ...(run.erasedAtMs === undefined ? {} : { erasedAt: iso(run.erasedAtMs) }),
  };
}
