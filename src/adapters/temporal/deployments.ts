// The port of the worker's builds over Temporal's worker versioning (docs/upgrades.md): what each build is and holds, which
// takes new runs, and where runs are moved. Each answer is the server's own, asked anew.
import { HostError, invalid } from '../../rules/errors.ts';
import { isBuildId, UNVERSIONED, type BuildState } from '../../rules/builds.ts';
import type {
  Build,
  BuildRun,
  Deployment,
  Deployments,
  MovedRuns,
  MoveTarget,
} from '../../ports/deployments.ts';
import {
  ANY,
  askers,
  countRuns,
  describeDeployment,
  heldBy,
  onBuild,
  openRuns,
  overrideVersion,
  read,
  setCurrent,
  setRamping,
  type Asker,
  type DeploymentInfo,
  type DeploymentSource,
} from './deployment-calls.ts';
import { lastBuildOf, runOnBuild } from './failing-runs.ts';
import { GRPC, grpcStatus, toHostError } from './rpc.ts';
import { toMs } from './timestamps.ts';

/** A worker asks again at least once a minute while it lives: the server answers each poll by then. */
const WORKER_SEEN_MS = 90_000;
/** Runs of one answer: each is a call to the server. */
const PAGE_RUNS = 100;
/** Calls at once. */
const AT_ONCE = 10;

export interface DeploymentsOptions extends DeploymentSource {
  /** Tests only. Default WORKER_SEEN_MS. */
  readonly workerSeenMs?: number;
}

const STATES: Readonly<Record<number, BuildState>> = {
  1: 'inactive',
  2: 'current',
  3: 'ramping',
  4: 'draining',
  5: 'drained',
};

export function createDeployments(options: DeploymentsOptions): Deployments {
  return {
    read: () => readDeployment(options),
    promote: (buildId, percent) => promote(options, buildId, percent),
    lastBuildOf: (runId) => lastBuildOf(options, runId),
    runsOf: (buildId) => runsOf(options, buildId),
    async moveRuns(runIds, target) {
      await requireTarget(options, target);
      return moveAll(options, runIds, target);
    },
    moveFrom: (buildId, target, cursor) => moveFrom(options, { buildId, target, cursor }),
  };
}

async function readDeployment(options: DeploymentsOptions): Promise<Deployment | undefined> {
  const found = await describeDeployment(options);
  if (typeof found === 'string') return undefined;
  const asked = await askers(options);
  const builds = await inBatches(summariesOf(found.info), (summary) =>
    buildOf(options, { info: found.info, summary, asked }),
  );
  const current = found.info.routingConfig?.currentDeploymentVersion?.buildId || undefined;
  const unheld = await runsWithoutBuild(options, { builds, asked, current });
  const lost = builds.filter((one) => !one.hasWorker);
  return {
    builds,
    ...(current === undefined ? {} : { currentBuildId: current }),
    runsWithoutWorker: lost.reduce((sum, one) => sum + one.heldRuns, unheld),
  };
}

type Summary = NonNullable<DeploymentInfo['versionSummaries']>[number];

/** Newest first. */
function summariesOf({ versionSummaries }: DeploymentInfo): Summary[] {
  const since = (one: Summary) => toMs(one.createTime) ?? 0;
  return [...(versionSummaries ?? [])].sort((a, b) => since(b) - since(a));
}

interface Known {
  readonly info: DeploymentInfo;
  readonly summary: Summary;
  readonly asked: readonly Asker[];
}

async function buildOf(
  options: DeploymentsOptions,
  { info, summary, asked }: Known,
): Promise<Build> {
  const buildId = summary.deploymentVersion?.buildId ?? '';
  const state = STATES[summary.status ?? 1] ?? 'inactive';
  const [openRuns, heldRuns] = await Promise.all([
    countRuns(options, onBuild(buildId)),
    countRuns(options, heldBy(buildId)),
  ]);
  const sinceMs = toMs(sinceOf(state, summary));
  return {
    ...{ buildId, state, openRuns, heldRuns },
    share: shareOf(info, buildId),
    hasWorker: wasSeen(options, asked, buildId),
    ...(sinceMs === undefined ? {} : { sinceMs }),
  };
}

function sinceOf(state: BuildState, summary: Summary) {
  switch (state) {
    case 'current':
      return summary.currentSinceTime;
    case 'ramping':
      return summary.rampingSinceTime;
    case 'draining':
    case 'drained':
      return summary.drainageInfo?.lastChangedTime;
    case 'inactive':
      return summary.createTime;
  }
}

function shareOf({ routingConfig }: DeploymentInfo, buildId: string): number {
  const { currentDeploymentVersion, rampingDeploymentVersion, rampingVersionPercentage } =
    routingConfig ?? {};
  const ramped = rampingVersionPercentage ?? 0;
  if (rampingDeploymentVersion?.buildId === buildId) return ramped;
  return currentDeploymentVersion?.buildId === buildId ? 100 - ramped : 0;
}

function wasSeen(
  { workerSeenMs = WORKER_SEEN_MS }: DeploymentsOptions,
  asked: readonly Asker[],
  buildId: string | undefined,
): boolean {
  const since = Date.now() - workerSeenMs;
  return asked.some((one) => one.buildId === buildId && one.lastAskedMs > since);
}

interface Routed {
  readonly builds: readonly Build[];
  readonly asked: readonly Asker[];
  readonly current: string | undefined;
}

/** Of what follows the current build, and the new: nobody takes them where that one has no worker. */
async function runsWithoutBuild(
  options: DeploymentsOptions,
  { builds, asked, current }: Routed,
): Promise<number> {
  if (wasSeen(options, asked, current)) return 0;
  const all = await countRuns(options, ANY);
  const held = builds.reduce((sum, one) => sum + one.heldRuns, 0);
  return Math.max(0, all - held);
}

