// vitest's setup of each test file: what it left to be closed is closed after its own last hooks, and what it spent is
// written down.
import { AsyncLocalStorage } from 'node:async_hooks';
import { setFlagsFromString } from 'node:v8';
import { afterAll, expect } from 'vitest';
import { beginSpending } from '../runner/spending.ts';
import { endFile } from './at-end.ts';

// PGlite's WebAssembly is not optimised: what that takes is more than the few statements of a test file give back. A third of
// the CPU of files with a database of their own.
setFlagsFromString('--liftoff-only');

// Temporal's workflow package looks for it there as it is loaded, which is once in a process: whichever file is the first.
Object.assign(globalThis, { AsyncLocalStorage });

const writeSpent = beginSpending(expect.getState().testPath);

afterAll(async () => {
  await endFile();
  writeSpent();
});
