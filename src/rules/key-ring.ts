// Which of the operator's keys a process encrypts with (architecture §10.2). A new first key is used once every live process
// knows it, so that a rotation may go process by process and none meets what it cannot read.

/** What a process knows of the others. */
export interface KeyView {
  /** Ids of its own keys, in the order of its configuration. */
  readonly own: readonly string[];
  /** Ids of keys that something was encrypted with, by any process at any time. */
  readonly used: ReadonlySet<string>;
  /** The other live processes. */
  readonly others: readonly OthersKeys[];
  /** Every live process has had the time to say which keys it knows. */
  readonly isComplete: boolean;
}

export interface OthersKeys {
  readonly knows: ReadonlySet<string>;
  /** The one that it encrypts with; absent: it has none, or has not chosen yet. */
  readonly uses?: string | undefined;
}

/**
 * The id of the key to encrypt with: the first, unless another process does not know it and there is one that was used
 * before. A first key that is in use stays in use. Undefined: the process has none.
 */
export function keyToUse({ own, used, others, isComplete }: KeyView): string | undefined {
  const [first] = own;
  if (first === undefined) return undefined;
  const isKnown = others.every(({ knows }) => knows.has(first));
  const isInUse = others.some(({ uses }) => uses === first);
  if (isInUse || (isKnown && (isComplete || used.has(first)))) return first;
  return own.find((id) => id !== first && used.has(id)) ?? first;
}

/** Whether all live processes encrypt with that key. */
export function isShared({ others, isComplete }: KeyView, id: string | undefined): boolean {
  return isComplete && others.every(({ uses }) => uses === id);
}

/** Ids of keys that others encrypt with, and this process does not have. */
export function missingKeys({ own, others }: KeyView): readonly string[] {
  const used = others.flatMap(({ uses }) => (uses === undefined ? [] : [uses]));
  return [...new Set(used)].filter((id) => !own.includes(id)).sort();
}

interface Ring<Key> {
  readonly keys: readonly Key[];
  current(): Key | undefined;
  isShared(): boolean;
  missing(): readonly string[];
}

/** Of a process that is alone: the first key encrypts. */
export function ringOf<Key>(keys: readonly Key[]): Ring<Key> {
  return { keys, current: () => keys[0], isShared: () => true, missing: () => [] };
}
