// What two logs have at the same places, side by side.

export interface Pair<Item> {
  /** Absent: the other alone has it. */
  readonly one?: Item;
  readonly other?: Item;
}

/** By the sequences of `a`; what only `b` has stands where b has it. */
export function pairsByPlace<Item extends { readonly sequence: number }>(
  a: ReadonlyMap<string, Item>,
  b: ReadonlyMap<string, Item>,
): Pair<Item>[] {
  const pairs = [...new Set([...a.keys(), ...b.keys()])].map((place) => {
    const [one, other] = [a.get(place), b.get(place)];
    const at = (one ?? other)?.sequence ?? 0;
    return { ...(one ? { one } : {}), ...(other ? { other } : {}), at };
  });
  return pairs.sort((left, right) => left.at - right.at);
}
