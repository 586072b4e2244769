// One effect under the ledger (architecture §5): claimed before it is performed, settled before anybody learns of it. A
// crash in between leaves a lease that runs out, and the effect is in doubt: nothing is repeated silently.
//
// claim says   | what happens
// -------------|------------------------------------------------------------------------------------
// perform      | the tool is called under timeout, heartbeat and lease, then the row is settled
// done, failed | the recorded outcome or error, nothing is performed
// busy         | a later try asks again when the lease ends
// in-doubt     | the tool's reconcile hook is asked; who cannot tell leaves it to a human
// differs      | a human decides: another call of the tool stands in the way
// run-closed   | refused
import { Context } from '@temporalio/activity';
import { ERRORS, HostError } from '../src/rules/errors.ts';
import { eventIdOf } from '../src/rules/ids.ts';
import { canonicalJson, utf8Length, type JsonValue } from '../src/rules/json.ts';
import { INHERITED_EPOCH, seriesOf } from '../src/rules/run-input.ts';
import { maskedAt } from '../src/rules/redaction.ts';
import type {
  EffectClaim,
  EffectIdentity,
  EffectRecall,
  LostEffect,
  HumanWord,
  OpenEffect,
  ShownCall,
} from '../src/ports/effects.ts';
import type { Tool, ToolCallContext, ToolProgress } from '../src/ports/tools.ts';
import { abortAfter, Moment, within } from '../src/system/time.ts';
import { checkAgainst } from '../src/wire/user-schema.ts';
import type { CallToolInput, StepContext } from './contract.ts';
import { failure } from './failures.ts';
import type { ActivityPorts } from './ports.ts';
import {
  happened,
  readToolFailure,
  toolError,
  type FailedCall,
  type ToolError,
} from './tool-errors.ts';
import { shownWith, standingReason } from './standing.ts';
import { untilStored } from './until-stored.ts';
import { readJson, writeJson } from './transcript.ts';
import { ownFailures } from './tries.ts';

/** Lease of a claim in ms: how long a crashed worker keeps an effect busy. */
const EFFECT_LEASE_MS = 10_000;
/** ms between two renewals of a lease. */
const LEASE_RENEWAL_MS = 3_000;
/** Of a lease that was renewed for it a call is sent within this, in ms. */
const SENT_WITHIN_MS = 6_000;
/** ms added to the end of somebody else's lease before asking again. */
const BUSY_MARGIN_MS = 250;
/** Failures of the step itself after which the model gets the error instead of another try. */
const MAX_TOOL_TRIES = 4;
/** ms that a reconcile hook has after its time limit to return. */
const RECONCILE_GRACE_MS = 1_000;
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
  | {
      readonly kind: 'in-doubt';
      readonly effectId: string;
      readonly reason: string;
      /** Of its row, where it has one: a human's word is about that. Without it this call was not made. */
      readonly epoch?: number;
      /** Of a call that was not made: the earlier calls that the reason names, and those that a human was shown before. */
      readonly shown?: readonly ShownCall[];
    };

/** A call whose effect may be known, whether or not it can be performed now. */
export interface KnownEffect {
  readonly ports: ActivityPorts;
  readonly input: CallToolInput;
  /** Absent when nobody has it any more. */
  readonly tool: Tool | undefined;
  readonly onProgress?: (progress: ToolProgress) => void;
}

interface Effect extends KnownEffect {
  readonly tool: Tool;
}

type Settled = Exclude<EffectResult, { kind: 'in-doubt' }>;
type Perform = Extract<EffectClaim, { kind: 'perform' }>;
type PerformWord = Extract<CallToolInput['resolution'], { kind: 'perform' }>;
type Word = Extract<CallToolInput['resolution'], { kind: 'skip' | 'happened' }>;

export async function performEffect(effect: Effect): Promise<EffectResult> {
  const { resolution } = effect.input;
  if (resolution?.kind === 'unreached') return settleUnreached(effect);
  // A human's "perform" holds for one claim: were it to hold for later ones, a crash after the effect would repeat it.
  const word = resolution?.kind === 'perform' ? resolution : undefined;
  const claimedAt = new Moment();
  const { claim, shown } = await claimByWord(effect, word);
  return claim.kind === 'perform'
    ? perform(effect, claim, claimedAt)
    : follow(effect, claim, shown);
}

