// Every test file may be asked for, and no Temporal server is started: killers need none.
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { ALL_TESTS } from '../support/projects.ts';
import { patient } from '../support/machine.ts';
import { POLL } from '../support/waiting.ts';

export default defineConfig({
  root: fileURLToPath(new URL('../..', import.meta.url)),
  css: { postcss: {} },
  test: {
    include: [ALL_TESTS],
    setupFiles: ['test/support/each-file.ts'],
    pool: 'forks',
    testTimeout: patient(60_000),
    hookTimeout: patient(120_000),
    expect: { poll: POLL },
  },
});
