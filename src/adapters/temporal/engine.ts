// The RunEngine port over Temporal's client (architecture §4): start, messages as Updates, durable cancel. Every call
// ends within its deadline, with a server that is away, hangs, or has no worker.
import {
  Client,
  WorkflowExecutionAlreadyStartedError,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
  type Connection,
  type DataConverter,
} from '@temporalio/client';
import { CHILD_ENDED_SIGNAL, type ChildEnded } from '../../rules/children.ts';
import { codeOf, HostError, isErrorCode } from '../../rules/errors.ts';
import { MESSAGES, type MessageOutcome, type RunMessage } from '../../rules/messages.ts';
import { RUN_TASK_QUEUE, RUN_WORKFLOW, type RunInput } from '../../rules/run-input.ts';
import type { RunEngine } from '../../ports/engine.ts';
import { Deadline, rest } from '../../system/time.ts';
import { DEPLOYMENT } from './deployment-calls.ts';
import { GRPC, grpcStatus, isAway, isNamespaceUnknown, rpc, toHostError } from './rpc.ts';

const START_DEADLINE_MS = 5_000;
const CANCEL_REQUEST_DEADLINE_MS = 2_000;
const SIGNAL_DEADLINE_MS = 2_000;
const TERMINATE_DEADLINE_MS = 2_000;
const PING_DEADLINE_MS = 2_000;
/** Tries of one call; the deadline ends them earlier. */
const TRIES = 20;

/** Why a run took no message, told by Temporal's own words where its codes do not tell (architecture §4). */
const CLOSED = /already completed|closing workflow/i;
const LOST_BY_CLOSING = 'AcceptedUpdateCompletedWorkflow';

export interface RunEngineOptions {
  readonly connection: Connection;
  readonly namespace: string;
  readonly dataConverter?: DataConverter;
  readonly taskQueue?: string;
  /** The build of the worker that runs begin on and stay with, but for forks that say theirs; undefined: whatever build takes new runs. */
  readonly pinTo?: () => string | undefined;
}

interface Source {
  readonly client: Client;
  readonly connection: Connection;
  readonly namespace: string;
  readonly taskQueue: string;
  readonly pinTo: () => string | undefined;
}

/** Fixed in advance, so that a repeated request is recognised by the server (architecture §4). */
async function start(source: Source, input: RunInput): Promise<{ temporalRunId: string }> {
  const buildId = input.fork?.build?.buildId ?? source.pinTo();
  const pinnedTo = buildId === undefined ? undefined : { deploymentName: DEPLOYMENT, buildId };
  try {
    const handle = await rpc(
      source.connection,
      { deadlineMs: START_DEADLINE_MS, tries: TRIES },
      () =>
        source.client.workflow.start(RUN_WORKFLOW, {
          workflowId: input.runId,
          taskQueue: source.taskQueue,
          args: [input],
          workflowIdReusePolicy: 'REJECT_DUPLICATE',
          workflowIdConflictPolicy: 'FAIL',
          // The last resort behind the run's own clock (capabilities.md §Engine-enforced limits): translate makes
          // run_timeout of it.
          workflowExecutionTimeout: input.limits.maxRunDurationMs,
          ...(pinnedTo && { versioningOverride: { pinnedTo } }),
        }),
    );
    return { temporalRunId: handle.firstExecutionRunId };
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw toHostError(error);
    return { temporalRunId: await firstExecutionRunId(source, input.runId) };
  }
}

async function describe({ connection, namespace }: Source, runId: string) {
  const found = await rpc(connection, { deadlineMs: START_DEADLINE_MS, tries: TRIES }, () =>
    connection.workflowService.describeWorkflowExecution({
      namespace,
      execution: { workflowId: runId },
    }),
  );
  return found.workflowExecutionInfo;
}

/** The chain's first segment, also when the run has continued as new since. */
async function firstExecutionRunId(source: Source, runId: string): Promise<string> {
  try {
    const info = await describe(source, runId);
    const first = info?.firstRunId || info?.execution?.runId;
    if (!first)
      throw new HostError('internal_error', { reason: 'Temporal named no execution of the run.' });
    return first;
  } catch (error) {
    throw toHostError(error);
  }
}

/**
 * The server's words for a message that meets an execution while it closes or continues as new, or whose workflow task
 * it had to give up: nothing was taken in.
 */
const SEGMENT_CLOSING = /workflow is closing|unexpected workflow task failure/i;
const NO_ANSWER = 'The run did not take the message in time.';

function details(value: unknown): Record<string, unknown> | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : undefined;
}

function isUnknown(error: unknown): boolean {
  return error instanceof WorkflowNotFoundError || grpcStatus(error)?.code === GRPC.NOT_FOUND;
}

/** The in-memory server says of a run that has ended that it does not know the message: the run itself decides. */
async function sendError(source: Source, runId: string, error: unknown): Promise<unknown> {
  if (isUnknown(error) && !CLOSED.test(String((error as Error).message))) {
    const info = await describe(source, runId).catch(() => undefined);
    if (info?.closeTime)
      return new HostError('run_state_conflict', { reason: 'The run has ended.' }, error);
  }
  return messageError(error);
}