interface ByWord {
  readonly claim: EffectClaim;
  /** What the human was shown by whose word it is. */
  readonly shown: readonly ShownCall[];
}

/**
 * A question that a branch has of its source named calls of that: what the branch has of them is what was shown, where it would
 * ask the same about as many, and nothing else is known of them since.
 */
async function claimByWord(effect: Effect, word: PerformWord | undefined): Promise<ByWord> {
  const claim = await claimEffect(effect, word);
  const { asked, askedAbout, shown = [] } = word ?? {};
  if (claim.kind !== 'differs' || asked === undefined) return { claim, shown };
  const { earlier } = claim;
  const isInherited = earlier.every(({ epoch }) => epoch === INHERITED_EPOCH);
  const isSame = standingReason(claim, effect.input.context) === asked;
  if (!isInherited || !isSame || earlier.length !== askedAbout) return { claim, shown };
  const wider = shownWith(shown, earlier);
  return { claim: await claimEffect(effect, { ...word, shown: wider }), shown: wider };
}

/** Nobody took the call in time. One that may have been sent before is no failure: it is asked about. */
async function settleUnreached(effect: Effect): Promise<EffectResult> {
  const error = toolError('agent_unavailable');
  return (await effectBehindFailure(effect, error)) ?? { kind: 'error', error };
}

/** Calls that were not performed since their run has ended. */
const refused = new WeakSet<Context>();

/** Of the call that is at work: its run has ended. No code says so, which others might throw as well. */
export const isOfEndedRun = (): boolean => refused.has(Context.current());

/** A doubt about it goes to a human: told as an error it would be asked for again under another key, and paid twice. */
export function isAskedAbout({
  idempotent,
  safetyTier,
}: Pick<Tool, 'idempotent' | 'safetyTier'>): boolean {
  return idempotent !== true || safetyTier === 'write';
}

/** A tool that does not say so is not. */
function isIdempotent(tool: Tool | undefined): boolean {
  return tool?.idempotent === true;
}

/** Why the outcome that a human gave cannot be recorded as it is: a sentence. */
export function wordFault({ ports, tool, input }: KnownEffect): string | undefined {
  const { resolution } = input;
  if (resolution?.kind !== 'happened' || resolution.isSupposed) return undefined;
  const { outcome } = resolution;
  const at = maskedAt(ports.redactor, outcome);
  if (at !== undefined) return `What is written at ${at || '/'} looks like a secret.`;
  return tool && outcomeFault(tool, outcome)?.message;
}

/** A human's word that performs nothing: leave it, or it happened with this outcome. What is known stands above it. */
export async function settleByWord(effect: KnownEffect, word: Word): Promise<EffectResult> {
  if (word.kind === 'happened') {
    const claim = await claimEffect(effect, 'settles');
    return claim.kind === 'perform'
      ? settleDone(effect, claim, effect.ports.redactor.json(word.outcome))
      : follow(effect, claim);
  }
  const { ports, input } = effect;
  const known = await ports.stores.effects.recall(identityOf(input));
  // It was made while the question was open: the agent is told both, the no and that it came too late.
  if (known?.kind === 'done' && word.isRefusal)
    return { kind: 'error', error: skipped(effect, word, REFUSED_TOO_LATE) };
  if (known && known.kind !== 'in-doubt') return follow(effect, known);
  const said = known ? LEFT_IN_DOUBT : ERRORS.effect_skipped.message;
  return { kind: 'error', error: skipped(effect, word, said) };
}

/** The agent is given the human's reason: data that nobody vouches for, like every answer. */
function skipped(
  { ports }: KnownEffect,
  { reason }: Extract<Word, { kind: 'skip' }>,
  said: string,
): ToolError {
  if (reason === undefined) return toolError('effect_skipped', said);
  return toolError('effect_skipped', `${said} The reason given: ${ports.redactor.text(reason)}`);
}

/**
 * Before a call fails for good, whatever ended it: the outcome of its effect, or a doubt that a human decides. `error` is of a
 * doubt that nobody is asked about. Undefined: it was not performed.
 */
