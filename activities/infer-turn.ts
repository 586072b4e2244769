// inferTurn: one model call of an invocation (RFC 0077 §B step 5). Reasoning goes to the log live; what the call comes
// to is redacted, bounded and valid before it is returned, because what is returned is recorded for ever.
import { Context } from '@temporalio/activity';
import { HostError } from '../src/rules/errors.ts';
import { sha256Hex } from '../src/rules/ids.ts';
import type { ActivityEvent, RecordedDeltas, StepResult } from '../src/rules/journal.ts';
import { jsonBytes, utf8Length } from '../src/rules/json.ts';
import { INLINE_VALUE_BYTES, MAX_CALLS_PER_TURN, MODEL_OUTPUT_BYTES } from '../src/rules/limits.ts';
import { boundText } from '../src/rules/tokens.ts';
import { wrapUntrusted } from '../src/rules/untrusted.ts';
import type { ResolvedAgent } from '../src/ports/catalog.ts';
import type {
  ModelRequest,
  ModelResponse,
  ToolDescription,
  TranscriptItem,
} from '../src/ports/models.ts';
import type { AskedQuestion, InferTurnInput, InferTurnOutput, RequestedCall } from './contract.ts';
import {
  outputSchema,
  parseDecision,
  returnSchemasOf,
  returnViolation,
  type ParsedDecision,
} from './decision.ts';
import { excessOf, excessOfCalls, isLarge } from './excess.ts';
import { handoffTool, loadHandoffs, readHandoff, type Handoffs } from './handoffs.ts';
import { abortAfter } from '../src/system/time.ts';
import { beating } from './heartbeat.ts';
import type { ActivityPorts } from './ports.ts';
import { placeOf } from './place.ts';
import { composeFirst } from './prompts.ts';
import { openReasoning, reasonedEvent, reasoningBytes } from './reasoning-writer.ts';
import { untilStored } from './until-stored.ts';
import { appendTranscript, linkCalls, loadTranscript, readJson } from './transcript.ts';
import { msLeft } from './tries.ts';

/** Most bytes of one tool result that are fed to the model. */
const TOOL_TEXT_BYTES = 128 * 1024;
/** It counts as a failure of the model's: the next try asks again. */
const TOO_LONG = 'The model took longer for one answer than permitted.';
/** Longest refusal text in bytes. */
const REFUSAL_BYTES = 2048;
/** Most bytes of why an answer is unusable: it repeats names that the model gave. */
const UNUSABLE_BYTES = 2048;

export async function inferTurn(
  ports: ActivityPorts,
  input: InferTurnInput,
): Promise<StepResult<InferTurnOutput>> {
  return beating(async () => {
    const { content } = ports.stores;
    const { tenant } = input.context;
    const agent = await readJson<ResolvedAgent>(content, tenant, input.agent.manifestHash);
    const { items: loaded, excessTold } = await loadTranscript(content, tenant, input.transcript);
    const before = input.agent.isOverlaid ? spokenBy(ports, agent, loaded) : loaded;
    const added = await addedItems(ports, input, before);
    const tools = await ports.tools.find(tenant, input.tools);
    const handoffs = await loadHandoffs(ports, tenant, input.handoffs);
    const items = linkCalls([...before, ...added]);
    const request = requestOf({ input, agent, items, tools, handoffs });
    const { response, reasoning, deltas } = await inferLive(ports, input, request);
    const read = readResponse(ports, { ...input, agent, handoffs }, response);
    const spoken = read.kind === 'excess' ? spokenInExcess(read, excessTold) : read;
    const assistant = assistantItem(ports, { response, reasoning, spoken });
    const run = input.context;
    const isTold = excessTold ?? read.kind === 'excess';
    const said = { items: [...added, assistant], ...(isTold ? { excessTold: true as const } : {}) };
    const transcript = await untilStored(() =>
      appendTranscript({ content, run }, input.transcript, said),
    );
    return {
      output: { transcript, ...spoken },
      events: eventsOf(ports, input, { response, reasoning, spoken }),
      ...(deltas ? { deltas } : {}),
    };
  });
}

