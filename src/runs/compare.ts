// What two runs did otherwise, as people look at it (RFC 0054): where they went apart and why, then step by step. Made of
// their logs and of what each was fixed to; values of b stand in the ids of a.
import {
  causeOf,
  definitionVersion,
  forkBetween,
  livedBy,
  overlaidBy,
  pinnedDifferences,
  pinnedOf,
  type DivergenceCause,
  type OverlayPart,
  type Pinned,
  type PinnedDifference,
} from '../rules/divergence.ts';
import type { ForkBuild } from '../rules/builds.ts';
import { codeOf } from '../rules/errors.ts';
import type { JsonObject, JsonValue } from '../rules/json.ts';
import { jsonDifferences, type JsonDifference } from '../rules/json-differences.ts';
import { comparedPayload, type LogDifference, type Renaming } from '../rules/log-differences.ts';
import type { Redactor } from '../rules/redaction.ts';
import { stepsOf, type RunStep } from '../rules/run-steps.ts';
import type { ContentStore } from '../ports/content.ts';
import type { LogRow } from '../ports/log.ts';
import type { RunRow } from '../ports/runs.ts';
import {
  diffRuns,
  type DiffDeps,
  type RunsDiff,
  type StandingRun,
  type StandingRuns,
} from './diff.ts';
import { pairsByPlace } from './pairs.ts';

/** Steps that are told, those of both runs together. */
const MAX_STEPS = 500;
/** Differences that are told of one value as a whole: a step, the end, what a run was made of. */
const MAX_DIFFERENCES = 50;
/** Longest value, as JSON in UTF-16 units, that is told whole; of all that are told together. */
const VALUE_CHARACTERS = 16 * 1024;
const ALL_CHARACTERS = 2 * 1024 * 1024;
/** Agents of which manifests are read: their prompts and schemas. */
const MAX_MANIFESTS = 10;

/** Manifests are read. */
export interface PinnedDeps {
  readonly stores: { readonly content: Pick<ContentStore, 'get'> };
  readonly redactor: Pick<Redactor, 'json'>;
}

export type CompareDeps = DiffDeps & PinnedDeps;

/** A difference as it is told: of a large value the beginning, as text. */
export interface ToldDifference extends JsonDifference {
  readonly cut?: true;
}

export interface ToldRun {
  readonly row: RunRow;
  readonly version: string;
  readonly definitionDigest: string;
  readonly status: string;
  /** Absent while it is under way. */
  readonly durationMs?: number;
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  readonly usd?: number;
}

export interface ToldStep {
  readonly nodeId: string;
  readonly nodeName: string;
  readonly visit: number;
  /** Absent: the run did not come to it. */
  readonly a?: RunStep;
  readonly b?: RunStep;
  readonly differences: readonly ToldDifference[];
}

/** The first difference of two logs, and why they differ there. */
export interface Divergence extends LogDifference<LogRow> {
  readonly cause: DivergenceCause;
  readonly overlay?: OverlayPart;
  /** One is a fork of the other by this build. */
  readonly build?: ForkBuild;
  readonly nodeId?: string;
  readonly nodeName?: string;
}

export interface Comparison {
  readonly a: ToldRun;
  readonly b: ToldRun;
  /** They were compared to their ends, and say the same. */
  readonly same: boolean;
  readonly divergence?: Divergence & { readonly differences: readonly ToldDifference[] };
  readonly pinned: readonly {
    readonly fact: keyof Pinned;
    readonly differences: readonly ToldDifference[];
  }[];
  readonly steps: readonly ToldStep[];
  readonly end: readonly ToldDifference[];
  readonly truncated: boolean;
  readonly stale: boolean;
}

/** Throws HostError run_not_found. */
export async function compareRuns(
  deps: CompareDeps,
  one: RunRow,
  other: RunRow,
): Promise<Comparison> {
  const diff = await diffRuns(deps, one, other);
  const { a, b, rename, events, state, stale } = diff;
  const telling = new Telling();
  const pinned = await pinnedBetween(deps, diff);
  const [first] = events;
  const divergence = first && {
    ...divergenceAt(first, pinned, [one, other]),
    differences: telling.tell(saidOtherwise(first, rename)),
  };
  const end = telling.tell(state);
  const toldPinned = pinned.map(({ fact, differences }) => ({
    ...{ fact, differences: telling.tell(differences) },
  }));
  const steps = comparedSteps(diff, telling);
  return {
    ...{ a: toldRun(a), b: toldRun(b) },
    same: events.length === 0 && state.length === 0 && !diff.truncated,
    ...(divergence ? { divergence } : {}),
    ...{ pinned: toldPinned, steps, end, stale },
    truncated: diff.truncated || telling.isCut,
  };
}

