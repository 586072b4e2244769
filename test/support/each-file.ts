// vitest's setup of each test file: its temporary folders go behind its own last hooks, and what it spent is written down.
import { afterAll, expect } from 'vitest';
import { beginSpending } from '../runner/spending.ts';
import { removeFolders } from './folders.ts';

const writeSpent = beginSpending(expect.getState().testPath);

afterAll(async () => {
  await removeFolders();
  writeSpent();
});
