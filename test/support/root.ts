// Where the repository is: a file of its own, for whoever must not load the compiler that source-tree.ts reads with.
import { fileURLToPath } from 'node:url';

/** Ends with a slash. */
export const ROOT = fileURLToPath(new URL('../../', import.meta.url));