/** What they were fixed to otherwise. */
export async function pinnedBetween(
  deps: PinnedDeps,
  runs: StandingRuns,
): Promise<PinnedDifference[]> {
  return pinnedDifferences(...(await pinnedBoth(deps, runs)), MAX_DIFFERENCES + 1);
}

export function divergenceAt(
  first: LogDifference<LogRow>,
  pinned: readonly PinnedDifference[],
  [one, other]: readonly [RunRow, RunRow],
): Divergence {
  const fork = forkBetween(one.input, other.input);
  const cause = causeOf({ first, pinned, ...(fork ? { fork } : {}) });
  const overlay = overlaidBy(cause, first, fork);
  return {
    ...{ ...first, cause },
    ...(overlay === undefined ? {} : { overlay }),
    ...(fork?.build ? { build: fork.build } : {}),
    ...placeOf(first.a ?? first.b, one, other),
  };
}

export function toldRun({ row, snapshot }: StandingRun): ToldRun {
  const { startedAt, endedAt, status, metrics } = snapshot;
  const { version, digest } = definitionVersion(row.input);
  const cost = metrics?.openwopCost as
    { tokens: { input: number; output: number }; usd?: number } | undefined;
  return {
    ...{ row, version, definitionDigest: digest, status },
    ...(startedAt === undefined || endedAt === undefined
      ? {}
      : { durationMs: Date.parse(endedAt) - Date.parse(startedAt) }),
    ...(cost ? { inputTokens: cost.tokens.input, outputTokens: cost.tokens.output } : {}),
    ...(cost?.usd === undefined ? {} : { usd: cost.usd }),
  };
}

/** Counts what is told: an answer holds no more than ALL_CHARACTERS of values. */
class Telling {
  isCut = false;
  #left = ALL_CHARACTERS;

  tell(differences: readonly JsonDifference[]): ToldDifference[] {
    if (differences.length > MAX_DIFFERENCES) this.isCut = true;
    const told: ToldDifference[] = [];
    for (const { pointer, ...values } of differences.slice(0, MAX_DIFFERENCES)) {
      const shown = Object.entries(values).map(
        ([side, value]) => [side, shortened(value)] as const,
      );
      this.#left -= pointer.length;
      for (const [, { size }] of shown) this.#left -= size;
      if (this.#left < 0) {
        this.isCut = true;
        break;
      }
      const sides = Object.fromEntries(shown.map(([side, { value }]) => [side, value]));
      const cut = shown.some(([, { isCut }]) => isCut);
      told.push({ pointer, ...sides, ...(cut ? { cut } : {}) });
    }
    return told;
  }
}

function shortened(value: JsonValue): { value: JsonValue; size: number; isCut: boolean } {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  const isCut = text.length > VALUE_CHARACTERS;
  return isCut
    ? { value: text.slice(0, VALUE_CHARACTERS), size: VALUE_CHARACTERS, isCut }
    : { value, size: text.length, isCut };
}

type First = { readonly a?: LogRow; readonly b?: LogRow };

/** Of two events that say the same fact otherwise; one that stands alone says it whole. */
function saidOtherwise({ a, b }: First, rename: Renaming): readonly JsonDifference[] {
  if (!a || !b) return [];
  return jsonDifferences(
    comparedPayload(a),
    comparedPayload({ ...b, payload: rename(b.payload) }),
    MAX_DIFFERENCES + 1,
  );
}

function placeOf(
  row: LogRow | undefined,
  one: RunRow,
  other: RunRow,
): { nodeId?: string; nodeName?: string } {
  const { nodeId } = row ?? {};
  return nodeId === undefined ? {} : { nodeId, nodeName: nameOf(nodeId, one, other) };
}

