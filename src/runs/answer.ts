// Answering a human wait (interrupt.md): the value is checked here against the schema frozen in the interrupt's entry,
// the race is decided in the workflow. Used by the API and by the run's page. History is read once, before the message;
// a second time only for one that the workflow refused, because what became of the question is in the log alone.
import { HostError, invalid } from '../rules/errors.ts';
import {
  canonicalAction,
  effectOf,
  hasTwoReasons,
  offeredIn,
  outputsOf,
  type ActionEffect,
} from '../rules/gate-actions.ts';
import { digestOf, sha256Hex } from '../rules/ids.ts';
import {
  canonicalJson,
  isJsonObject,
  jsonBytes,
  type JsonObject,
  type JsonValue,
} from '../rules/json.ts';
import { INLINE_VALUE_BYTES } from '../rules/limits.ts';
import type { ResolveInterruptMessage } from '../rules/messages.ts';
import { principalOf, type Subject } from '../rules/subject.ts';
import { isVote, saidWith, votedFor, votesIn } from '../rules/votes.ts';
import { openInterrupts, type OpenInterrupt } from '../log/fold.ts';
import type { Log } from '../log/log.ts';
import type { RunRef, RunRow } from '../ports/runs.ts';
import { COMPOSED, compileUserSchema } from '../wire/user-schema.ts';
import type { RunsDeps } from './deps.ts';
import { requireFreshHead } from './find.ts';
import { fateOf, type Fate, type Meant } from './interrupt-fate.ts';
import { sendMessage, updateIdFor, type Delivery } from './messages.ts';
import { kept } from './secrets.ts';

/** Of a request that answers. */
const RESUME_VALUE = '/resumeValue';
const ANSWER = { field: RESUME_VALUE, name: 'The answer' };

interface LogDeps {
  readonly log: Pick<Log, 'fresh' | 'questions'>;
}
type AnswerDeps = LogDeps & Pick<RunsDeps, 'engine' | 'redactor'>;

export interface Answer {
  readonly row: RunRow;
  readonly nodeId: string;
  /** The question that the sender saw; absent: whatever is open at the node when this is read. */
  readonly interruptId?: string;
  readonly value: JsonValue;
  readonly resolvedBy: Subject;
}

/**
 * Returns the status that the workflow gave (`resolved`, or `open` for a vote that does not decide yet). Throws
 * validation_error, payload_too_large, interrupt_not_found, interrupt_already_resolved, interrupt_expired,
 * interrupt_gone, interrupt_cancelled, idempotency_key_mismatch, service_unavailable.
 */
export async function answerInterrupt(
  deps: AnswerDeps,
  answer: Answer,
  delivery: Delivery,
): Promise<string> {
  const { row, nodeId } = answer;
  const { binding } = delivery;
  const value = normalized(kept(deps, answer.value, ANSWER));
  const meant: Meant = { nodeId, interruptId: answer.interruptId ?? binding.boundTo };
  // A body that names its interrupt means the same one each time.
  const bind = async (interruptId: string): Promise<void> =>
    answer.interruptId === undefined ? binding.bind(interruptId) : undefined;
  const { head, stale } = await deps.log.fresh(row);
  const open = openInterrupts(head.snapshot).find((interrupt) => isMeant(interrupt, meant));
  if (open?.isUntold) throw untold();
  const fault = open && faultAt(open, value);
  if (stale && !head.closed) {
    // No ground to decide on, but what the sender saw: when the retry comes, the next question may be open.
    if (open && !fault) await bind(open.interruptId);
    throw new HostError('service_unavailable');
  }
  if (fault) throw fault;
  const asked = open ?? (await fateOf(deps.log, row, meant));
  if ('code' in asked && (asked.code === 'interrupt_not_found' || !delivery.isRepeatable))
    throw overError(asked, value);
  const { interruptId = '', resumeSchema } = asked;
  await bind(interruptId);
  const updateId = updateIdFor(delivery, interruptId);
  const question = { ...answer, value, interruptId, resumeSchema };
  return send(deps, question, { updateId, bodyDigest: delivery.bodyDigest });
}