/** What a failed Update means to the inside. */
function messageError(error: unknown): unknown {
  if (error instanceof WorkflowUpdateFailedError) {
    const cause = error.cause as { type?: unknown; details?: unknown[] } | undefined;
    const type = typeof cause?.type === 'string' ? cause.type : '';
    if (isErrorCode(type)) return new HostError(type, details(cause?.details?.[0]), error);
    if (type === LOST_BY_CLOSING)
      return new HostError('run_state_conflict', { reason: 'The run has ended.' }, error);
    return new HostError('internal_error', undefined, error);
  }
  const status = grpcStatus(error);
  if (CLOSED.test(`${(error as Error).message} ${status?.details ?? ''}`)) {
    return new HostError('run_state_conflict', { reason: 'The run has ended.' }, error);
  }
  // Accepted here, not there yet: the reaper will start it.
  if (isUnknown(error))
    return new HostError('service_unavailable', { reason: 'The run is not started yet.' }, error);
  if (error instanceof WorkflowUpdateRPCTimeoutOrCancelledError || isAway(error)) {
    return new HostError('service_unavailable', { reason: NO_ANSWER }, error);
  }
  return toHostError(error);
}

/** One message on its way to a run. */
interface Sent {
  readonly runId: string;
  readonly updateId: string;
  readonly message: RunMessage;
}

/** Between two segments of a run a message is refused; it is sent again with the same id, this often at most. */
const BORDER_TRIES = 20;
const BORDER_PAUSE_MS = 100;

/** True when the segment that got the message was just ending and the next one will take it. */
export function metBorder(error: unknown): boolean {
  if (error instanceof WorkflowUpdateFailedError) {
    return (error.cause as { type?: unknown } | undefined)?.type === 'service_unavailable';
  }
  return SEGMENT_CLOSING.test(`${(error as Error).message} ${grpcStatus(error)?.details ?? ''}`);
}

/** Throws what the Update came to, as the inside means it. */
async function update(source: Source, sent: Sent): Promise<MessageOutcome> {
  const { runId, updateId, message } = sent;
  const { update: name, deadlineMs } = MESSAGES[message.kind];
  const deadline = new Deadline(deadlineMs);
  for (let left = BORDER_TRIES; ; left--) {
    try {
      const leftMs = Math.max(deadline.leftMs(), 1);
      return await rpc(source.connection, { deadlineMs: leftMs, tries: TRIES }, () =>
        source.client.workflow
          .getHandle(runId)
          .executeUpdate<MessageOutcome, [RunMessage]>(name, { updateId, args: [message] }),
      );
    } catch (error) {
      if (left <= 0 || !metBorder(error) || BORDER_PAUSE_MS >= deadline.leftMs()) {
        throw await sendError(source, runId, error);
      }
      await rest(BORDER_PAUSE_MS);
    }
  }
}

/** Temporal's own cancel request: recorded without a worker, recognised when repeated. */
async function requestCancel(source: Source, sent: Sent): Promise<MessageOutcome> {
  const { connection, namespace } = source;
  const { runId, updateId, message } = sent;
  await rpc(connection, { deadlineMs: CANCEL_REQUEST_DEADLINE_MS, tries: TRIES }, () =>
    connection.workflowService.requestCancelWorkflowExecution({
      namespace,
      workflowExecution: { workflowId: runId },
      requestId: updateId,
      identity: 'openwop',
      reason: 'cancelled by request',
    }),
  ).catch((error: unknown) => {
    throw messageError(error);
  });
  return { bodyDigest: message.bodyDigest, status: 'cancelling' };
}

async function send(source: Source, sent: Sent): Promise<MessageOutcome> {
  const { kind, bodyDigest } = sent.message;
  const { unanswered, ofEnded } = MESSAGES[kind];
  try {
    return await update(source, sent).catch((error: unknown) => {
      const isAgain = unanswered === 'cancel-request' && codeOf(error) === 'service_unavailable';
      if (!isAgain) throw error;
      return requestCancel(source, sent);
    });
  } catch (error) {
    if (ofEnded === 'refused' || codeOf(error) !== 'run_state_conflict') throw error;
    return { bodyDigest, status: 'unchanged' };
  }
}

async function childEnded(source: Source, parentRunId: string, ended: ChildEnded): Promise<void> {
  try {
    await rpc(source.connection, { deadlineMs: SIGNAL_DEADLINE_MS, tries: TRIES }, () =>
      source.client.workflow.getHandle(parentRunId).signal(CHILD_ENDED_SIGNAL, ended),
    );
  } catch (error) {
    // Nothing can be encrypted for a run that is not there.
    if (!isUnknown(error) && codeOf(error) !== 'run_not_found') throw toHostError(error);
  }
}

async function terminate(
  { connection, namespace }: Source,
  runId: string,
  reason: string,
): Promise<void> {
  const workflowExecution = { workflowId: runId };
  try {
    await rpc(connection, { deadlineMs: TERMINATE_DEADLINE_MS, tries: TRIES }, () =>
      connection.workflowService.terminateWorkflowExecution({
        ...{ namespace, workflowExecution, reason, identity: 'openwop' },
      }),
    );
  } catch (error) {
    if (!isUnknown(error) || isNamespaceUnknown(error)) throw toHostError(error);
  }
}

export function createRunEngine(options: RunEngineOptions): RunEngine {
  const { connection, namespace, dataConverter, taskQueue = RUN_TASK_QUEUE } = options;
  const source = {
    client: new Client({ connection, namespace, dataConverter }),
    connection,
    namespace,
    taskQueue,
    pinTo: options.pinTo ?? (() => undefined),
  };
  return {
    start: (input) => start(source, input),
    send: (runId, updateId, message) => send(source, { runId, updateId, message }),
    childEnded: (parentRunId, ended) => childEnded(source, parentRunId, ended),
    terminate: (runId, reason) => terminate(source, runId, reason),
    async ping() {
      try {
        await rpc(connection, { deadlineMs: PING_DEADLINE_MS, tries: TRIES }, () =>
          connection.workflowService.getSystemInfo({}),
        );
      } catch (error) {
        throw toHostError(error);
      }
    },
  };
}
