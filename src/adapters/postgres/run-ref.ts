// The one place where a run gets its name (ports/runs.ts): rows come with it.
import type { RunRef } from '../../ports/runs.ts';

export function refOf(tenant: string, runId: string): RunRef {
  return { tenant, runId } as RunRef;
}
