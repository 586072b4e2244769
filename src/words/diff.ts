// How two runs differ, in the words of pages and terminal.
import type { Divergence, PinnedDifference, RunComparison } from '../../schemas/types.generated.ts';

/** Why they went apart. */
const CAUSE_WORDS: Readonly<Record<Divergence['cause'], string>> = {
  inputs: 'they were started with other inputs',
  agents: 'an agent was another: its manifest, with its prompts, tools and schemas',
  options: 'they were started with other options, or under other limits',
  definition: 'the workflow was another',
  code: 'they go by other releases of the host',
  answer: 'what was asked was answered otherwise',
  message: 'something else was said',
  'tool-result': 'a tool gave another result',
  model: 'the model, asked the same, said something else',
  child: 'a run that they started was another, or ended otherwise',
  intervention: 'somebody paused, resumed or cancelled one of them',
  branch: 'one is a branch of the other, and lived on its own from there',
  replay: "one is a replay of the other: its code states otherwise, or its source's record ends",
  unknown: 'neither their logs nor what they were made of tells why',
};

/** By which part of a branch's overlay that is so. */
const OVERLAY_WORDS: Readonly<Record<NonNullable<Divergence['overlay']>, string>> = {
  inputs: 'its overlay has these inputs',
  configurable: 'its overlay has this configuration',
  agents: 'its overlay has this agent',
  answer: 'its overlay has this answer',
};

/** Undefined: something differs. */
export function sameText({
  same,
  divergence,
  end,
}: Pick<RunComparison, 'same' | 'divergence' | 'end'>): string | undefined {
  if (same) return 'They say the same.';
  const isOther = divergence !== null || end.length > 0;
  return isOther ? undefined : 'As far as they were compared, they say the same.';
}

/** Undefined: all is told. */
export function partialText({
  same,
  truncated,
}: Pick<RunComparison, 'same' | 'truncated'>): string | undefined {
  if (!truncated) return undefined;
  return same
    ? 'Not all steps are shown: there are more than one answer holds.'
    : 'Not all is compared, or shown: a run is under way, or there is more than one answer holds. What is missing does not count as a difference.';
}

/** Why they went apart, whole. A later host may know more causes. */
export function causeText({ cause, overlay, build }: Divergence): string {
  const words = CAUSE_WORDS[cause] ?? cause;
  if (build) return `${words} (${buildText(build)})`;
  return overlay === undefined ? words : `${words} (${OVERLAY_WORDS[overlay] ?? overlay})`;
}

function buildText({ buildId, sourceBuildId }: NonNullable<Divergence['build']>): string {
  if (sourceBuildId === undefined) return `the fork by build ${buildId}`;
  return sourceBuildId === buildId
    ? `both by build ${buildId}`
    : `the source by build ${sourceBuildId}, the fork by build ${buildId}`;
}

/** What they were made of. */
export const PINNED_WORDS: Readonly<Record<PinnedDifference['fact'], string>> = {
  inputs: 'Inputs',
  agents: 'Agents',
  options: 'Options and limits',
  definition: 'Workflow',
  code: 'Release',
};

/** A piece of a text: of both, or of one of them. */
export interface WordPiece {
  readonly in: 'both' | 'a' | 'b';
  readonly text: string;
}

/** Words of each text that are aligned; what is behind is told as it is. */
const MAX_WORDS = 1_000;
/** Pairs of words that are compared for one page: it is made on the thread that serves everybody. */
const MAX_PAIRS = 2_000_000;

export type WordDiff = (a: string, b: string) => readonly WordPiece[];

/** For the texts of one page: where it has compared as many words as it may, the rest is told as it is. */
export function wordDiff(): WordDiff {
  let left = MAX_PAIRS;
  return (a, b) =>
    wordPieces(a, b, (pairs) => {
      left -= pairs;
      return left >= 0;
    });
}

/** Two texts, word by word, with what both have in the order of both, if so many pairs of words `may` be compared. */
export function wordPieces(
  a: string,
  b: string,
  may: (pairs: number) => boolean = () => true,
): readonly WordPiece[] {
  const [left, right] = [wordsOf(a), wordsOf(b)];
  let [start, endA, endB] = [0, left.length, right.length];
  while (start < Math.min(endA, endB) && left[start] === right[start]) start++;
  while (endA > start && endB > start && left[endA - 1] === right[endB - 1]) {
    endA--;
    endB--;
  }
  const pieces: WordPiece[] = [
    { in: 'both', text: left.slice(0, start).join('') },
    ...middle(left.slice(start, endA), right.slice(start, endB), may),
    { in: 'both', text: left.slice(endA).join('') },
  ];
  return joined(pieces);
}

/** Words with the space behind them. */
function wordsOf(text: string): string[] {
  return text.match(/\S+\s*|\s+/g) ?? [];
}

/** By the longest sequence of words that both have. */
function middle(
  a: readonly string[],
  b: readonly string[],
  may: (pairs: number) => boolean,
): WordPiece[] {
  if (a.length > MAX_WORDS || b.length > MAX_WORDS || !may(a.length * b.length))
    return [
      { in: 'a', text: a.join('') },
      { in: 'b', text: b.join('') },
    ];
  const lengths = commonLengths(a, b);
  const at = (i: number, j: number): number => lengths[i * (b.length + 1) + j] ?? 0;
  const pieces: WordPiece[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    const [one, other] = [a[i], b[j]];
    if (one !== undefined && one === other) {
      pieces.push({ in: 'both', text: one });
      i++;
      j++;
    } else if (one !== undefined && (other === undefined || at(i + 1, j) >= at(i, j + 1))) {
      pieces.push({ in: 'a', text: one });
      i++;
    } else {
      pieces.push({ in: 'b', text: other ?? '' });
      j++;
    }
  }
  return pieces;
}

/** How many words the rests from i and j on have in common, by i * (words of b + 1) + j. */
function commonLengths(a: readonly string[], b: readonly string[]): Uint16Array {
  const width = b.length + 1;
  const lengths = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      lengths[i * width + j] =
        a[i] === b[j]
          ? (lengths[(i + 1) * width + j + 1] ?? 0) + 1
          : Math.max(lengths[(i + 1) * width + j] ?? 0, lengths[i * width + j + 1] ?? 0);
  return lengths;
}

function joined(pieces: readonly WordPiece[]): WordPiece[] {
  const all: { in: WordPiece['in']; text: string }[] = [];
  for (const { in: side, text } of pieces) {
    const last = all.at(-1);
    if (text === '') continue;
    if (last?.in === side) last.text += text;
    else all.push({ in: side, text });
  }
  return all;
}
