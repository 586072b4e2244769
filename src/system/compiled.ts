// What a program is told of how it runs: from its sources by a loader, or compiled (src/app/compile.js).

/** The folder of the compiled program; set where it is compiled. */
declare const COMPILED_INTO: string | undefined;

/**
 * The compiled module of a thread, by the place of its source from the top of the project; undefined where the sources run
 * themselves, and the thread needs a loader as they do.
 */
export function compiledThread(source: string): string | undefined {
  if (typeof COMPILED_INTO === 'undefined') return undefined;
  return new URL(source.replace(/\.ts$/, '.mjs'), COMPILED_INTO).href;
}
