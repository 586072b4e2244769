// One effect under the ledger (design §5): claimed before it is performed, settled before anybody learns of it. A
// crash in between leaves a lease that runs out, and the effect is in doubt: nothing is repeated silently.
//
// claim says   | what happens
// -------------|------------------------------------------------------------------------------------
// perform      | the tool is called under timeout, heartbeat and lease, then the row is settled
// done, failed | the recorded outcome or error, nothing is performed
// busy         | a later try asks again when the lease ends
// in-doubt     | the tool's reconcile hook is asked; who cannot tell leaves it to a human
// differs      | a human decides
// run-closed   | refused
import { Context } from '@temporalio/activity';
import { HostError } from '../src/core/errors.ts';
import { eventIdOf } from '../src/core/ids.ts';
import { canonicalJson, utf8Length, type JsonValue } from '../src/core/json.ts';
import type { EffectClaim, Tool, ToolCallContext, ToolProgress } from '../src/ports.ts';
import { compileUserSchema } from '../src/wire/user-schema.ts';
import type { CallToolInput } from './contract.ts';
import { failure } from './failures.ts';
import type { ActivityPorts } from './ports.ts';
import { readToolFailure, toolError, type FailedCall, type ToolError } from './tool-errors.ts';
import { readJson, writeJson } from './transcript.ts';

/** Lease of a claim in ms: how long a crashed worker keeps an effect busy. */
export const EFFECT_LEASE_MS = 10_000;
/** ms between two renewals of a lease. */
const LEASE_RENEWAL_MS = 3_000;
/** ms added to the end of somebody else's lease before asking again. */
const BUSY_MARGIN_MS = 250;
/** Tries after which a failure that could be tried again is told to the model instead. */
const MAX_TOOL_TRIES = 4;
/** Largest outcome of a tool in bytes of JSON. */
const OUTCOME_BYTES = 8 * 1024 * 1024;

export type EffectResult =
  | {
      readonly kind: 'done';
      readonly outcome: JsonValue;
      readonly hash: string;
      readonly durationMs?: number;
    }
  | { readonly kind: 'error'; readonly error: ToolError; readonly durationMs?: number }
  | { readonly kind: 'in-doubt'; readonly effectId: string; readonly reason: string };

interface Effect {
  readonly ports: ActivityPorts;
  readonly input: CallToolInput;
  readonly tool: Tool;
  readonly onProgress?: (progress: ToolProgress) => void;
}

type Perform = Extract<EffectClaim, { kind: 'perform' }>;
type InDoubt = Extract<EffectClaim, { kind: 'in-doubt' }>;

export async function performEffect(effect: Effect): Promise<EffectResult> {
  const { resolution } = effect.input;
  if (resolution?.kind === 'skip') return { kind: 'error', error: toolError('effect_skipped') };
  // A human's "perform" holds once: were it to hold for later tries, a crash after the effect would repeat it.
  const mayForce = resolution?.kind === 'happened' || Context.current().info.attempt === 1;
  const isDecided = resolution !== undefined && resolution.kind !== 'unreached';
  const claim = await claimEffect(effect, isDecided && mayForce);
  if (resolution?.kind === 'happened' && claim.kind === 'perform') {
    return settleDone(effect, claim, effect.ports.redactor.json(resolution.outcome));
  }
  if (resolution?.kind === 'unreached' && claim.kind === 'perform') {
    return settleFailed(effect, claim, toolError('agent_unavailable'));
  }
  return follow(effect, claim);
}

function claimEffect({ ports, input, tool }: Effect, force: boolean): Promise<EffectClaim> {
  const { tenant, runId, nodeId, visit, attempt } = input.context;
  const { toolId, argsHash, occurrence } = input.call;
  const identity = { tenant, runId, nodeId, visit, toolId, argsHash, occurrence };
  const options = { idempotent: tool.idempotent, leaseMs: EFFECT_LEASE_MS, force };
  return ports.stores.effects.claim(identity, attempt, options);
}

async function follow(effect: Effect, claim: EffectClaim): Promise<EffectResult> {
  const { content } = effect.ports.stores;
  const { tenant } = effect.input.context;
  switch (claim.kind) {
    case 'perform':
      return perform(effect, claim);
    case 'done': {
      const outcome = await readJson<JsonValue>(content, tenant, claim.outcomeHash);
      return { kind: 'done', outcome, hash: claim.outcomeHash };
    }
    case 'failed':
      return {
        kind: 'error',
        error: await readJson<ToolError>(content, tenant, claim.outcomeHash),
      };
    case 'busy':
      throw failure('service_unavailable', {
        message: 'The effect is being performed elsewhere.',
        retryAfterMs: Math.max(0, claim.leaseUntilMs - Date.now()) + BUSY_MARGIN_MS,
      });
    case 'in-doubt':
      return reconcile(effect, claim);
    case 'differs':
      return {
        kind: 'in-doubt',
        effectId: claim.effectId,
        reason:
          'An earlier attempt of this node called the tool otherwise, and that call may stand.',
      };
    case 'run-closed':
      throw new HostError('run_state_conflict', {
        reason: 'The run has ended: no effect is performed for it.',
      });
  }
}

