// What a fork's page says of its source (replay.md): of which run it is a fork, from where, by what it goes, and where its
// code stated something else.
import type { RunEventDoc } from '../../schemas/types.generated.ts';
import type { ForkLineage } from './timeline.js';
import { escapeHtml, renderValue } from './timeline-html.js';

export interface ForkNote extends ForkLineage {
  readonly sourceRunId: string;
  /** What it goes by that its source did not, as it was asked for. */
  readonly overlay?: Readonly<Record<string, unknown>>;
  /** That made it. */
  readonly cohortId?: string;
  /** Who sees this run alone is shown no way to its source, and of what it goes by the names. */
  readonly isAlone: boolean;
}

const MODE_WORDS: Readonly<Record<ForkLineage['mode'], string>> = {
  replay: 'A replay of',
  branch: 'A branch of',
};

/** Members of an overlay. A later host may know more. */
const OVERLAY_WORDS: Readonly<Record<string, string>> = {
  inputs: 'other inputs',
  configurable: 'another configuration',
  agents: 'other agents',
  answer: 'another answer',
  tools: 'what its tools are to give',
  onDivergence: 'what follows where its code states otherwise',
  answers: 'what people are to have answered',
};

/** What the fork stated where it went apart, beside what its source had. */
const KIND_WORDS: Readonly<Record<string, string>> = {
  output: 'said something else of the same fact',
  missing: 'did not state what its source had stated',
  extra: 'stated what its source had not',
  'type-mismatch': 'stated another kind of event',
};

/** `runId` is the fork's, `events` its log as far as the page has it. */
export function renderForkNote(
  fork: ForkNote,
  runId: string,
  events: readonly RunEventDoc[],
): string {
  const { sourceRunId, mode, fromSeq, isAlone } = fork;
  const id = `<code>${escapeHtml(sourceRunId)}</code>`;
  const source = isAlone ? id : `<a href="${runUrl(sourceRunId)}">${id}</a>`;
  const compare = isAlone
    ? ''
    : ` · <a href="${runUrl(runId)}/diff?against=${escapeHtml(encodeURIComponent(sourceRunId))}">Compare with its source</a>`;
  return `<p class="facts">${MODE_WORDS[mode]} ${source} from event ${fromSeq}${compare}${cohortHtml(fork)}</p>${overlayHtml(fork)}${divergedHtml(fork, runId, events)}`;
}

function cohortHtml({ cohortId, isAlone }: ForkNote): string {
  if (cohortId === undefined || isAlone) return '';
  return ` · <a href="/pages/cohorts/${escapeHtml(encodeURIComponent(cohortId))}">Its cohort</a>`;
}

function runUrl(runId: string): string {
  return escapeHtml(`/pages/runs/${encodeURIComponent(runId)}`);
}

function overlayHtml({ overlay = {}, isAlone }: ForkNote): string {
  const members = Object.keys(overlay);
  if (members.length === 0) return '';
  const words = members.map((name) => OVERLAY_WORDS[name] ?? name).join(', ');
  const text = `It goes by ${escapeHtml(words)}.`;
  if (isAlone) return `<p class="facts">${text}</p>`;
  return `<details class="overlay"><summary>${text}</summary>${renderValue(overlay)}</details>`;
}

function payloadOf(payload: unknown): Readonly<Record<string, unknown>> {
  const { atSequence, ...rest } = (payload ?? {}) as Readonly<Record<string, unknown>>;
  return typeof atSequence === 'number' ? { atSequence, ...rest } : {};
}

/** In words, with the way to what each side has. */
function divergedHtml(
  { sourceRunId, isAlone }: ForkNote,
  runId: string,
  events: readonly RunEventDoc[],
): string {
  // The one event that names its source, and the place in the source's log.
  const diverged = events.find(({ payload }) => payloadOf(payload).sourceRunId === sourceRunId);
  if (!diverged) return '';
  const payload = payloadOf(diverged.payload);
  const { atSequence, divergenceKind, divergencePoint, originalEventId, replayEventId } = payload;
  const kind = KIND_WORDS[String(divergenceKind)] ?? 'stated something else';
  const point =
    divergencePoint === undefined ? '' : ` (<code>${escapeHtml(divergencePoint)}</code>)`;
  // What it would have stated may be in no log: then the event that says so stands for it.
  const own = events.find(({ eventId }) => eventId === replayEventId) ?? diverged;
  const sides = [
    isAlone || typeof originalEventId !== 'string'
      ? ''
      : eventLink(sourceRunId, originalEventId, 'What its source stated'),
    eventLink(runId, own.eventId, 'What this run stated'),
  ].filter((link) => link !== '');
  return `<p class="notice error">It went apart from its source at event ${Number(atSequence)}: the code of today ${kind}${point}. ${sides.join(' · ')}</p>`;
}

function eventLink(runId: string, eventId: string, text: string): string {
  const url = `${runUrl(runId)}/events/${escapeHtml(encodeURIComponent(eventId))}/causes`;
  return `<a href="${url}">${text}</a>`;
}
