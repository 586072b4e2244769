// callTool: one call of a tool that the model asked for (RFC 0077 §B steps 3 and 5; RFC 0002 §B, RFC 0002 §A14). The
// surface is checked again here, arguments and outcome against the tool's schemas; the effect goes by the ledger. A
// call that is refused now may have been performed before: what the ledger knows is told first (architecture §5).
import { codeOf, isOutage } from '../src/rules/errors.ts';
import type { PayloadOf } from '../src/rules/events.ts';
import type { ActivityEvent, StepResult } from '../src/rules/journal.ts';
import type { JsonValue } from '../src/rules/json.ts';
import { boundText } from '../src/rules/tokens.ts';
import type { Tool } from '../src/ports/tools.ts';
import { checkAgainst } from '../src/wire/user-schema.ts';
import type { CallToolInput, CallToolOutput } from './contract.ts';
import {
  effectBehindFailure,
  isOfEndedRun,
  performEffect,
  recallEffect,
  settleByWord,
  wordFault,
  type EffectResult,
  type KnownEffect,
} from './perform-effect.ts';
import type { ActivityPorts } from './ports.ts';
import { showingProgress } from './progress-writer.ts';
import { shownValue } from './shown-value.ts';
import { inheritEffects } from './former-effects.ts';
import { beating } from './heartbeat.ts';
import { placeOf } from './place.ts';
import { recordedCall } from './recorded-call.ts';
import { toolError, type ToolError } from './tool-errors.ts';
import { writeJson } from './transcript.ts';

type Result = StepResult<CallToolOutput>;
type Told = { status: 'error' | 'forbidden'; error: ToolError; durationMs?: number };
/** Why a call is not performed now. */
type Refusal = ({ readonly kind: 'refused' } & Told) | { readonly kind: 'needs-approval' };

export async function callTool(ports: ActivityPorts, input: CallToolInput): Promise<Result> {
  const { toolId } = input.call;
  // What the agent may not call it may not call in a branch either.
  const isInSurface = input.tools.includes(toolId);
  const { recordedBy } = input;
  if (recordedBy && isInSurface && !input.resolution)
    return beating(() => recordedCall(ports, input, recordedBy));
  const tool = isInSurface
    ? (await ports.tools.find(input.context.tenant, [toolId])).get(toolId)
    : undefined;
  const { sourceLength: length } = input;
  if (length !== undefined) await beating(() => inheritEffects(ports, input, { tool, length }));
  return showingProgress({ ports, input, tool }, async (onProgress) => {
    const { resolution } = input;
    const effect = { ports, input, tool, ...(onProgress ? { onProgress } : {}) };
    const fault = wordFault(effect);
    if (fault) return askAgain(effect, `The outcome that was given is not recorded. ${fault}`);
    if (resolution?.kind === 'skip' || resolution?.kind === 'happened')
      return told(effect, await settleByWord(effect, resolution));
    const refusal = refusalOf(tool, input);
    if (refusal) return refuse(effect, refusal);
    if (!tool) throw new Error('a call without its tool is refused');
    if (input.rehearsal && changesOutside(tool)) return rehearse(effect);
    return told(effect, await performEffect({ ...effect, tool }));
  });
}

/**
 * Before a call fails for good: the result of its effect, or a question about it where the ledger does not know. Undefined
 * where there is no effect.
 */
export async function knownCall(
  ports: ActivityPorts,
  input: CallToolInput,
): Promise<Result | undefined> {
  // A run that has ended asks nobody. A branch that goes by its record performs nothing, unless a human said so.
  if (isOfEndedRun() || (input.recordedBy && !input.resolution)) return undefined;
  const { toolId } = input.call;
  const tool = input.tools.includes(toolId) ? await toolNow(ports, input) : undefined;
  const effect = { ports, input, tool };
  const known = await effectBehindFailure(effect);
  const refusal = known?.kind === 'in-doubt' ? refusalOf(tool, input) : undefined;
  if (known?.kind === 'in-doubt' && refusal?.kind === 'refused')
    return { output: refusedDoubt(known, refusal), events: [] };
  return known && told(effect, known);
}

/** Undefined where the tool cannot be looked up now: the ledger is asked all the same. */
async function toolNow(ports: ActivityPorts, { context, call }: CallToolInput) {
  const { toolId } = call;
  try {
    return (await ports.tools.find(context.tenant, [toolId])).get(toolId);
  } catch (error) {
    const code = codeOf(error);
    if (code !== undefined && isOutage(code)) throw error;
    return undefined;
  }
}