async function perform(effect: Effect, claim: Perform): Promise<EffectResult> {
  const { ports, tool, input } = effect;
  const startedMs = Date.now();
  const answer = await callUnderLease(effect, claim);
  const durationMs = Date.now() - startedMs;
  if (answer.kind === 'answered') {
    const outcome = ports.redactor.json(answer.outcome ?? null);
    const fault = outcomeFault(tool, outcome);
    const result = fault
      ? await settleFailed(effect, claim, fault)
      : await settleDone(effect, claim, outcome);
    return { ...result, durationMs };
  }
  if (answer.kind === 'final') {
    return { ...(await settleFailed(effect, claim, answer.error)), durationMs };
  }
  const { effectId, epoch } = claim;
  const state = answer.kind === 'before-send' ? 'failed-before-send' : 'in-doubt';
  await ports.stores.effects.settle(effectId, epoch, state);
  Context.current().cancellationSignal.throwIfAborted();
  if (answer.kind === 'unknown' && !tool.idempotent) {
    return reconcile(effect, { kind: 'in-doubt', effectId, epoch });
  }
  // An absent agent is waited for, durably: on the queue of its calls, as long as the run's step permits. One that a
  // call has ended is not: a call that kills its agent must not do so for ever.
  const isAbsent = answer.kind === 'before-send' && answer.error.code === 'agent_unavailable';
  if (!isAbsent && isLastTry()) {
    return { kind: 'error', error: answer.error, durationMs };
  }
  ports.logger.info('A tool call is tried again.', { runId: input.context.runId, effectId });
  throw failure(answer.error.code, { message: answer.error.message, retryable: true });
}

function isLastTry(): boolean {
  const { attempt, retryPolicy } = Context.current().info;
  return attempt >= Math.min(MAX_TOOL_TRIES, retryPolicy?.maximumAttempts ?? MAX_TOOL_TRIES);
}

type Answer = { readonly kind: 'answered'; readonly outcome: JsonValue } | FailedCall;

/** Calls the tool; the lease is renewed meanwhile. Who loses the lease must not use the answer. */
async function callUnderLease(effect: Effect, claim: Perform): Promise<Answer> {
  const { ports, tool } = effect;
  const { effectId, epoch } = claim;
  const stop = new AbortController();
  let isLost = false;
  const renewal = setInterval(() => {
    ports.stores.effects.renew(effectId, epoch, EFFECT_LEASE_MS).then(
      (held) => {
        if (held) return;
        isLost = true;
        stop.abort(new HostError('effect_in_doubt'));
      },
      (error: unknown) =>
        ports.logger.warn('A lease could not be renewed.', { effectId, error: String(error) }),
    );
  }, LEASE_RENEWAL_MS);
  const answer = await callInTime(effect, { context: contextOf(effect, effectId), stop }).catch(
    (error: unknown) => readToolFailure(error, (text) => ports.redactor.text(text)),
  );
  clearInterval(renewal);
  if (!isLost) return answer;
  throw failure('service_unavailable', {
    message: `The lease of an effect of ${tool.toolId} was lost.`,
  });
}

function contextOf(
  { tool, input }: Effect,
  effectId: string,
): Omit<ToolCallContext, 'signal' | 'onProgress'> {
  const { tenant, runId, nodeId, workflowId, principal } = input.context;
  const { calledKey, approvedBy, call } = input;
  const cause = typeof calledKey === 'string' ? { runId, key: calledKey } : calledKey;
  const directive = approvedBy ?? (tool.remote?.approval === 'none' ? 'policy' : undefined);
  return {
    tenant,
    runId,
    nodeId,
    workflowId,
    principal,
    callerAgentId: input.agentId,
    callId: call.callId,
    ...(cause ? { causationId: eventIdOf(cause.runId, cause.key) } : {}),
    ...(directive === undefined ? {} : { directive }),
    idempotencyKey: effectId,
  };
}

