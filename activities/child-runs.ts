// Child runs (RFC 0007, RFC 0022): started as one batch, asked how they ended, told to end. Rules and rows are those of
// src/runs; here is what of it stands in the parent's history. A child whose end a call waits for gives that call's
// result as a tool does (RFC 0002 §B): recorded, and fed to the model.
import { Context } from '@temporalio/activity';
import { ERRORS, isErrorCode } from '../src/rules/errors.ts';
import type { ActivityEvent, StepResult } from '../src/rules/journal.ts';
import { jsonBytes, type JsonObject, type JsonValue } from '../src/rules/json.ts';
import { NODE_INPUTS_BYTES } from '../src/rules/limits.ts';
import { boundText } from '../src/rules/tokens.ts';
import type { ChildEnd } from '../src/rules/children.ts';
import type {
  CancelChildInput,
  CancelChildOutput,
  EndChildInput,
  EndChildOutput,
  KeepTimeInput,
  KeepTimeOutput,
  StartChildrenInput,
  StartChildrenOutput,
} from './contract.ts';
import { failure } from './failures.ts';
import { inheritLeftCalls } from './former-effects.ts';
import { beating } from './heartbeat.ts';
import { placeOf } from './place.ts';
import type { ActivityPorts } from './ports.ts';
import { shownValue } from './shown-value.ts';
import { writeJson } from './transcript.ts';

/** Longest message in bytes: it is recorded, and fed to a model. */
const MESSAGE_BYTES = 2048;

/** In their order; a refused one does not keep the others back. A later try finds what an earlier one started. */
export function startChildren(
  ports: ActivityPorts,
  { context, requests, recordedBy, underWay = [], sourceLength: length }: StartChildrenInput,
): Promise<StepResult<StartChildrenOutput>> {
  const { children, stores, redactor } = ports;
  const parent = stores.runs.ref(context.tenant, context.runId);
  const { cancellationSignal } = Context.current();
  return beating(async () => {
    const tools = [...new Set(requests.flatMap(({ leftTools = [] }) => leftTools))];
    if (length !== undefined) await inheritLeftCalls(ports, context, { tools, length });
    const starts = recordedBy
      ? await children.recorded(parent, { requests, underWay, recordedBy }, cancellationSignal)
      : await children.accept(parent, requests, cancellationSignal);
    const shown = starts.map((start) =>
      start.kind === 'refused' ? { ...start, message: told(redactor.text(start.message)) } : start,
    );
    return { output: { starts: shown }, events: [] };
  });
}

/** Throws service_unavailable until the child has ended: its word may come before its log says so. */
export async function endChild(
  ports: ActivityPorts,
  input: EndChildInput,
): Promise<StepResult<EndChildOutput>> {
  const { stores, children } = ports;
  const { tenant, runId } = input.context;
  const { resolution } = input;
  if (resolution && input.tool)
    return asResult(ports, input, { status: 'completed', outputs: resolution.outcome });
  if (input.refused) return asResult(ports, input, { status: 'failed', error: input.refused });
  const { recordedOf, childRunId } = input;
  const end =
    recordedOf === undefined
      ? await children.end(stores.runs.ref(tenant, runId), childRunId)
      : await children.recordedEnd(stores.runs.ref(tenant, recordedOf), childRunId);
  if (end === undefined)
    throw failure('service_unavailable', { message: 'The child run has not ended yet.' });
  if (end === 'lost') {
    const { message } = ERRORS.child_lost;
    return asResult(ports, input, { status: 'failed', error: { code: 'child_lost', message } });
  }
  return asResult(ports, input, taken(ports, input, end));
}

/** Of a child's end what its parent takes, redacted and bounded; too much of it is a failure. */
function taken(
  { redactor }: ActivityPorts,
  { harvest, tool }: EndChildInput,
  { status, outputs, variables, error }: ChildEnd,
): Taken {
  const wanted = Object.entries(variables).filter(([name]) => harvest.includes(name));
  const kept: Taken = {
    status,
    ...(status === 'completed'
      ? {
          variables: redactor.json(Object.fromEntries(wanted)),
          ...(tool ? { outputs: redactor.json(outputs) } : {}),
        }
      : {}),
    ...(error ? { error: { code: error.code, message: told(redactor.text(error.message)) } } : {}),
  };
  if (jsonBytes({ ...kept }) <= NODE_INPUTS_BYTES) return kept;
  const message = `What the child run gives is larger than ${NODE_INPUTS_BYTES} bytes.`;
  return { status: 'failed', error: { code: 'payload_too_large', message } };
}

/** A type, not an interface: it is JSON. */
type Taken = {
  readonly status: ChildEnd['status'];
  /** An object, but where somebody says otherwise. */
  readonly outputs?: JsonValue;
  readonly variables?: JsonObject;
  readonly error?: { readonly code: string; readonly message: string };
};

/** Outputs go by hash to the model, and are no part of the parent's state. */
async function asResult(
  { stores }: ActivityPorts,
  input: EndChildInput,
  { outputs = {}, ...end }: Taken,
): Promise<StepResult<EndChildOutput>> {
  const { tool, context } = input;
  if (!tool) return { output: end, events: [] };
  const { status } = end;
  const code = end.error?.code ?? (status === 'cancelled' ? 'cancelled' : 'child_failed');
  const message = end.error?.message ?? (isErrorCode(code) ? ERRORS[code].message : code);
  const fault = status === 'completed' ? undefined : { error: { code, message } };
  const result = fault ?? outputs;
  const resultHash = await writeJson(stores.content, context, result);
  const { agentId, callId, toolId, calledKey } = tool;
  const event: ActivityEvent = {
    type: 'agent.toolReturned',
    ...placeOf(context, calledKey),
    payload: {
      ...{ agentId, toolName: toolId, callId },
      ...(fault
        ? { ...fault, status: 'error' as const }
        : {
            outcome: shownValue(outputs, resultHash),
            status: 'ok' as const,
          }),
    },
  };
  return { output: { ...end, resultHash }, events: [event] };
}

export async function cancelChild(
  { children, stores }: ActivityPorts,
  { context, childRunId, reason }: CancelChildInput,
): Promise<StepResult<CancelChildOutput>> {
  const parent = stores.runs.ref(context.tenant, context.runId);
  const found = await children.cancel(parent, { childRunId, reason });
  return { output: { found }, events: [] };
}

/** Throws service_unavailable while something below is under way. */
export function keepTime(
  { children }: ActivityPorts,
  { context, toMs, children: below }: KeepTimeInput,
): Promise<StepResult<KeepTimeOutput>> {
  const id = `${context.runId}-${context.activityId}-${Context.current().info.attempt}`;
  const to = toMs === undefined ? {} : { toMs };
  return beating(async () => ({
    output: await children.keepTime({ id, children: below, ...to }),
    events: [],
  }));
}

const told = (message: string): string => boundText(message, MESSAGE_BYTES);
