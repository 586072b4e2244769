// Where two JSON values differ, by JSON pointers (RFC 6901): members of objects by name, items of lists by place.
import { isJsonObject, type JsonValue, pointerSegment } from './json.ts';

export interface JsonDifference {
  /** Of the value; '' is the whole. */
  readonly pointer: string;
  /** Absent: only `b` has it. */
  readonly a?: JsonValue;
  /** Absent: only `a` has it. */
  readonly b?: JsonValue;
}

/** At most `limit`, in the order of a's members, then of b's. Of what only one side has, the whole is one difference. */
export function jsonDifferences(
  a: JsonValue | undefined,
  b: JsonValue | undefined,
  limit: number,
): JsonDifference[] {
  const found: JsonDifference[] = [];
  const compare = (pointer: string, [one, other]: Pair): void => {
    if (found.length >= limit || one === other) return;
    const pairs = pairsOf(one, other);
    if (pairs)
      for (const [name, pair] of pairs) compare(`${pointer}/${pointerSegment(name)}`, pair);
    else
      found.push({
        pointer,
        ...(one === undefined ? {} : { a: one }),
        ...(other === undefined ? {} : { b: other }),
      });
  };
  compare('', [a, b]);
  return found;
}

type Pair = readonly [JsonValue | undefined, JsonValue | undefined];

/** Undefined: they have no members in common by their kind, so the difference is theirs. */
function pairsOf(one: Pair[0], other: Pair[1]): [string, Pair][] | undefined {
  const areLists = Array.isArray(one) && Array.isArray(other);
  if (!areLists && !(isJsonObject(one) && isJsonObject(other))) return undefined;
  const [left, right] = [new Map(Object.entries(one)), new Map(Object.entries(other))];
  const names = new Set([...left.keys(), ...right.keys()]);
  return [...names].map((name) => [name, [left.get(name), right.get(name)]]);
}
