// A run as its build has it: which one, and, of an open one, why its workflow task fails where it is tried again and again.
import proto from '@temporalio/proto';
import type { BuildRun } from '../../ports/deployments.ts';
import { DEPLOYMENT, read, type DeploymentSource } from './deployment-calls.ts';
import { GRPC, grpcStatus, toHostError } from './rpc.ts';

const { EventType, VersioningBehavior } = proto.temporal.api.enums.v1;
/** A failed task is told once, near the end of the history. */
const LAST_EVENTS = 20;
/** Of Temporal's reason: the first sentences say it. */
const MAX_REASON_CHARS = 500;

/** Undefined: it is gone, or has ended meanwhile. */
export async function runOnBuild(
  source: DeploymentSource,
  runId: string,
): Promise<BuildRun | undefined> {
  try {
    const found = await describe(source, runId);
    const { versioningInfo, closeTime } = found.workflowExecutionInfo ?? {};
    if (closeTime) return undefined;
    const override = versioningInfo?.versioningOverride;
    const version = override?.pinned?.version ?? versioningInfo?.deploymentVersion;
    const buildId = buildIn(version);
    const isHeld = override
      ? Boolean(override.pinned)
      : versioningInfo?.behavior === VersioningBehavior.VERSIONING_BEHAVIOR_PINNED;
    const attempt = Number(found.pendingWorkflowTask?.attempt ?? 1);
    return {
      ...{ runId, held: isHeld },
      ...(buildId === undefined ? {} : { buildId }),
      ...(attempt > 1 ? { failing: { attempt, ...(await reasonOf(source, runId)) } } : {}),
    };
  } catch (error) {
    if (grpcStatus(error)?.code === GRPC.NOT_FOUND) return undefined;
    throw toHostError(error);
  }
}

/** Also of one that has ended; undefined: no build performed it, or it is gone. */
export async function lastBuildOf(
  source: DeploymentSource,
  runId: string,
): Promise<string | undefined> {
  try {
    const { workflowExecutionInfo } = await describe(source, runId);
    return buildIn(workflowExecutionInfo?.versioningInfo?.deploymentVersion);
  } catch (error) {
    if (grpcStatus(error)?.code === GRPC.NOT_FOUND) return undefined;
    throw toHostError(error);
  }
}

function describe(source: DeploymentSource, runId: string) {
  const { connection, namespace } = source;
  return read(source, () =>
    connection.workflowService.describeWorkflowExecution({
      namespace,
      execution: { workflowId: runId },
    }),
  );
}

type Version = proto.temporal.api.deployment.v1.IWorkerDeploymentVersion;

function buildIn(version: Version | null | undefined): string | undefined {
  return version?.deploymentName === DEPLOYMENT ? version.buildId || undefined : undefined;
}

async function reasonOf(source: DeploymentSource, runId: string): Promise<{ reason?: string }> {
  const { connection, namespace } = source;
  const { history } = await read(source, () =>
    connection.workflowService.getWorkflowExecutionHistoryReverse({
      namespace,
      execution: { workflowId: runId },
      maximumPageSize: LAST_EVENTS,
    }),
  );
  const failed = history?.events?.find(
    ({ eventType }) => eventType === EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED,
  );
  const said = failed?.workflowTaskFailedEventAttributes?.failure?.message;
  return said ? { reason: said.slice(0, MAX_REASON_CHARS) } : {};
}
