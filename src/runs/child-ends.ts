// What a child's log tells of its end, whoever asks (RFC 0007).
import { codeOf, HostError } from '../rules/errors.ts';
import type { Fresh } from '../log/log.ts';
import type { Head } from '../ports/log.ts';
import type { RunRef } from '../ports/runs.ts';
import type { RunsDeps } from './deps.ts';

/** Who cancelled a child, where its parent did: this, and the parent's id. It stands in logs. */
export const BY_RUN = 'run:';

/** Why a log that was not read fresh is not: what is gone for good, or else an outage. */
export function staleness({ problem }: Pick<Head, 'problem'>): HostError {
  return new HostError(problem === 'history_missing' ? problem : 'service_unavailable');
}

/** A log that is gone comes back, since it can be rebuilt: service_unavailable until then. */
export function freshLog(log: Pick<RunsDeps['log'], 'fresh'>, run: RunRef): Promise<Fresh> {
  return log.fresh(run).catch((error: unknown) => {
    throw codeOf(error) === 'run_not_found' ? new HostError('service_unavailable') : error;
  });
}
