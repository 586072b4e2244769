// Applies a mutant to a text: found once, changed, and still a program.
import { transformSync } from 'esbuild';
import type { Mutant } from './mutants.ts';

export function mutate(
  { file, before, after }: Pick<Mutant, 'file' | 'before' | 'after'>,
  original: string,
): { readonly text: string } | { readonly fault: string } {
  const found = original.split(before).length - 1;
  if (found !== 1) return { fault: `the line to change is there ${found} times, not once` };
  const text = original.replace(before, () => after);
  if (text === original) return { fault: 'nothing is changed' };
  try {
    // As tsx does.
    transformSync(text, { loader: file.endsWith('.ts') ? 'ts' : 'js', format: 'esm' });
  } catch (error) {
    return { fault: `it does not compile: ${String(error)}` };
  }
  return { text };
}
