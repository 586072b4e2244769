// vitest's setup of each test file: what it left to be closed goes behind its own last hooks, and what it spent is
// written down.
import { setFlagsFromString } from 'node:v8';
import { afterAll, expect } from 'vitest';
import { beginSpending } from '../runner/spending.ts';
import { endFile } from './at-end.ts';

// PGlite's WebAssembly is not optimised: what that takes is more than the few statements of a test file give back. A third of
// the CPU of files with a database of their own.
setFlagsFromString('--liftoff-only');

const writeSpent = beginSpending(expect.getState().testPath);

afterAll(async () => {
  await endFile();
  writeSpent();
});
