// What a run did, step by step, as two runs are compared (RFC 0054): a step is one visit of a node, with what its model
// was given and said, what it called and got, what it decided, what people answered, what it wrote, and how it ended.
// Times and costs stand beside that: no two runs have the same.
import { comparedPayload, type ComparedRow } from './log-differences.ts';
import { eventRow, type EventPart, type NodeStatus } from './events.ts';
import { isJsonObject, type JsonObject, type JsonValue } from './json.ts';

export interface SteppedRow extends ComparedRow {
  readonly timestampMs: number;
}

export interface StepUse {
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Only where a provider stated a price. */
  readonly usd?: number;
}

export interface RunStep {
  readonly nodeId: string;
  /** 1 for the first. */
  readonly visit: number;
  /** Of its first row. */
  readonly sequence: number;
  readonly startedAtMs: number;
  readonly endedAtMs?: number;
  readonly status: NodeStatus;
  /** Absent: no model was asked. */
  readonly use?: StepUse;
  /** Of its last decision that has one. */
  readonly confidence?: number;
  /** What is compared. */
  readonly did: JsonObject;
}

type Open = { -readonly [Part in keyof RunStep]: RunStep[Part] } & {
  /** Of its calls, by their ids. */
  readonly placeOfCall: Map<JsonValue, number>;
};

/** Adds to a list among what a step did. */
function add(step: Open, list: string, value: JsonObject): void {
  const before = step.did[list];
  if (Array.isArray(before)) before.push(value);
  else step.did[list] = [value];
}