async function promote(
  options: DeploymentsOptions,
  buildId: string,
  percent: number,
): Promise<void> {
  const deployment = await requireDeployment(options);
  if (buildId !== UNVERSIONED) requireWorker(buildOrFault(deployment, buildId));
  const asked = buildId === UNVERSIONED ? '' : buildId;
  const { currentBuildId = UNVERSIONED } = deployment;
  const ramp = rampOf(deployment);
  // For the server a change that changes nothing is one, too: it may say nothing of builds for seconds after it.
  if (percent < 100) {
    if (ramp?.buildId !== buildId || ramp.share !== percent)
      await setRamping(options, asked, percent);
    return;
  }
  if (ramp && ramp.buildId !== buildId) await setRamping(options, '', 0);
  if (currentBuildId !== buildId) await setCurrent(options, asked);
}

/** Which build has a part of new runs beside the current one. */
function rampOf({
  builds,
  currentBuildId,
}: Deployment): Pick<Build, 'buildId' | 'share'> | undefined {
  const ramping = builds.find((one) => one.buildId !== currentBuildId && one.share > 0);
  if (ramping) return ramping;
  const current = builds.find((one) => one.buildId === currentBuildId);
  const share = 100 - (current?.share ?? 100);
  return share > 0 ? { buildId: UNVERSIONED, share } : undefined;
}

async function requireDeployment(options: DeploymentsOptions): Promise<Deployment> {
  const deployment = await readDeployment(options);
  if (!deployment)
    throw new HostError('build_conflict', { reason: 'No worker here names a build.' });
  return deployment;
}

function buildOrFault({ builds }: Deployment, buildId: string): Build {
  const build = isBuildId(buildId) ? builds.find((one) => one.buildId === buildId) : undefined;
  if (!build) throw new HostError('build_not_found');
  return build;
}

function requireWorker({ buildId, hasWorker }: Build): void {
  if (hasWorker) return;
  const reason = `No worker of build ${buildId} runs: what is sent there would wait.`;
  throw new HostError('build_conflict', { reason });
}

async function requireTarget(options: DeploymentsOptions, target: MoveTarget): Promise<Deployment> {
  const deployment = await requireDeployment(options);
  if (target !== 'current-from-now-on') requireWorker(buildOrFault(deployment, target.buildId));
  return deployment;
}

async function runsOf(options: DeploymentsOptions, buildId: string): Promise<BuildRun[]> {
  buildOrFault(await requireDeployment(options), buildId);
  const { runIds } = await listRuns(options, onBuild(buildId));
  const runs = await inBatches(runIds, (runId) => runOnBuild(options, runId));
  return runs.filter((run) => run !== undefined);
}

interface Moving {
  readonly buildId: string;
  readonly target: MoveTarget;
  readonly cursor?: string;
}

async function moveFrom(
  options: DeploymentsOptions,
  { buildId, target, cursor }: Moving,
): Promise<MovedRuns> {
  const deployment = await requireTarget(options, target);
  buildOrFault(deployment, buildId);
  const { runIds, nextCursor } = await listRuns(options, heldBy(buildId), cursor);
  const moved = await moveAll(options, runIds, target);
  return nextCursor === undefined ? moved : { ...moved, nextCursor };
}

async function moveAll(
  options: DeploymentsOptions,
  runIds: readonly string[],
  target: MoveTarget,
): Promise<MovedRuns> {
  const to = target === 'current-from-now-on' ? 'auto-upgrade' : target;
  const outcomes = await inBatches(runIds, async (runId) => {
    try {
      await overrideVersion(options, runId, to);
      return { runId };
    } catch (error) {
      return { runId, reason: reasonOf(error) };
    }
  });
  return {
    moved: outcomes.flatMap(({ runId, reason }) => (reason === undefined ? [runId] : [])),
    failed: outcomes.flatMap(({ runId, reason }) =>
      reason === undefined ? [] : [{ runId, reason }],
    ),
  };
}

/** One run that cannot be moved keeps no other from it; an absent server does. */
function reasonOf(error: unknown): string {
  const { code, details, message } = error as HostError;
  if (code === 'build_not_found') return 'The run has ended, or was never started.';
  if (code !== 'build_conflict') throw error;
  return typeof details?.reason === 'string' ? details.reason : message;
}

interface Listed {
  readonly runIds: readonly string[];
  readonly nextCursor?: string;
}

async function listRuns(
  source: DeploymentsOptions,
  which: string,
  cursor?: string,
): Promise<Listed> {
  const { connection, namespace } = source;
  try {
    const page = await read(source, () =>
      connection.workflowService.listWorkflowExecutions({
        namespace,
        pageSize: PAGE_RUNS,
        query: openRuns(which),
        nextPageToken: Buffer.from(cursor ?? '', 'base64url'),
      }),
    );
    const runIds = (page.executions ?? []).flatMap(({ execution }) =>
      execution?.workflowId ? [execution.workflowId] : [],
    );
    const nextCursor = Buffer.from(page.nextPageToken ?? []).toString('base64url');
    return { runIds, ...(nextCursor === '' ? {} : { nextCursor }) };
  } catch (error) {
    if (cursor !== undefined && grpcStatus(error)?.code === GRPC.INVALID_ARGUMENT)
      throw invalid('cursor', 'is not one that this host gave');
    throw toHostError(error);
  }
}

async function inBatches<Item, Value>(
  items: readonly Item[],
  ask: (item: Item) => Promise<Value>,
): Promise<Value[]> {
  const values: Value[] = [];
  for (let at = 0; at < items.length; at += AT_ONCE)
    values.push(...(await Promise.all(items.slice(at, at + AT_ONCE).map(ask))));
  return values;
}
