// Which of the operator's keys a process encrypts with (architecture §10.2). A new first key is used once every live process
// knows it, so that a rotation may go process by process. Here a key goes by a name that no other key has, also where two
// have the same id.

/** What a process knows of the others. */
export interface KeyView {
  /** Its own keys, in the order of its configuration. */
  readonly own: readonly string[];
  /** Keys that something was encrypted with, by any process at any time. */
  readonly used: ReadonlySet<string>;
  /** The other live processes. */
  readonly others: readonly OthersKeys[];
  /** Every live process has had the time to announce its keys. */
  readonly isComplete: boolean;
}

export interface OthersKeys {
  readonly knows: ReadonlySet<string>;
  /** The key that it encrypts with; absent: it has none, or has not chosen yet. */
  readonly uses?: string | undefined;
}

/**
 * The key to encrypt with: the first one, when every other process that encrypts knows it, and it was used before or the view is
 * complete. Else one that was used before and that they all know. Where there is none such, the first if another process uses
 * it, else one that was used before, else the first. Undefined: the process has no key.
 */
export function keyToUse({ own, used, others, isComplete }: KeyView): string | undefined {
  const [first, ...later] = own;
  if (first === undefined) return undefined;
  // One that uses none yet is refused where it lacks what the others use, and one without keys can read nothing anyway.
  const isKnown = (key: string) =>
    others.every(({ knows, uses }) => uses === undefined || knows.has(key));
  const isInUse = (key: string) => others.some(({ uses }) => uses === key);
  if (isKnown(first) && (isComplete || used.has(first) || isInUse(first))) return first;
  const before = later.filter((key) => used.has(key));
  const known = before.find(isKnown);
  if (known !== undefined) return known;
  return isInUse(first) ? first : (before.find(isInUse) ?? before[0] ?? first);
}

/** Whether all live processes encrypt with that key. */
export function isShared({ others, isComplete }: KeyView, key: string | undefined): boolean {
  return isComplete && others.every(({ uses }) => uses === key);
}

/** Keys that others encrypt with, and this process does not have. */
export function missingKeys({ own, others }: KeyView): readonly string[] {
  const used = others.flatMap(({ uses }) => (uses === undefined ? [] : [uses]));
  return [...new Set(used)].filter((key) => !own.includes(key)).sort();
}

/** Of a process that is alone: the first key encrypts. */
export function ringOf<Key>(keys: readonly Key[]) {
  return {
    keys,
    current: () => keys[0],
    announced: async () => undefined,
    isShared: () => true,
    announcedAs: () => undefined,
    missing: () => [],
  };
}