function picked(from: JsonObject, names: Readonly<Record<string, string>>): JsonObject {
  return Object.fromEntries(
    Object.entries(names).flatMap(([name, field]): [string, JsonValue][] => {
      const value = from[field];
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

type Tell = (step: Open, payload: JsonObject) => void;

/** Calls are told before their results, in the order in which they were made. */
function tellReturn(step: Open, payload: JsonObject): void {
  const calls = Array.isArray(step.did.calls) ? (step.did.calls as JsonObject[]) : [];
  const at = step.placeOfCall.get(payload.callId ?? null);
  const result = picked(payload, { status: 'status', result: 'outcome', error: 'error' });
  if (at === undefined) add(step, 'calls', { ...picked(payload, CALL), ...result });
  else calls[at] = { ...calls[at], ...result };
}

function tellCall(step: Open, payload: JsonObject): void {
  const { calls } = step.did;
  const at = Array.isArray(calls) ? calls.length : 0;
  const callId = payload.callId ?? null;
  step.placeOfCall.set(callId, step.placeOfCall.get(callId) ?? at);
  add(step, 'calls', picked(payload, CALL));
}

const CALL = { tool: 'toolName', arguments: 'inputs' };

/** What a model is asked with is told by several events that people are not shown. */
function tellDetail(step: Open, payload: JsonObject): void {
  if (typeof payload.hash === 'string')
    add(step, 'prompts', picked(payload, { hash: 'hash', refs: 'refs' }));
  if (typeof payload.resolvedModel === 'string')
    add(step, 'models', picked(payload, { provider: 'resolvedProvider', model: 'resolvedModel' }));
}

function tellEnd(step: Open, payload: JsonObject): void {
  Object.assign(step.did, picked(payload, { outputs: 'outputs', error: 'error' }));
}

const told =
  (list: string, names: Readonly<Record<string, string>>): Tell =>
  (step, payload) =>
    add(step, list, picked(payload, names));

/** By the part that an event plays. */
const TELLS: Partial<Readonly<Record<EventPart, Tell>>> = {
  'node-ends': tellEnd,
  'node-skipped': (step, payload) => Object.assign(step.did, picked(payload, { reason: 'reason' })),
  detail: tellDetail,
  reasoning: told('reasoning', { text: 'reasoning' }),
  call: tellCall,
  return: tellReturn,
  decision(step, payload) {
    if (typeof payload.confidence === 'number') step.confidence = payload.confidence;
    const names = { agent: 'agentId', decision: 'decision', confidence: 'confidence' };
    add(step, 'decisions', picked(payload, names));
  },
  orchestration: told('decisions', { agent: 'agentId', decision: 'decision' }),
  handoff: told('handoffs', { from: 'fromAgentId', to: 'toAgentId', reason: 'reason' }),
  'wait-asks': told('questions', { kind: 'kind', data: 'data' }),
  'wait-ends': told('answers', { outcome: 'outcome', value: 'resumeValue', reason: 'reason' }),
  turn: told('turns', { first: 'initialTurn', turn: 'turn', last: 'finalTurn' }),
  child: told('children', { workflow: 'childWorkflowId', status: 'childStatus' }),
  variable: told('variables', { name: 'name', value: 'next' }),
  channel: told('writes', { channel: 'channel', value: 'value', reducer: 'reducer' }),
  limit: told('limits', { kind: 'kind', limit: 'limit', observed: 'observed' }),
  unusable: told('unusable', { reason: 'finalReason', error: 'finalError' }),
};

/** In the order in which they began. What stands at no node is no step. */
export function stepsOf(rows: readonly SteppedRow[]): RunStep[] {
  const steps: RunStep[] = [];
  const fold = new StepFold((step) => void steps.push(step));
  for (const row of rows) fold.take(row);
  fold.end();
  return steps.sort((one, other) => one.sequence - other.sequence);
}

/** Steps of a log that is read row by row: holds one of each node. */
export class StepFold {
  readonly #last = new Map<string, Open>();
  readonly #whole: (step: RunStep) => void;
  readonly #kept: Kept;

  /** `whole` takes each step when nothing comes to it any more: at the next visit of its node, or at the end. */
  constructor(whole: (step: RunStep) => void, kept: Kept = asItIs) {
    this.#whole = whole;
    this.#kept = kept;
  }

  take(row: SteppedRow): void {
    const compared = comparedPayload(row);
    if (!isJsonObject(compared)) return;
    const nodeId = row.nodeId ?? compared.nodeId;
    if (typeof nodeId !== 'string') return;
    const members = Object.entries(compared);
    const payload = Object.fromEntries(
      members.map(([name, value]) => [name, this.#kept(value, name)]),
    );
    const before = this.#last.get(nodeId);
    const step = before && !begins(row, payload, before) ? before : begun(row, nodeId, before);
    if (before && step !== before) this.#whole(stepOf(before));
    this.#last.set(nodeId, step);
    takeRow(step, row, payload);
  }

  end(): void {
    for (const step of this.#last.values()) this.#whole(stepOf(step));
    this.#last.clear();
  }
}

/** What is kept of the value of a member of a payload. */
type Kept = (value: JsonValue, name: string) => JsonValue;

function asItIs(value: JsonValue): JsonValue {
  return value;
}

/** Calls are held against each other by their order: their ids tell nothing more. */
function stepOf({ placeOfCall: _, ...step }: Open): RunStep {
  return step;
}

/** A visit begins with its first attempt, or is skipped as a whole. */
function begins({ type }: SteppedRow, { attempt = 0 }: JsonObject, { did }: RunStep): boolean {
  const { part } = eventRow(type);
  // What is stated of a node before it starts belongs to its first visit.
  if (part === 'node-starts') return attempt === 0 && did.attempts !== undefined;
  return part === 'node-skipped';
}

function begun(
  { sequence, timestampMs }: SteppedRow,
  nodeId: string,
  before: RunStep | undefined,
): Open {
  const visit = (before?.visit ?? 0) + 1;
  const began = { nodeId, visit, sequence, startedAtMs: timestampMs };
  return { ...began, status: 'running', did: {}, placeOfCall: new Map() };
}

function takeRow(step: Open, row: SteppedRow, payload: JsonObject): void {
  const { part, node } = eventRow(row.type);
  if (node !== null) step.status = node;
  if (part === 'node-starts') {
    const { attempts } = step.did;
    step.did.attempts = (typeof attempts === 'number' ? attempts : 0) + 1;
  }
  if (part === 'node-ends' || part === 'node-skipped') step.endedAtMs = row.timestampMs;
  if (part === 'usage') step.use = summed(step.use, JSON.parse(row.payload) as JsonObject);
  TELLS[part]?.(step, payload);
}

function summed(before: StepUse | undefined, payload: JsonObject): StepUse {
  const { inputTokens, outputTokens, costEstimateUsd: usd } = payload;
  const known = before?.usd !== undefined || typeof usd === 'number';
  return {
    inputTokens: (before?.inputTokens ?? 0) + numberOr0(inputTokens),
    outputTokens: (before?.outputTokens ?? 0) + numberOr0(outputTokens),
    ...(known ? { usd: (before?.usd ?? 0) + numberOr0(usd) } : {}),
  };
}

function numberOr0(value: JsonValue | undefined): number {
  return typeof value === 'number' ? value : 0;
}
