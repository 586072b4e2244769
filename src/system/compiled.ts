// What a program knows of how it runs: from its sources by a loader, or compiled (src/app/compile.js).

/** The folder of the compiled program; set where it is compiled. */
declare const COMPILED_INTO: string | undefined;

/** Address of the loader with which Node runs sources: for `--import`. */
export const TYPESCRIPT = new URL('./typescript.js', import.meta.url).href;

/**
 * Address of the compiled module with which a thread or a process begins, by the place of its source from the top of the
 * project; undefined where the sources run themselves, and it needs a loader as they do.
 */
export function compiledEntry(source: string): string | undefined {
  if (typeof COMPILED_INTO === 'undefined') return undefined;
  return new URL(source.replace(/\.ts$/, '.mjs'), COMPILED_INTO).href;
}