/** Waits no longer than the tool's timeout and its grace, whether or not the tool heeds its signal. */
async function callInTime(
  { tool, input, onProgress }: Effect,
  {
    context,
    stop,
  }: { context: Omit<ToolCallContext, 'signal' | 'onProgress'>; stop: AbortController },
): Promise<Answer> {
  const cancelled = Context.current().cancellationSignal;
  if (cancelled.aborted) return { kind: 'before-send', error: toolError('cancelled') };
  const forward = (): void => stop.abort(cancelled.reason);
  cancelled.addEventListener('abort', forward, { once: true });
  const timer = setTimeout(() => stop.abort(new HostError('tool_timeout')), tool.timeoutMs);
  try {
    const aborted = new Promise<never>((_, reject) => {
      // Within its grace the tool may say how it ended: that is worth more than not to know.
      const fail = (): void => {
        const graceMs = tool.stopGraceMs ?? 0;
        if (graceMs === 0) reject(stop.signal.reason as Error);
        else setTimeout(() => reject(stop.signal.reason as Error), graceMs).unref();
      };
      if (stop.signal.aborted) fail();
      else stop.signal.addEventListener('abort', fail, { once: true });
    });
    const call = tool.call(input.call.arguments, {
      ...context,
      ...(onProgress ? { onProgress } : {}),
      signal: stop.signal,
    });
    return { kind: 'answered', outcome: await Promise.race([call, aborted]) };
  } catch (error) {
    // What a tool throws because it was stopped says less than why it was stopped, unless it knows how it ended.
    throw stop.signal.aborted && !knowsItsEnd(error) ? stop.signal.reason : error;
  } finally {
    clearTimeout(timer);
    cancelled.removeEventListener('abort', forward);
  }
}

function knowsItsEnd(error: unknown): boolean {
  const { sent, details } = (error ?? {}) as { sent?: unknown; details?: { final?: unknown } };
  return sent === false || details?.final === true;
}

function outcomeFault(tool: Tool, outcome: JsonValue): ToolError | undefined {
  if (utf8Length(canonicalJson(outcome)) > OUTCOME_BYTES) {
    return toolError('payload_too_large', 'The result of the tool is larger than permitted.');
  }
  if (tool.outputSchema === undefined) return undefined;
  const compiled = compileUserSchema(tool.outputSchema);
  const checked = compiled.ok ? compiled.value.validate(outcome) : compiled;
  if (checked.ok) return undefined;
  const [{ pointer, message }] = checked.errors;
  return toolError(
    'tool_invalid_output',
    `The result does not match the tool's schema: ${pointer || '/'} ${message}.`,
  );
}

async function settleDone(
  { ports, input }: Effect,
  { effectId, epoch }: Perform | InDoubt,
  outcome: JsonValue,
): Promise<Extract<EffectResult, { kind: 'done' }>> {
  const hash = await writeJson(ports.stores.content, input.context.tenant, outcome);
  await settle(ports, { effectId, epoch, state: 'done', hash });
  return { kind: 'done', outcome, hash };
}

async function settleFailed(
  { ports, input }: Effect,
  { effectId, epoch }: Perform,
  error: ToolError,
): Promise<Extract<EffectResult, { kind: 'error' }>> {
  const hash = await writeJson(ports.stores.content, input.context.tenant, error);
  await settle(ports, { effectId, epoch, state: 'failed-final', hash });
  return { kind: 'error', error };
}

interface Settlement {
  readonly effectId: string;
  readonly epoch: number;
  readonly state: 'done' | 'failed-final';
  readonly hash: string;
}

/** A lost epoch means that somebody else decides about this effect: a later try reads what they decided. */
async function settle(
  ports: ActivityPorts,
  { effectId, epoch, state, hash }: Settlement,
): Promise<void> {
  if (await ports.stores.effects.settle(effectId, epoch, state, hash)) return;
  throw failure('service_unavailable', { message: 'The claim of an effect was lost.' });
}

async function reconcile(effect: Effect, claim: InDoubt): Promise<EffectResult> {
  const { ports, tool, input } = effect;
  const { effectId, epoch } = claim;
  const told = await askTool(effect, effectId);
  if (told === 'unknown') {
    return { kind: 'in-doubt', effectId, reason: 'The effect may or may not have happened.' };
  }
  if (told.happened) return settleDone(effect, claim, ports.redactor.json(told.outcome));
  await ports.stores.effects.settle(effectId, epoch, 'failed-before-send');
  ports.logger.info('An effect in doubt did not happen.', { runId: input.context.runId, effectId });
  throw failure('tool_failed', {
    message: `An effect of ${tool.toolId} did not happen and is tried again.`,
    retryable: true,
  });
}

async function askTool(
  effect: Effect,
  effectId: string,
): Promise<Awaited<ReturnType<NonNullable<Tool['reconcile']>>>> {
  const { ports, tool, input } = effect;
  if (!tool.reconcile) return 'unknown';
  const signal = AbortSignal.any([
    Context.current().cancellationSignal,
    AbortSignal.timeout(tool.timeoutMs),
  ]);
  try {
    return await tool.reconcile(input.call.arguments, { ...contextOf(effect, effectId), signal });
  } catch (error) {
    Context.current().cancellationSignal.throwIfAborted();
    ports.logger.warn('A reconcile hook failed.', {
      effectId,
      error: ports.redactor.text(String(error)),
    });
    return 'unknown';
  }
}