/** What the agent was told first, as it says now. */
function spokenBy(
  { redactor }: ActivityPorts,
  agent: ResolvedAgent,
  items: readonly TranscriptItem[],
): readonly TranscriptItem[] {
  const [system] = composeFirst(agent, null).map((item) => redactor.json(item));
  return items.map((item) => (item.role === 'system' && system ? system : item));
}

/** Results of the previous turn's calls, and the request for repair. */
async function addedItems(
  ports: ActivityPorts,
  input: InferTurnInput,
  before: readonly TranscriptItem[],
): Promise<TranscriptItem[]> {
  const last = before.at(-1);
  const calls = last?.role === 'assistant' ? last.calls : [];
  const items: TranscriptItem[] = [];
  for (const [index, { callId, resultHash }] of input.results.entries()) {
    const toolId = calls[index]?.toolId ?? 'unknown';
    const raw = await ports.stores.content.get(input.context.tenant, resultHash);
    const text = boundText(new TextDecoder().decode(raw), TOOL_TEXT_BYTES);
    items.push({ role: 'tool', callId, toolId, text: wrapUntrusted(text, toolId) });
  }
  if (input.repair !== undefined) {
    const text = `Your last output was not usable: ${input.repair}\nGive your output again, as asked.`;
    items.push({ role: 'user', text, trusted: true });
  }
  return items.map((item) => ports.redactor.json(item));
}

/** What was said. Calls that are not performed are kept as text: the model has to see what it is asked to mend. */
function assistantItem(
  { redactor }: ActivityPorts,
  { response, reasoning, spoken }: Turn,
): TranscriptItem {
  const isUnusable = spoken.kind === 'invalid';
  const calls = isUnusable
    ? response.calls
        .map((call) => redactor.json(call))
        .map(({ toolId, arguments: sent }) => `${toolId} ${JSON.stringify(sent)}`)
    : [];
  const said = [redactor.text(response.final), ...calls].filter(Boolean).join('\n');
  return {
    role: 'assistant',
    text: [reasoning, isUnusable ? boundedOutput(said) : said].filter(Boolean).join('\n'),
    calls: spoken.kind === 'calls' ? pendingCalls(spoken.calls) : [],
  };
}

/** No more of an output that cannot be used than a value may hold. */
function boundedOutput(output: string): string {
  const kept = boundText(output, INLINE_VALUE_BYTES);
  return kept === output ? output : `${kept} [${utf8Length(output)} bytes in all]`;
}

/** The workflow gives a call its id only when it schedules it: until then its place stands for it. */
function pendingCalls(
  calls: Extract<InferTurnOutput, { kind: 'calls' }>['calls'],
): Extract<TranscriptItem, { role: 'assistant' }>['calls'] {
  return calls.map((call, index) => ({ ...call, callId: `pending-${index}` }));
}

function requestOf(turn: {
  input: InferTurnInput;
  agent: ResolvedAgent;
  items: readonly TranscriptItem[];
  tools: ReadonlyMap<string, ToolDescription>;
  handoffs: Handoffs;
}): ModelRequest {
  const { input, agent, items, tools, handoffs } = turn;
  const described = (toolId: string): ToolDescription | undefined => {
    const target = handoffs.get(toolId);
    return target ? handoffTool(toolId, target) : tools.get(toolId);
  };
  const { temperature, maxTokens } = input.configurable;
  return {
    provider: input.model.provider,
    model: input.model.model,
    agentId: input.agent.agentId,
    items,
    tools: input.tools.flatMap((toolId) => described(toolId) ?? []),
    outputSchema: outputSchema(returnSchemasOf(agent, input.orchestrates)[0]),
    ...(typeof temperature === 'number' ? { temperature } : {}),
    ...(typeof maxTokens === 'number' ? { maxOutputTokens: maxTokens } : {}),
    idempotencyKey: sha256Hex(`${input.context.runId}\0${input.context.activityId}`),
  };
}

interface LiveAnswer {
  readonly response: ModelResponse;
  /** Redacted, whole. */
  readonly reasoning: string;
  readonly deltas?: RecordedDeltas;
}