/** The open interrupt that is meant. Throws what became of it, or service_unavailable when that cannot be known. */
export async function requireOpen(
  deps: LogDeps,
  run: RunRef,
  meant: Required<Meant>,
): Promise<OpenInterrupt> {
  const head = await requireFreshHead(deps, run);
  const open = openInterrupts(head.snapshot).find((interrupt) => isMeant(interrupt, meant));
  if (open?.isUntold) throw untold();
  if (!open) throw overError(await fateOf(deps.log, run, meant), null);
  return open;
}

export interface SeenAnswer extends Omit<Answer, 'nodeId' | 'interruptId'> {
  /** Votes and questions back that the question had as its sender saw it. */
  readonly heard: number;
}

/**
 * As answerInterrupt, of a question that requireOpen has just given: nothing is read again, and what came meanwhile is
 * decided by the workflow. The same answer by the same principal to the question as it was seen, sent twice (a double
 * click), is one answer; to the question as it came to be since then, it is another one.
 */
export async function answerOpen(
  deps: AnswerDeps,
  open: OpenInterrupt,
  answer: SeenAnswer,
): Promise<string> {
  const { row, resolvedBy, heard } = answer;
  const { nodeId, interruptId, resumeSchema } = open;
  const value = normalized(kept(deps, answer.value, ANSWER));
  const by = principalOf(resolvedBy);
  const fault = faultAt(open, value) ?? outdated(open, { value, by, heard });
  if (fault) throw fault;
  const bodyDigest = sha256Hex(canonicalJson(answer.value));
  const updateId = `p-${sha256Hex(canonicalJson([row.runId, interruptId, heard, by, bodyDigest]))}`;
  const question = { row, nodeId, interruptId, resumeSchema, value, resolvedBy };
  return send(deps, question, { updateId, bodyDigest });
}

/**
 * Why an old form gives no vote: its sender has voted again since it was shown, or for the same with another reason, and by
 * its id it may be a repeat of what came before that.
 */
function outdated(
  { data }: OpenInterrupt,
  { value, by, heard }: { value: JsonValue; by: string; heard: number },
): HostError | undefined {
  const own = votesIn(data).find(({ voter }) => voter === by);
  if (!own || own.heard <= heard || !isJsonObject(value)) return undefined;
  if (own.of === votedFor(value) && own.said === saidWith(value)) return undefined;
  // A question back takes no vote's place.
  if (!isVote(effectAt(data, value))) return undefined;
  const reason = 'You have voted again since this form was shown. Vote again where you see it.';
  return new HostError('validation_error', { reason });
}

/** What an answer to a gate does. Undefined: it is an answer to another question. */
function effectAt(data: OpenInterrupt['data'], { action }: JsonObject): ActionEffect | undefined {
  return typeof action === 'string' ? effectOf(offeredIn(data), action) : undefined;
}

type Asked = Pick<OpenInterrupt, 'data' | 'resumeSchema'>;

/** An answer that a gate puts out is as large as its outputs, which have why it was given twice. */
function faultAt(
  { data, resumeSchema }: Asked,
  value: JsonValue,
  field = RESUME_VALUE,
): HostError | undefined {
  const fault = faultOf(value, resumeSchema, field);
  if (fault || !isJsonObject(value)) return fault;
  const effect = data.artifactType === 'approval' ? effectAt(data, value) : undefined;
  const isPutOut = effect === 'continue' || effect === 'route';
  if (!isPutOut || jsonBytes(outputsOf(value)) <= INLINE_VALUE_BYTES) return undefined;
  const reason = 'The outputs of the gate have why it was given under both names.';
  return new HostError('payload_too_large', {
    ...{ field, limit: INLINE_VALUE_BYTES, reason },
  });
}

const schemaDigestOf = (schema: JsonObject | undefined): string =>
  digestOf(canonicalJson(schema ?? {}));

/** It is open, and what the sender could have seen of it is not what the run asks. */
function untold(): HostError {
  const reason = 'The log does not tell yet what is asked. Read the question again.';
  return new HostError('service_unavailable', { reason });
}

function isMeant(interrupt: Required<Meant>, { nodeId, interruptId }: Meant): boolean {
  return (
    interrupt.nodeId === nodeId &&
    (interruptId === undefined || interrupt.interruptId === interruptId)
  );
}

