// The parts of the campaign that are too long for `npm test`: the same settings, other files.
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import base from '../../vitest.config.ts';

const test = { ...base.test, projects: undefined };

export default defineConfig({
  root: fileURLToPath(new URL('../..', import.meta.url)),
  css: base.css,
  test: {
    ...test,
    name: 'campaign',
    include: ['test/campaign/*.campaign.ts'],
    globalSetup: ['test/support/global-setup.ts'],
  },
});