function refusalOf(tool: Tool | undefined, input: CallToolInput): Refusal | undefined {
  const { toolId } = input.call;
  if (!input.tools.includes(toolId)) {
    const error = toolError('forbidden', `The tool ${boundText(toolId, 256)} is not available.`);
    return { kind: 'refused', status: 'forbidden', error };
  }
  if (!tool) return { kind: 'refused', status: 'error', error: toolError('tool_not_found') };
  const error = argumentsFault(tool, input.call.arguments);
  if (error) return { kind: 'refused', status: 'error', error };
  const approval = tool.remote?.approval;
  if (approval === 'deny')
    return { kind: 'refused', status: 'forbidden', error: toolError('tool_denied') };
  const isAsked = approval === 'ask' && input.approvedBy === undefined && !input.resolution;
  return isAsked ? { kind: 'needs-approval' } : undefined;
}

/** Only what was never performed is refused. */
async function refuse(effect: KnownEffect, refusal: Refusal): Promise<Result> {
  const known = await recallEffect(effect);
  if (known?.kind === 'in-doubt' && refusal.kind === 'refused')
    return { output: refusedDoubt(known, refusal), events: [] };
  if (known) return told(effect, known);
  if (refusal.kind === 'refused') return returned(effect.ports, effect.input, refusal);
  const reason = 'The operator asks a human about calls of this tool.';
  return { output: { kind: 'needs-approval', reason }, events: [] };
}

function refusedDoubt(
  doubt: Extract<EffectResult, { kind: 'in-doubt' }>,
  { error }: Extract<Refusal, { kind: 'refused' }>,
): CallToolOutput {
  const reason = `${doubt.reason} It cannot be performed now: ${error.message}`;
  return { ...doubt, reason, refused: true };
}

/** What a tool says of itself; one that says nothing changes something. */
function changesOutside({ safetyTier, isSandbox }: Tool): boolean {
  return safetyTier !== 'pure' && safetyTier !== 'read' && !isSandbox;
}

/** Nothing is performed: a human says what came of it, and that is what the agent is told. */
async function rehearse(effect: KnownEffect): Promise<Result> {
  const known = await recallEffect(effect);
  if (known) return told(effect, known);
  const reason = 'This is a rehearsal: nothing outside is changed, and the call is not performed.';
  return { output: rehearsedDoubt(effect, reason), events: [] };
}

function rehearsedDoubt({ input }: KnownEffect, reason: string): CallToolOutput {
  const { callId } = input.call;
  return { kind: 'in-doubt', effectId: callId, reason, refused: true, rehearsed: true };
}

/** The same question once more. What the ledger knows by now is told instead. */
async function askAgain(effect: KnownEffect, reason: string): Promise<Result> {
  const { tool, input } = effect;
  const known = await recallEffect(effect);
  if (known && known.kind !== 'in-doubt') return told(effect, known);
  if (!known && input.rehearsal && tool && changesOutside(tool))
    return { output: rehearsedDoubt(effect, reason), events: [] };
  const { callId: effectId } = input.call;
  const doubt = { ...(known ?? { kind: 'in-doubt' as const, effectId }), reason };
  const refusal = refusalOf(tool, input);
  const output = refusal?.kind === 'refused' ? refusedDoubt(doubt, refusal) : doubt;
  return { output, events: [] };
}

async function told({ ports, input }: KnownEffect, result: EffectResult): Promise<Result> {
  switch (result.kind) {
    case 'in-doubt':
      return { output: result, events: [] };
    case 'error':
      return returned(ports, input, { status: 'error', ...result });
    case 'done': {
      const { outcome, hash, durationMs } = result;
      const payload = { outcome: shownValue(outcome, hash), status: 'ok' as const };
      return {
        output: { kind: 'returned', status: 'ok', resultHash: hash },
        events: [returnedEvent(input, payload, durationMs)],
      };
    }
  }
}

function argumentsFault(tool: Tool, value: JsonValue): ToolError | undefined {
  const checked = checkAgainst(tool.inputSchema, value);
  if (checked.ok) return undefined;
  const [{ pointer, message }] = checked.errors;
  return toolError(
    'tool_invalid_input',
    `The arguments do not match the tool's schema: ${pointer || '/'} ${message}.`,
  );
}

/** An error for the model: recorded, and fed to it as the call's result. */
async function returned(
  ports: ActivityPorts,
  input: CallToolInput,
  { status, error, durationMs }: Told,
): Promise<Result> {
  const { code, message } = error;
  const payload = { error: { code, message: ports.redactor.text(message) }, status };
  const { content } = ports.stores;
  const resultHash = await writeJson(content, input.context, { error: payload.error });
  return {
    output: { kind: 'returned', status, resultHash },
    events: [returnedEvent(input, payload, durationMs)],
  };
}

function returnedEvent(
  { agentId, call, calledKey, context }: CallToolInput,
  payload: Pick<PayloadOf<'agent.toolReturned'>, 'outcome' | 'error' | 'status'>,
  durationMs: number | undefined,
): ActivityEvent {
  return {
    type: 'agent.toolReturned',
    ...placeOf(context, calledKey),
    payload: {
      agentId,
      toolName: call.toolId,
      callId: call.callId,
      ...payload,
      ...(durationMs === undefined ? {} : { durationMs }),
    },
  };
}
