// Runs TypeScript in Node: `node --import openwop-temporal/typescript agent.ts`. By tsx, which runs what another user of the
// machine puts in two places: its cache, in the temporary folder under a name that can be guessed, and a `tsconfig.json` in any
// folder above the current one, which may send an import elsewhere. The cache is off, and the settings are those of this project.
import process from 'node:process';
import { fileURLToPath, URL } from 'node:url';

process.env.TSX_DISABLE_CACHE = '1';
process.env.TSX_TSCONFIG_PATH ??= fileURLToPath(new URL('../../tsconfig.json', import.meta.url));
// @ts-expect-error It has no types.
await import('tsx');
