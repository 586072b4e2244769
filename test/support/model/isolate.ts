// The sandbox of workflow code as tests open it: with the activities of the model, and with the suite's own cache.
import { join } from 'node:path';
import {
  openIsolate as openProductIsolate,
  type Isolate,
} from '../../../src/adapters/temporal/isolate.ts';
import { CACHE_DIR } from '../temporal.ts';

export type { Command, Instance, Isolate, Job } from '../../../src/adapters/temporal/isolate.ts';

export function openIsolate(activityNames: readonly string[]): Promise<Isolate> {
  return openProductIsolate({ cacheDir: join(CACHE_DIR, 'bundles'), activityNames });
}
