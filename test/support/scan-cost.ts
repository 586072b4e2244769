// How many signs of a text are looked at, by regular expressions and by searches: a cost that no clock measures. A match
// counts up to its end, a miss the whole rest of its text, or one sign where the expression looks at one place alone.
import { vi } from 'vitest';

type Exec = (text: string) => RegExpExecArray | null;
type Search = (sign: string, from?: number) => number;

export function scanCost(run: () => void): number {
  let cost = 0;
  const exec: Exec = Reflect.get(RegExp.prototype, 'exec');
  const indexOf: Search = Reflect.get(String.prototype, 'indexOf');
  const lastIndexOf: Search = Reflect.get(String.prototype, 'lastIndexOf');
  vi.spyOn(RegExp.prototype, 'exec').mockImplementation(function (this: RegExp, text: string) {
    const from = this.global || this.sticky ? this.lastIndex : 0;
    const match = Reflect.apply(exec, this, [text]);
    const isPlaced = this.sticky || (this.source.startsWith('^') && !this.multiline);
    const missed = isPlaced ? from + 1 : text.length;
    cost += (match ? match.index + match[0].length : missed) - from;
    return match;
  });
  vi.spyOn(String.prototype, 'indexOf').mockImplementation(function (this: string, sign, from = 0) {
    const at = Reflect.apply(indexOf, this, [sign, from]);
    cost += (at < 0 ? this.length : at) - from;
    return at;
  });
  vi.spyOn(String.prototype, 'lastIndexOf').mockImplementation(function (this: string, sign) {
    const at = Reflect.apply(lastIndexOf, this, [sign]);
    cost += this.length - Math.max(at, 0);
    return at;
  });
  try {
    run();
  } finally {
    vi.restoreAllMocks();
  }
  return cost;
}