export async function effectBehindFailure(
  effect: KnownEffect,
  error: ToolError = toolError('tool_failed', 'It is not known what came of the call.'),
): Promise<EffectResult | undefined> {
  const { ports, input } = effect;
  const known = await ports.stores.effects.recall(identityOf(input));
  if (known?.kind === 'in-doubt' && !known.isAsked) return { kind: 'error', error };
  return known && follow(effect, known);
}

/** What became of the effect of a call that is refused now. Undefined: it was not performed. */
export async function recallEffect(effect: KnownEffect): Promise<EffectResult | undefined> {
  const known = await effect.ports.stores.effects.recall(identityOf(effect.input));
  return known && follow(effect, known);
}

function identityOf({ context, call }: CallToolInput): EffectIdentity {
  const { tenant, runId, nodeId, visit } = context;
  const { toolId, argsHash, occurrence } = call;
  return { tenant, runId, nodeId, visit, toolId, argsHash, occurrence, ...kinOf(context) };
}

/** Whose calls a run's own are held against. */
export function kinOf({
  header,
  runId,
}: Pick<StepContext, 'header' | 'runId'>): Pick<EffectIdentity, 'rootRunId' | 'series'> {
  return { rootRunId: header.correlationId, series: seriesOf(header, runId) };
}

function claimEffect(
  { ports, input, tool }: KnownEffect,
  force: HumanWord | undefined,
): Promise<EffectClaim> {
  const options = {
    idempotent: isIdempotent(tool),
    isHarmless: tool !== undefined && !isAskedAbout(tool),
    hasLeftCalls: input.hasLeftCalls === true,
    leaseMs: EFFECT_LEASE_MS,
    force,
  };
  return ports.stores.effects.claim(identityOf(input), input.context.attempt, options);
}

/** What a human who leaves a doubt does not settle. */
const LEFT_IN_DOUBT =
  'A human decided not to perform the effect again. Whether it happened is unknown.';

/** What a human who refuses a call does not undo. */
const REFUSED_TOO_LATE =
  'A human decided not to perform the effect. But the same call had been made earlier, and happened.';

type Followed = EffectRecall | Exclude<EffectClaim, { kind: 'perform' }>;

/** `shown`: to the human by whose word it was claimed. */
async function follow(
  effect: KnownEffect,
  claim: Followed,
  shown: readonly ShownCall[] = [],
): Promise<EffectResult> {
  const { content } = effect.ports.stores;
  const { tenant } = effect.input.context;
  switch (claim.kind) {
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
        reason: standingReason(claim, effect.input.context),
        shown: shownWith(shown, claim.earlier),
      };
    case 'run-closed':
      refused.add(Context.current());
      throw new HostError('run_state_conflict', {
        reason: 'The run has ended: no effect is performed for it.',
      });
  }
}

async function perform(effect: Effect, claim: Perform, claimedAt: Moment): Promise<EffectResult> {
  const { ports, tool, input } = effect;
  await holdLease(effect, claim, claimedAt);
  const startedMs = Date.now();
  const answer = await callUnderLease(effect, claim);
  const durationMs = Date.now() - startedMs;
  if (answer.kind === 'answered') {
    const outcome = ports.redactor.json(answer.outcome ?? null);
    const fault = outcomeFault(tool, outcome);
    const result = await untilStored<Settled>(() =>
      fault ? settleFailed(effect, claim, happened(fault)) : settleDone(effect, claim, outcome),
    );
    return { ...result, durationMs };
  }
  // What an earlier sending may have done is not undone by one that was refused, or did not get as far.
  const isRefused = answer.kind === 'final';
  if (isRefused && (answer.happened || !claim.inDoubt || !claim.isAsked))
    return { ...(await untilStored(() => settleFailed(effect, claim, answer))), durationMs };
  const isUnknown = answer.kind === 'unknown' || claim.inDoubt;
  const state = isUnknown ? 'in-doubt' : 'failed-before-send';
  await untilStored(() => isSettled(effect, { claim, state }));
  Context.current().cancellationSignal.throwIfAborted();
  // An absent agent is waited for, durably: on the queue of its calls, as long as the run's step permits. One that a
  // call has ended is not: a call that kills its agent must not do so for ever.
  const isAbsent = answer.kind === 'before-send' && answer.error.code === 'agent_unavailable';
  // Asked again it would be refused again.
  const isFinal = answer.kind === 'before-send' && answer.isFinal === true;
  const isOver = (isLastTry() || isFinal) && !isAbsent;
  if (isUnknown && (tool.idempotent !== true || isRefused || (isOver && claim.isAsked)))
    return reconcile(effect, claim, claim.inDoubt ? answer : undefined);
  if (isOver) {
    return { kind: 'error', error: answer.error, durationMs };
  }
  const { effectId } = claim;
  ports.logger.info('A tool call is tried again.', { runId: input.context.runId, effectId });
  throw failure(answer.error.code, { message: answer.error.message, retryable: true });
}