/** Calls the model; its reasoning goes to the log as it comes, unless verbosity is off. */
async function inferLive(
  ports: ActivityPorts,
  input: InferTurnInput,
  request: ModelRequest,
): Promise<LiveAnswer> {
  const { runId } = input.context;
  if (input.said !== undefined) return { response: saidBy(request, input.said), reasoning: '' };
  const live = input.verbosity === 'off' ? undefined : await openReasoning(ports, input);
  const tooLarge = new AbortController();
  const tooLong = abortAfter(msLeft());
  const { cancellationSignal } = Context.current();
  const signal = AbortSignal.any([cancellationSignal, tooLarge.signal, tooLong.signal]);
  let said = 0;
  const onReasoning = (piece: string): void => {
    said += utf8Length(piece);
    if (said > MODEL_OUTPUT_BYTES) tooLarge.abort(new HostError('model_output_too_large'));
    else live?.push(piece);
  };
  const cutOff = (error: unknown): never => {
    if (tooLarge.signal.aborted) throw new HostError('model_output_too_large', { runId }, error);
    if (tooLong.signal.aborted)
      throw new HostError('model_unavailable', { reason: TOO_LONG }, error);
    throw error;
  };
  try {
    const response = await ports.models
      .get(request.provider)
      .infer(request, { signal, onReasoning })
      .catch(cutOff);
    checkSize(response);
    const deltas = live && (await untilStored(() => live.close()));
    const reasoning = live?.text ?? ports.redactor.text(response.reasoning);
    return { response, reasoning, ...(deltas ? { deltas } : {}) };
  } catch (error) {
    await live?.abandon();
    throw error;
  } finally {
    tooLong.clear();
  }
}

/** Nothing is spent: nobody is asked. */
function saidBy({ model }: ModelRequest, final: string): ModelResponse {
  const usage = { inputTokens: 0, outputTokens: 0 };
  return { kind: 'final', reasoning: '', calls: [], final, usage, model };
}

function checkSize(response: ModelResponse): void {
  const { reasoning, final, calls } = response;
  const bytes = utf8Length(reasoning) + utf8Length(final) + jsonBytes(calls);
  if (bytes > MODEL_OUTPUT_BYTES) throw new HostError('model_output_too_large');
}

/** One member of the union at a time, without the transcript. */
type Spoken = InferTurnOutput extends infer Member
  ? Member extends InferTurnOutput
    ? Omit<Member, 'transcript'>
    : never
  : never;

/** More than a turn may hold. */
interface Excess {
  readonly kind: 'excess';
  readonly message: string;
  /** What it comes to where the model was told before; absent: the node fails with payload_too_large. */
  readonly again: Spoken | undefined;
}

/** The model is told once: what it gives too much of then fails the node. Throws HostError payload_too_large. */
function spokenInExcess({ message, again }: Excess, excessTold: boolean | undefined): Spoken {
  if (!excessTold) return { kind: 'invalid', violation: 'form', message };
  if (again === undefined) throw new HostError('payload_too_large', { reason: message });
  return again;
}

/** What a model's answer came to. */
interface Turn {
  readonly response: ModelResponse;
  /** Redacted. */
  readonly reasoning: string;
  readonly spoken: Spoken;
}

/** Who speaks, and how much of the reasoning may be shown. */
interface Speaker extends Pick<InferTurnInput, 'verbosity' | 'orchestrates'> {
  readonly agent: ResolvedAgent;
  readonly handoffs: Handoffs;
}

function readResponse(
  ports: ActivityPorts,
  speaker: Speaker,
  response: ModelResponse,
): Spoken | Excess {
  switch (response.kind) {
    case 'refusal':
      return { kind: 'refusal' };
    case 'truncated':
      return {
        kind: 'invalid',
        violation: 'form',
        message: 'The output was cut at its length limit.',
      };
    case 'unusable':
      return {
        kind: 'invalid',
        violation: 'form',
        message: boundText(
          ports.redactor.text(response.unusable ?? 'The output cannot be read.'),
          UNUSABLE_BYTES,
        ),
      };
    case 'calls':
      return readCalls(ports, speaker, response);
    case 'final': {
      const parsed = ports.redactor.json(parseDecision(response.final));
      if (!parsed.ok) return { kind: 'invalid', violation: 'form', message: parsed.message };
      if (parsed.kind === 'clarification') return readQuestions(parsed.questions);
      return readDecision(speaker, parsed);
    }
  }
}

