// vitest's setup of each test file: its temporary folders go behind its own last hooks.
import { afterAll } from 'vitest';
import { removeFolders } from './folders.ts';

afterAll(removeFolders);