function nameOf(nodeId: string, ...rows: readonly RunRow[]): string {
  const nodes = rows.flatMap(({ input }) => input.definition.nodes);
  return nodes.find(({ id }) => id === nodeId)?.name ?? nodeId;
}

/** By the order of a; what only b came to stands where b came to it. */
function comparedSteps(
  { a, b, rename }: Pick<RunsDiff, 'a' | 'b' | 'rename'>,
  telling: Telling,
): ToldStep[] {
  const renamed = b.log.rows.map((row) => ({ ...row, payload: rename(row.payload) }));
  const [ofA, ofB] = [byVisit(stepsOf(a.log.rows)), byVisit(stepsOf(renamed))];
  const places = pairsByPlace(ofA, ofB);
  if (places.length > MAX_STEPS) telling.isCut = true;
  return places.slice(0, MAX_STEPS).flatMap(({ one, other }): ToldStep[] => {
    const step = one ?? other;
    if (!step) return [];
    const { nodeId, visit } = step;
    const told =
      one && other ? jsonDifferences(doneIn(one), doneIn(other), MAX_DIFFERENCES + 1) : [];
    return [
      {
        ...{ nodeId, visit, nodeName: nameOf(nodeId, a.row, b.row) },
        ...(one ? { a: one } : {}),
        ...(other ? { b: other } : {}),
        differences: telling.tell(told),
      },
    ];
  });
}

function byVisit(steps: readonly RunStep[]): Map<string, RunStep> {
  return new Map(steps.map((step) => [JSON.stringify([step.nodeId, step.visit]), step]));
}

function doneIn({ status, did }: RunStep): JsonObject {
  return { status, ...did };
}

/** With the manifests of agents that are not the same: prompts, schemas and all else that a hash stands for. */
async function pinnedBoth(
  deps: PinnedDeps,
  { a, b, rename }: StandingRuns,
): Promise<[Pinned, Pinned]> {
  const [ofA, ofB] = [pinnedRun(a), pinnedRun(b)];
  const changed = [...ofA.hashes].flatMap(([agentId, hash]) =>
    (ofB.hashes.get(agentId) ?? hash) === hash ? [] : [agentId],
  );
  const read = changed.slice(0, MAX_MANIFESTS);
  const pinnedB = JSON.stringify(await withManifests(deps, ofB, read));
  return [await withManifests(deps, ofA, read), JSON.parse(rename(pinnedB)) as Pinned];
}

interface PinnedRun {
  readonly tenant: string;
  readonly pinned: Pinned;
  /** Of the manifests, by agentId. */
  readonly hashes: ReadonlyMap<string, string>;
}

function pinnedRun({ row, snapshot }: StandingRun): PinnedRun {
  const { tenant, input } = row;
  const agents = Object.values(livedBy(input).agents);
  return {
    tenant,
    pinned: pinnedOf(input, snapshot.inputs as JsonObject),
    hashes: new Map(agents.map(({ agentId, manifestHash }) => [agentId, manifestHash])),
  };
}

async function withManifests(
  deps: PinnedDeps,
  { tenant, pinned, hashes }: PinnedRun,
  agentIds: readonly string[],
): Promise<Pinned> {
  const agents = { ...(pinned.agents as JsonObject) };
  for (const agentId of agentIds) {
    const resolved = await manifestOf(deps, tenant, hashes.get(agentId) ?? '');
    if (resolved === undefined) continue;
    const agent = Object.entries(agents[agentId] as JsonObject);
    agents[agentId] = {
      ...Object.fromEntries(agent.filter(([member]) => !STANDS_FOR_MANIFEST.has(member))),
      resolved,
    };
  }
  return { ...pinned, agents };
}

/** Members of a pinned agent in the place of which its manifest is told. */
const STANDS_FOR_MANIFEST: ReadonlySet<string> = new Set(['manifestHash', 'isOverlaid']);

/** Undefined: it is stored no more. */
async function manifestOf(
  { stores, redactor }: PinnedDeps,
  tenant: string,
  hash: string,
): Promise<JsonValue | undefined> {
  try {
    const text = new TextDecoder().decode(await stores.content.get(tenant, hash));
    return redactor.json(JSON.parse(text) as JsonValue);
  } catch (error) {
    const code = codeOf(error);
    if (code === 'content_missing' || code === 'subject_erased') return undefined;
    throw error;
  }
}
