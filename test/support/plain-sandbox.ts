// Lets plain Node run workflow code: what Temporal's sandbox puts into the global scope, and takes out of it again.
import { vi } from 'vitest';
import { atEndOfFile } from './at-end.ts';

const scope = globalThis as { __TEMPORAL_ACTIVATOR__?: unknown };
scope.__TEMPORAL_ACTIVATOR__ = { rootScope: { cancellable: true, consideredCancelled: false } };
// Workflow code keeps a run's state in its modules: the next file of this worker begins with new ones.
atEndOfFile(async () => {
  delete scope.__TEMPORAL_ACTIVATOR__;
  vi.resetModules();
});
