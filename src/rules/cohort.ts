// A cohort (architecture §6): past runs that are all forked by one change, and what became of each. What its workflow is
// started with, what a member came to, and the words of both; nothing here asks anybody.
import type { ForkBuild } from './builds.ts';
import type { DivergenceCause, OverlayPart } from './divergence.ts';
import type { JsonObject, JsonValue } from './json.ts';
import { jsonDifferences, type JsonDifference } from './json-differences.ts';
import type { Subject } from './subject.ts';

/** Temporal workflow type; its workflow id is the cohort's. */
export const COHORT_WORKFLOW = 'cohortWorkflow';

export const MAX_COHORT_MEMBERS = 1_000;
export const DEFAULT_COHORT_MEMBERS = 50;
/** Open cohorts of one tenant. */
export const MAX_OPEN_COHORTS = 8;
/** Members of one cohort that are under way at once; the schema of the request says how many there may be. */
export const DEFAULT_COHORT_PARALLEL = 4;
/** Longest time in ms that one fork may take; its bounds stand in the schema, too. */
export const DEFAULT_MEMBER_TIMEOUT_MS = 600_000;

/** What the cohort's workflow is started with. */
export interface CohortInput {
  readonly tenant: string;
  readonly cohortId: string;
  readonly members: number;
  readonly parallel: number;
  readonly memberTimeoutMs: number;
  /** First member that was not begun in an earlier segment. */
  readonly next?: number;
  /** Tests only: a segment ends behind so many. */
  readonly membersPerSegment?: number;
}

/** Ends of runs that may be picked. */
export const ENDED_STATUSES = ['completed', 'failed', 'cancelled'] as const;

/** Which runs are picked: ended ones that nobody else started, newest first. */
export interface CohortSelection {
  readonly workflowId?: string;
  readonly status?: (typeof ENDED_STATUSES)[number];
  readonly tag?: string;
  readonly sessionId?: string;
  /** ms epoch, of when they were accepted; `untilMs` itself is not among them. */
  readonly fromMs?: number;
  readonly untilMs?: number;
  readonly last: number;
}

/** What all members go by that their sources did not. Empty: each is replayed by the code of this build. */
export interface CohortChange {
  /** Of the worker, and nothing beside it: each is replayed by its code, whatever build takes new runs. */
  readonly build?: string;
  /** By agentId, or by a name that stands for one in each member (src/runs/cohort-change.ts). */
  readonly agents?: Readonly<
    Record<string, { readonly systemPrompt?: string; readonly packVersion?: string }>
  >;
  readonly configurable?: JsonObject;
}

/** Runs that may be like what is asked for, and that cannot be read: they are no members, and nothing is known of them. */
export interface LeftOutRuns {
  readonly runs: number;
  /** The newest of them. */
  readonly runIds: readonly string[];
}

export interface CohortRequest {
  readonly select: CohortSelection;
  readonly change: CohortChange;
  readonly parallel: number;
  readonly memberTimeoutMs: number;
  /** Who asked for it, and what they may: each fork is made by nobody who may more. */
  readonly subject: Subject;
  readonly scopes: readonly string[];
  /** What was found when the runs were picked. Absent: none. */
  readonly leftOut?: LeftOutRuns;
}

export function isReplay({ agents = {}, configurable = {} }: CohortChange): boolean {
  return Object.keys(agents).length === 0 && Object.keys(configurable).length === 0;
}

/** From the best to what tells least. */
export const MEMBER_OUTCOMES = [
  /** States and does the same. */
  'same',
  /** Comes to the same end on another way: other words, other calls. */
  'diverged',
  /** Another status, output, variable or decision. */
  'outcome-changed',
  /** Asks people something that nobody answered in the source. */
  'asks',
  /** The fork failed where its source did not, or could not be made. */
  'failed',
  /** The source's record lacks what the fork needs, or is not there any more. */
  'source-missing',
  /** Its log, or that of its source, is too long to be compared, or the host cannot fork it. */
  'not-compared',
  'not-finished',
] as const;
export type MemberOutcome = (typeof MEMBER_OUTCOMES)[number];

/** Why a cohort ended a fork of its. */
export type MemberStop = 'asks' | 'time-limit' | 'cancelled';

export interface AskedQuestion {
  readonly nodeId: string;
  readonly kind: string;
  /** The beginning of what is asked, as JSON text. */
  readonly data: string;
}

export interface SideReport {
  readonly status: string;
  readonly durationMs?: number;
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  readonly usd?: number;
}

/** Values are the beginnings of their JSON texts. */
export interface OutcomeChange {
  /** Absent: of the run as a whole. */
  readonly nodeId?: string;
  /** Of the node; with it. */
  readonly visit?: number;
  /** JSON pointer. */
  readonly pointer: string;
  readonly before?: string;
  readonly after?: string;
}

