// A worker as one build of several (docs/upgrades.md): what it tells Temporal's server, and when it makes itself the one
// that takes new runs. A server that knows no builds is said so, once, and served as before.
import type { WorkerDeploymentOptions } from '@temporalio/worker';
import type { Logger } from '../../ports/logger.ts';
import { codeOf } from '../../rules/errors.ts';
import type { RunVersioning } from '../../rules/builds.ts';
import { BackOff, rest } from '../../system/time.ts';
import {
  DEPLOYMENT,
  describeDeployment,
  knowsBuilds,
  setCurrent,
  setRamping,
  type DeploymentInfo,
  type DeploymentSource,
  type FoundDeployment,
} from './deployment-calls.ts';

const FIRST_TRY_MS = 50;
const MOST_BETWEEN_TRIES_MS = 2_000;

export interface Versioning {
  readonly buildId: string;
  readonly runs: RunVersioning;
}

/**
 * `where-none-is`: the first build of a namespace takes new runs by itself, every later one waits until somebody promotes
 * it. `always`: nobody else could serve them (`npm start` with a Temporal of its own).
 */
export type Promotion = 'where-none-is' | 'always';

export interface BuildSource extends DeploymentSource {
  readonly versioning: Versioning | undefined;
  readonly promotion: Promotion;
  readonly logger: Logger;
}

/** For Worker.create; undefined where there is no build to tell, or nobody to tell it. Throws service_unavailable. */
export async function deploymentOptions(
  source: BuildSource,
): Promise<WorkerDeploymentOptions | undefined> {
  const { versioning, logger } = source;
  if (!versioning) return undefined;
  if (!(await knowsBuilds(source))) {
    const buildId = versioning.buildId;
    logger.warn("this Temporal server knows no builds of workers: going on without one's id", {
      buildId,
    });
    return undefined;
  }
  return {
    version: { deploymentName: DEPLOYMENT, buildId: versioning.buildId },
    useWorkerVersioning: true,
    defaultVersioningBehavior: versioning.runs === 'pinned' ? 'PINNED' : 'AUTO_UPGRADE',
  };
}

/** Goes on until the server has it, or until it is told to stop: a server that is away comes back. */
export async function keepPromoted(
  source: BuildSource & { readonly signal: AbortSignal },
): Promise<void> {
  const { signal } = source;
  const backOff = new BackOff(FIRST_TRY_MS, MOST_BETWEEN_TRIES_MS);
  let told = false;
  while (!signal.aborted) {
    try {
      const found = await describeDeployment(source);
      if (await isSettled(source, found)) return;
    } catch (error) {
      const code = codeOf(error);
      if (code === undefined) throw error;
      // Somebody else changed it meanwhile, the worker has not been seen yet, or Temporal is away: looked at again.
      if (!told) source.logger.info('the build waits to take new runs', { code });
      told = true;
    }
    await rest(backOff.next(), signal);
  }
}

/** True when there is nothing more to do. Throws build_conflict, service_unavailable. */
async function isSettled(source: BuildSource, found: FoundDeployment): Promise<boolean> {
  const { versioning, promotion, logger } = source;
  if (found === 'unsupported') return true;
  if (found === 'none') return versioning === undefined;
  const current = found.info.routingConfig?.currentDeploymentVersion?.buildId || undefined;
  if (current === versioning?.buildId && (promotion !== 'always' || !isRamping(found.info)))
    return true;
  if (versioning && !isKnown(found.info, versioning.buildId)) return false;
  if (promotion !== 'always' && current !== undefined) {
    logger.warn('another build takes new runs: this one waits until it is promoted', {
      currentBuildId: current,
      buildId: versioning?.buildId,
    });
    return true;
  }
  if (promotion === 'always') await endRamp(source, found.info);
  if (current !== versioning?.buildId)
    await setCurrent(
      source,
      versioning?.buildId ?? '',
      promotion === 'always' ? undefined : found.conflictToken,
    );
  logger.info('this build takes new runs', { buildId: versioning?.buildId });
  return true;
}

function isRamping({ routingConfig }: DeploymentInfo): boolean {
  return (routingConfig?.rampingVersionPercentage ?? 0) > 0;
}

async function endRamp(source: BuildSource, info: DeploymentInfo): Promise<void> {
  if (isRamping(info)) await setRamping(source, '', 0);
}

/** The worker asked for work at least once since it was started. */
function isKnown({ versionSummaries }: DeploymentInfo, buildId: string): boolean {
  return (versionSummaries ?? []).some((one) => one.deploymentVersion?.buildId === buildId);
}