/** An answer to the one question, checked. */
interface CheckedAnswer extends Answer {
  readonly interruptId: string;
  readonly resumeSchema: JsonObject | undefined;
}

async function send(
  deps: AnswerDeps,
  { row, nodeId, interruptId, value, resumeSchema, resolvedBy }: CheckedAnswer,
  { updateId, bodyDigest }: Pick<Delivery, 'updateId' | 'bodyDigest'>,
): Promise<string> {
  const message: ResolveInterruptMessage = {
    kind: 'resolve-interrupt',
    nodeId,
    interruptId,
    value,
    schemaDigest: schemaDigestOf(resumeSchema),
    bodyDigest,
    resolvedBy,
  };
  try {
    return await sendMessage(deps, row.runId, { updateId, message });
  } catch (error) {
    const { code: refusal } = error as HostError;
    if (refusal !== 'run_state_conflict' && refusal !== 'interrupt_already_resolved') throw error;
    // It was over when the message came: the log tells how.
    const { snapshot } = await requireFreshHead(deps, row);
    const open = openInterrupts(snapshot).find((one) => one.interruptId === interruptId);
    if (open && schemaDigestOf(open.resumeSchema) !== message.schemaDigest) throw untold();
    throw overError(await fateOf(deps.log, row, message), value, error);
  }
}

/** As the run takes it. Throws validation_error and payload_too_large. */
export function checkedValue(
  value: JsonValue,
  { question, field }: { readonly question: Asked; readonly field: string },
): JsonValue {
  const taken = normalized(value);
  const fault = faultAt(question, taken, field);
  if (fault) throw fault;
  return taken;
}

/** Old names of answers are taken, too. */
function normalized(value: JsonValue): JsonValue {
  return isJsonObject(value) && typeof value.action === 'string'
    ? { ...value, action: canonicalAction(value.action) }
    : value;
}

/** Why a value is no answer under the interrupt's schema. */
function faultOf(
  value: JsonValue,
  schema: JsonObject | undefined,
  field: string,
): HostError | undefined {
  if (jsonBytes(value) > INLINE_VALUE_BYTES)
    return new HostError('payload_too_large', { field, limit: INLINE_VALUE_BYTES });
  if (!schema) return undefined;
  const compiled = compileUserSchema(schema, COMPOSED);
  if (!compiled.ok)
    return new HostError('internal_error', { reason: "the interrupt's schema cannot be used" });
  const checked = compiled.value.validate(value);
  if (!checked.ok) {
    const [first] = checked.errors;
    return invalid(`${field}${first.pointer}`, first.message, { errors: checked.errors });
  }
  const again = answeredAgain(value);
  if (again !== undefined)
    return invalid(
      `${field}/answers/${again}/id`,
      'is answered before, or is no name of an answer',
    );
  const isTwofold = isJsonObject(value) && typeof value.action === 'string' && hasTwoReasons(value);
  return isTwofold
    ? invalid(`${field}/reason`, 'differs from "feedback", and both say why: send one of them')
    : undefined;
}

/** The place in a list of answers of an id that stands in it before, or that no object has: it could not be taken. */
function answeredAgain(value: JsonValue): number | undefined {
  const answers = isJsonObject(value) && Array.isArray(value.answers) ? value.answers : [];
  const ids = answers.map((entry) => (isJsonObject(entry) ? entry.id : undefined));
  const at = ids.findIndex(
    (id, index) => id === '__proto__' || (id !== undefined && ids.indexOf(id) < index),
  );
  return at < 0 ? undefined : at;
}

/** An answer that comes too late is told why, and who answered instead. */
function overError({ code, kind, resolvedBy }: Fate, value: JsonValue, cause?: unknown): HostError {
  // RFC 0005: a turn in a conversation that is closed is not valid.
  const isTurn = isJsonObject(value) && value.operation === 'exchange';
  if (kind === 'conversation.exchange' && isTurn && code === 'interrupt_already_resolved')
    return new HostError('validation_error', { reason: 'The conversation is closed.' }, cause);
  const isAnswered = code === 'interrupt_already_resolved' && resolvedBy !== undefined;
  return new HostError(code, isAnswered ? { resolvedBy } : undefined, cause);
}
