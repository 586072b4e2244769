// What this process is, as discovery, bundles and agents are told it.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

/** Of this product. */
export const VERSION = (
  JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    version: string;
  }
).version;

/** Of what runs workflow code. */
export const SDK_VERSION = (
  createRequire(import.meta.url)('@temporalio/worker/package.json') as { version: string }
).version;
