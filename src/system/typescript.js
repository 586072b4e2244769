// Runs TypeScript in Node: `node --import openwop-temporal/typescript agent.ts`. By tsx without its cache: that lies in the
// temporary folder under a name that can be guessed, and what another user of the machine puts there would run as ours.
import process from 'node:process';

process.env.TSX_DISABLE_CACHE = '1';
// @ts-expect-error It has no types.
await import('tsx');