export interface MemberReport {
  /** Of the fork that failed, or why there is none, or why it was ended. */
  readonly error?: { readonly code: string; readonly message: string };
  readonly before?: SideReport;
  readonly after?: SideReport;
  readonly divergence?: {
    readonly seq: number;
    readonly cause: DivergenceCause;
    readonly overlay?: OverlayPart;
    readonly build?: ForkBuild;
    readonly nodeId?: string;
    readonly nodeName?: string;
    /** Of the event. */
    readonly type?: string;
  };
  readonly changes?: readonly OutcomeChange[];
  readonly asks?: AskedQuestion;
}

/** One visit of a node, as it is compared. */
export interface DigestedStep {
  readonly nodeId: string;
  readonly visit: number;
  readonly sequence: number;
  readonly status: string;
  /** Of its decisions, but for how sure somebody was. */
  readonly decided: string;
  /** Of long ones the beginnings. Absent: those before took the room. */
  readonly decisions?: readonly JsonValue[];
  /** Of all that it did and decided, but for what a model was asked with. */
  readonly did: string;
  /** Of its error, and of those of its calls. */
  readonly errorCodes: readonly string[];
}

/** One visit of a node in both runs. */
export interface StepSides {
  /** Absent: that run did not come to it. */
  readonly a?: DigestedStep;
  readonly b?: DigestedStep;
}

/** Both runs held against each other whole. */
export interface ComparedMember {
  readonly end: readonly JsonDifference[];
  /** In the order in which they were come to. */
  readonly steps: readonly StepSides[];
}

/** Changes that a report tells. */
const MAX_CHANGES = 20;
/** Longest value that a report shows, in characters of JSON. */
const SHOWN_CHARACTERS = 500;

/** What came out otherwise, at most MAX_CHANGES: of the run's end and of what its agents decided. None: nothing did. */
export function outcomeChanges({ end, steps }: ComparedMember): OutcomeChange[] {
  const changes = end.slice(0, MAX_CHANGES).map((difference) => shownChange(difference));
  for (const sides of steps) {
    if (changes.length >= MAX_CHANGES) break;
    changes.push(...stepChanges(sides));
  }
  return changes.slice(0, MAX_CHANGES);
}

/** Whether anything was said, called, done or decided otherwise. */
export function didOtherwise({ steps }: Pick<ComparedMember, 'steps'>): boolean {
  return steps.some(({ a, b }) => a?.did !== b?.did);
}

/** How it ended, and what was decided. */
function stepChanges({ a, b }: StepSides): OutcomeChange[] {
  const { nodeId = '', visit = 1 } = a ?? b ?? {};
  if (a?.status === b?.status && a?.decided === b?.decided) return [];
  // Of a step that only one run came to, its status says it.
  const isTold = a?.decisions !== undefined && b?.decisions !== undefined;
  const cameTo = (step: DigestedStep | undefined): JsonObject => ({
    ...(step ? { status: step.status } : {}),
    ...(a && b && step ? { decisions: decisionsOf(step, isTold) } : {}),
  });
  return jsonDifferences(cameTo(a), cameTo(b), MAX_CHANGES).map((difference) => ({
    ...{ nodeId, visit, ...shownChange(difference) },
  }));
}

/** Where one side has too many to keep, the digests stand for both. */
function decisionsOf({ decisions = [], decided }: DigestedStep, isTold: boolean): JsonValue {
  return isTold ? [...decisions] : `SHA-256 ${decided}`;
}

function shownChange({ pointer, a, b }: JsonDifference): OutcomeChange {
  return {
    pointer,
    ...(a === undefined ? {} : { before: shownText(a) }),
    ...(b === undefined ? {} : { after: shownText(b) }),
  };
}

export function shownText(value: JsonValue): string {
  const text = JSON.stringify(value);
  return text.length <= SHOWN_CHARACTERS ? text : `${text.slice(0, SHOWN_CHARACTERS - 1)}…`;
}

/** A call, or a whole step, that failed since the record has nothing of it. */
export function lacksRecord({ steps }: Pick<ComparedMember, 'steps'>): boolean {
  return steps.some(({ b }) => b?.errorCodes.includes(SOURCE_MISSING));
}

export const SOURCE_MISSING = 'replay_source_missing';

export interface EndedFork {
  readonly status: string;
  readonly sourceStatus: string;
  readonly errorCode?: string;
  /** It did something else than its source; a replay: its log says something else. */
  readonly isOther: boolean;
  readonly changes: readonly OutcomeChange[];
  readonly lacksRecord: boolean;
  /** Both logs were compared to their ends. */
  readonly isWhole: boolean;
}

export function outcomeOf(fork: EndedFork): MemberOutcome {
  const { status, sourceStatus, errorCode, changes, lacksRecord: lacks } = fork;
  if (errorCode === SOURCE_MISSING || lacks) return 'source-missing';
  if (errorCode === 'replay_diverged') return 'diverged';
  if (status === 'failed' && sourceStatus !== 'failed') return 'failed';
  // Nor is it known then whether the record lacked something.
  if (!fork.isWhole) return 'not-compared';
  if (changes.length > 0) return 'outcome-changed';
  return fork.isOther ? 'diverged' : 'same';
}