function isLastTry(): boolean {
  return ownFailures() + 1 >= MAX_TOOL_TRIES;
}

/**
 * Before the call: a process that was stopped since its claim, as by a sleep of its machine, looks whether the effect is still its
 * own. Nothing was sent where it is not.
 */
async function holdLease(effect: Effect, claim: Perform, claimedAt: Moment): Promise<void> {
  let heldAt = claimedAt;
  // A slow database is no stop: once the claim was seen to hold, most of its lease is enough.
  for (let mostMs = LEASE_RENEWAL_MS; heldAt.agoMs() >= mostMs; mostMs = SENT_WITHIN_MS) {
    heldAt = new Moment();
    if (!(await untilStored(() => renewed(effect, claim))))
      throw failure('service_unavailable', { message: 'The claim of an effect was lost.' });
  }
}

type Answer = { readonly kind: 'answered'; readonly outcome: JsonValue } | FailedCall;

/** Calls the tool; the lease is renewed meanwhile. Who loses the lease must not use the answer. */
async function callUnderLease(effect: Effect, claim: Perform): Promise<Answer> {
  const { ports, tool } = effect;
  const { effectId } = claim;
  const stop = new AbortController();
  let isLost = false;
  const renewal = setInterval(() => {
    renewed(effect, claim).then(
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

/** False: somebody else decides about the effect. */
async function renewed(effect: Effect, claim: Perform): Promise<boolean> {
  const leaseMs = EFFECT_LEASE_MS;
  const isHeld = await effect.ports.stores.effects.renew(claim.effectId, claim.epoch, leaseMs);
  return isHeld || putBack(effect, { claim, state: 'claimed', leaseMs });
}

function contextOf(
  { tool, input }: KnownEffect,
  effectId: string,
): Omit<ToolCallContext, 'signal' | 'onProgress'> {
  const { tenant, runId, header, nodeId, workflowId, principal } = input.context;
  const { calledKey, approvedBy, call } = input;
  const cause = typeof calledKey === 'string' ? { runId, key: calledKey } : calledKey;
  const directive = approvedBy ?? (tool?.remote?.approval === 'none' ? 'policy' : undefined);
  return {
    tenant,
    runId,
    correlationId: header.correlationId,
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
  const checked = checkAgainst(tool.outputSchema, outcome);
  if (checked.ok) return undefined;
  const [{ pointer, message }] = checked.errors;
  return toolError(
    'tool_invalid_output',
    `The result does not match the tool's schema: ${pointer || '/'} ${message}.`,
  );
}

async function settleDone(
  effect: KnownEffect,
  claim: OpenEffect,
  outcome: JsonValue,
): Promise<Extract<EffectResult, { kind: 'done' }>> {
  const { ports, input } = effect;
  const hash = await writeJson(ports.stores.content, input.context, outcome);
  await settle(effect, { claim, state: 'done', hash });
  return { kind: 'done', outcome, hash };
}

async function settleFailed(
  effect: KnownEffect,
  claim: OpenEffect,
  { error, happened: isDone }: Extract<FailedCall, { kind: 'final' }>,
): Promise<Extract<EffectResult, { kind: 'error' }>> {
  const { ports, input } = effect;
  const hash = await writeJson(ports.stores.content, input.context, error);
  const state = isDone ? 'done-without-result' : 'failed-final';
  await settle(effect, { claim, state, hash });
  return { kind: 'error', error };
}

interface Settlement {
  readonly claim: OpenEffect;
  readonly state: LostEffect['state'];
  readonly hash?: string;
  readonly leaseMs?: number;
}

/** A lost epoch means that somebody else decides about this effect: a later try reads what they decided. */
async function settle(
  effect: KnownEffect,
  settlement: Parameters<typeof isSettled>[1],
): Promise<void> {
  if (await isSettled(effect, settlement)) return;
  throw failure('service_unavailable', { message: 'The claim of an effect was lost.' });
}

async function isSettled(
  effect: KnownEffect,
  settlement: Settlement & { readonly state: Exclude<LostEffect['state'], 'claimed'> },
): Promise<boolean> {
  const { claim, state, hash } = settlement;
  const { effectId, epoch } = claim;
  const isThere = await effect.ports.stores.effects.settle(effectId, epoch, state, hash);
  return isThere || putBack(effect, settlement);
}

/** A claim that a failover of the database has lost is noted again, with what it came to: nothing is performed for it twice. */
async function putBack(
  { ports, input, tool }: KnownEffect,
  { claim, state, hash, leaseMs }: Settlement,
): Promise<boolean> {
  const { runId, attempt } = input.context;
  const { effectId, epoch, isAsked, isForeign } = claim;
  const isBack = await ports.stores.effects.putBack({
    ...{ identity: identityOf(input), attempt, epoch, isAsked, isForeign, state },
    idempotent: isIdempotent(tool),
    ...(hash === undefined ? {} : { outcomeHash: hash }),
    ...(leaseMs === undefined ? {} : { leaseMs }),
  });
  if (isBack)
    ports.logger.warn('The database had lost the claim of an effect.', { runId, effectId });
  return isBack;
}

/** `again`: how another sending of it ended, where that says nothing of the former one. */
async function reconcile(
  effect: KnownEffect,
  claim: OpenEffect,
  again?: FailedCall,
): Promise<EffectResult> {
  const { ports, input } = effect;
  const { effectId, epoch, isForeign } = claim;
  const told = epoch === INHERITED_EPOCH ? 'unknown' : await askTool(effect, effectId);
  if (told === 'unknown' || (isForeign && !told.happened))
    return { kind: 'in-doubt', effectId, reason: doubtReason(again), epoch };
  if (told.happened) return settleDone(effect, claim, ports.redactor.json(told.outcome));
  if (again?.kind === 'final') return settleFailed(effect, claim, again);
  await ports.stores.effects.settle(effectId, epoch, 'failed-before-send');
  ports.logger.info('An effect in doubt did not happen.', { runId: input.context.runId, effectId });
  if (isLastTry()) return { kind: 'error', error: toolError('tool_failed') };
  throw failure('tool_failed', {
    message: `An effect of ${input.call.toolId} did not happen and is tried again.`,
    retryable: true,
  });
}

const DOUBT = 'The effect may or may not have happened.';
/** How another sending ended that did not happen. */
const AGAIN = {
  'before-send': 'It was to be sent again, which failed on this host',
  final: 'It was sent again, which was refused',
};

function doubtReason(again: FailedCall | undefined): string {
  if (!again || again.kind === 'unknown') return DOUBT;
  const { message } = again.error;
  const end = /[.!?]$/.test(message) ? '' : '.';
  return `${DOUBT} ${AGAIN[again.kind]}: ${message}${end} What the former sending came to is still unknown.`;
}

async function askTool(
  effect: KnownEffect,
  effectId: string,
): Promise<Awaited<ReturnType<NonNullable<Tool['reconcile']>>>> {
  const { ports, tool, input } = effect;
  if (!tool?.reconcile) return 'unknown';
  const limit = abortAfter(tool.timeoutMs, new HostError('tool_timeout'));
  const signal = AbortSignal.any([Context.current().cancellationSignal, limit.signal]);
  const context = { ...contextOf(effect, effectId), signal };
  try {
    // A hook that does not heed its signal is left.
    return await within(
      tool.timeoutMs + RECONCILE_GRACE_MS,
      tool.reconcile(input.call.arguments, context),
      () => 'unknown' as const,
    );
  } catch (error) {
    Context.current().cancellationSignal.throwIfAborted();
    ports.logger.warn('A reconcile hook failed.', {
      effectId,
      error: ports.redactor.text(String(error)),
    });
    return 'unknown';
  } finally {
    limit.clear();
  }
}