function readCalls(
  ports: ActivityPorts,
  { handoffs }: Speaker,
  response: ModelResponse,
): Spoken | Excess {
  const calls = response.calls.map((call) =>
    ports.redactor.json({ toolId: call.toolId, arguments: call.arguments }),
  );
  const message = excessOfCalls(calls);
  if (message === undefined) return readHandoff(handoffs, calls) ?? { kind: 'calls', calls };
  return { kind: 'excess', message, again: callsInExcess(calls) };
}

/** The workflow fails the node: one call more than permitted is handed on, so that it sees the excess. */
function callsInExcess(calls: readonly RequestedCall[]): Spoken | undefined {
  if (calls.some(isLarge)) return undefined;
  return { kind: 'calls', calls: calls.slice(0, MAX_CALLS_PER_TURN + 1) };
}

/** Shorter questions are what the model can give instead: it is asked for them. */
function readQuestions(questions: readonly AskedQuestion[]): Spoken {
  const message = excessOf('The questions have', questions);
  if (message === undefined) return { kind: 'clarification', questions };
  return { kind: 'invalid', violation: 'form', message };
}

function readDecision(
  { agent, verbosity, orchestrates }: Speaker,
  parsed: Extract<ParsedDecision, { kind: 'decision' }>,
): Spoken | Excess {
  const { decision, confidence, reasoning } = parsed;
  const schemas = returnSchemasOf(agent, orchestrates);
  const [message] = schemas.flatMap((schema) => returnViolation(decision, schema) ?? []);
  if (message !== undefined) return { kind: 'invalid', violation: 'return-schema', message };
  const tooLarge = excessOf('The decision has', decision);
  if (tooLarge !== undefined) return { kind: 'excess', message: tooLarge, again: undefined };
  const bound = reasoningBytes('summary');
  return {
    kind: 'decision',
    decision,
    ...(confidence === undefined ? {} : { confidence }),
    // What is not in the result is in no event, no snapshot, no question and no later attempt.
    ...(reasoning === undefined || verbosity === 'off'
      ? {}
      : { reasoning: boundText(reasoning, bound) }),
    schemaValidated: schemas.length > 0,
  };
}

function eventsOf(
  ports: ActivityPorts,
  input: InferTurnInput,
  { response, reasoning, spoken }: Turn,
): ActivityEvent[] {
  const { nodeId } = input.context;
  const { provider } = input.model;
  const model = ports.redactor.text(boundText(response.model, 256));
  const { inputTokens, outputTokens } = response.usage;
  const usage = {
    provider,
    model,
    inputTokens,
    outputTokens,
    totalTokens: inputTokens + outputTokens,
    nodeId,
  };
  const text = reasoning.trim() === '' ? summaryOf(spoken) : reasoning;
  const place = placeOf(input.context);
  const agent = { agentId: input.agent.agentId, context: input.context };
  const reasoned = input.verbosity === 'off' ? [] : [reasonedEvent(agent, input.verbosity, text)];
  const refusalText = boundText(ports.redactor.text(response.refusal ?? ''), REFUSAL_BYTES);
  const refusal: ActivityEvent[] =
    spoken.kind === 'refusal'
      ? [{ type: 'envelope.refusal', ...place, payload: { nodeId, provider, model, refusalText } }]
      : [];
  const used: ActivityEvent[] =
    input.said === undefined ? [{ type: 'provider.usage', ...place, payload: usage }] : [];
  return [...reasoned, ...used, ...refusal];
}

/** Stands for the reasoning of a model that gave none (RFC 0077 §E: still one agent.reasoned). */
function summaryOf(spoken: Spoken): string {
  switch (spoken.kind) {
    case 'calls':
      return `Calls ${[...new Set(spoken.calls.map(({ toolId }) => toolId))].join(', ')}.`;
    case 'decision':
      return spoken.reasoning ?? 'Decides without stating a reason.';
    case 'invalid':
      return 'Gives no usable output.';
    case 'clarification':
      return 'Asks a human.';
    case 'handoff':
      return spoken.reason ?? `Hands over to ${spoken.toAgentId}.`;
    case 'refusal':
      return 'Refuses.';
  }
}
