// Why two runs went apart (RFC 0054): what each was fixed to when it was accepted, and what the first difference of their
// logs says. Something that came from outside (an answer, a tool's result, a model's words) explains itself; whatever
// code states follows from what the run was made of.
import { eventRow, type EventPart } from './events.ts';
import { digestOf } from './ids.ts';
import { canonicalJson, type JsonObject, type JsonValue } from './json.ts';
import { jsonDifferences, type JsonDifference } from './json-differences.ts';
import type { LogDifference } from './log-differences.ts';
import { mergedOverlay, withOverlay } from './overlay.ts';
import { WITHHELD } from './redaction.ts';
import type { ForkOf, RunInput } from './run-input.ts';
import { withDefaultsShown } from './variables.ts';

/** What a run goes by from its beginning to its end. */
export type PinnedFact = 'definition' | 'inputs' | 'options' | 'agents' | 'code';

export type DivergenceCause =
  | PinnedFact
  /** A person, or nobody in time, answered otherwise. */
  | 'answer'
  /** Something else was said in a conversation. */
  | 'message'
  | 'tool-result'
  /** Asked the same, the model said something else. */
  | 'model'
  /** A child run began or ended otherwise. */
  | 'child'
  /** Somebody paused, resumed or cancelled one of them. */
  | 'intervention'
  /** One lives on its own from an event of the other on. */
  | 'branch'
  /** One states again what the other had stated, and came to something else. */
  | 'replay'
  /** Neither the logs nor what the runs are fixed to tell it. */
  | 'unknown';

export type Pinned = Readonly<Record<PinnedFact, JsonValue>>;

/** A branch goes by its overlay, and by what its source went by, from where it leaves that. */
export function livedBy(input: RunInput): RunInput {
  return withOverlay(withOverlay(input, input.fork?.inherited), input.fork?.overlay);
}

/** What may be shown of it; `inputs` are so already. */
export function pinnedOf(input: RunInput, inputs: JsonObject): Pinned {
  const { inherited, overlay } = input.fork ?? {};
  const { configurable: asked, models: chosen = {} } = mergedOverlay(inherited, overlay);
  // Chosen anew beside another agent, by nobody's wish: where it is another one, the steps tell it.
  const models = asked === undefined ? {} : chosen;
  const { agents, configurable } = livedBy(input);
  const { limits, policy, tags, metadata, message } = input;
  const { translateVersion, revision, era } = input;
  const definition = withDefaultsShown(input.definition, () => WITHHELD);
  const fixed = { definition, inputs: { inputs, message }, agents };
  const options = { configurable, models, limits, policy, tags, metadata };
  const code = { revision, era, translateVersion };
  return JSON.parse(canonicalJson({ ...fixed, options, code })) as Pinned;
}

/** The version that its author gave it, and the digest of what it says. */
export function definitionVersion({ definition }: RunInput): { version: string; digest: string } {
  return { version: definition.version, digest: digestOf(canonicalJson(definition)) };
}

export interface PinnedDifference {
  readonly fact: PinnedFact;
  readonly differences: readonly JsonDifference[];
}

/** In the order in which they explain what follows. At most `limit` differences of each. */
export function pinnedDifferences(a: Pinned, b: Pinned, limit: number): PinnedDifference[] {
  const facts: readonly PinnedFact[] = ['inputs', 'agents', 'options', 'definition', 'code'];
  return facts.flatMap((fact) => {
    const differences = jsonDifferences(a[fact], b[fact], limit);
    return differences.length === 0 ? [] : [{ fact, differences }];
  });
}

/** What comes from outside says by itself why runs differ. */
const FROM_OUTSIDE: Partial<Readonly<Record<EventPart, DivergenceCause>>> = {
  'wait-ends': 'answer',
  vote: 'answer',
  'asked-back': 'message',
  turn: 'message',
  return: 'tool-result',
  child: 'child',
  'run-moves': 'intervention',
};

/** What a model said. */
const SAID: ReadonlySet<EventPart> = new Set([
  ...(['reasoning', 'call', 'decision', 'handoff', 'orchestration'] as const),
  ...(['unusable', 'usage', 'output-piece'] as const),
]);
/** What may make a model say something else though it was asked the same. */
const MOVES_MODEL: ReadonlySet<PinnedFact> = new Set(['agents', 'options']);

interface Divided {
  readonly first: LogDifference;
  readonly pinned: readonly PinnedDifference[];
  /** One is a fork of the other. */
  readonly fork?: Pick<ForkOf, 'mode' | 'build'>;
}

export function causeOf({ first, pinned, fork }: Divided): DivergenceCause {
  // Made of a run that had ended, and given all that came to that from outside: its code alone is another.
  if (fork?.build && fork.build.buildId !== fork.build.sourceBuildId) return 'code';
  const types = [first.a, first.b].flatMap((row) => (row ? [eventRow(row.type)] : []));
  const [{ part } = { part: 'note' as const }] = types;
  const outside = FROM_OUTSIDE[part];
  if (outside) return outside;
  if (SAID.has(part)) return pinned.find(({ fact }) => MOVES_MODEL.has(fact))?.fact ?? 'model';
  if (types.some(({ run }) => run === 'cancelled')) return 'intervention';
  return pinned[0]?.fact ?? fork?.mode ?? 'unknown';
}

/** What the one is a fork by that is one of the other. */
export function forkBetween(a: RunInput, b: RunInput): ForkOf | undefined {
  const forkOf = (one: RunInput, other: RunInput) =>
    one.fork?.sourceRunId === other.runId ? one.fork : undefined;
  return forkOf(b, a) ?? forkOf(a, b);
}

export const OVERLAY_PARTS = ['inputs', 'configurable', 'agents', 'answer'] as const;
export type OverlayPart = (typeof OVERLAY_PARTS)[number];

/** Parts of the overlay that a run was asked to go by. */
export function overlayOf({ asked = {} }: Pick<ForkOf, 'asked'>): OverlayPart[] {
  return OVERLAY_PARTS.filter((part) => Object.hasOwn(asked, part));
}

/** By which part of an overlay something may come to be. */
const OVERLAID: Partial<Readonly<Record<DivergenceCause, OverlayPart>>> = {
  ...{ inputs: 'inputs', options: 'configurable', agents: 'agents' },
  ...{ answer: 'answer', 'tool-result': 'answer', model: 'answer' },
};

/** The part of the branch's overlay that is the cause; an answer is one at its own event alone. */
export function overlaidBy(
  cause: DivergenceCause,
  { seq }: Pick<LogDifference, 'seq'>,
  fork: Pick<ForkOf, 'asked' | 'fromSeq'> | undefined,
): OverlayPart | undefined {
  const part = OVERLAID[cause];
  if (!fork || part === undefined || !overlayOf(fork).includes(part)) return undefined;
  return part === 'answer' && seq !== fork.fromSeq ? undefined : part;
}
