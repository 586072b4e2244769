// What one streamed answer of Anthropic's Messages API adds up to. Thoughts and text before a call are the reasoning;
// `redacted_thinking` and signatures are nobody's to read. Block types, events and reasons to stop that are new to this
// code are passed over: the API says that it may add some.
import type Anthropic from '@anthropic-ai/sdk';
import { HostError } from '../../rules/errors.ts';
import { isJsonObject } from '../../rules/json.ts';
import type { Model, ModelRequest, ModelResponse } from '../../ports/models.ts';
import { CallAssembly } from './call-assembly.ts';
import { offeredNames, readAnswer } from './decision-tool.ts';
import { countOf, OutputMeter, textIn } from './model-output.ts';
import { OutputSplitter } from './output-splitter.ts';
import type { Progress } from './endpoint/answer.ts';
import { lostConnection } from './endpoint/refusal.ts';

type StartedBlock = Anthropic.RawContentBlockStartEvent['content_block'];

export class AnthropicReading {
  readonly #request: ModelRequest;
  readonly #onReasoning: (piece: string) => void;
  readonly #splitter = new OutputSplitter((piece) => this.#say(piece));
  readonly #meter = new OutputMeter();
  /** All blocks that began, by their index. */
  readonly #blocks = new Map<number, { readonly kind: string; readonly text: string }>();
  readonly #calls: CallAssembly;
  readonly #usage: Partial<Record<keyof Anthropic.MessageDeltaUsage, number>> = {};
  #reasoning = '';
  /** Thoughts and text are blocks of their own: what follows a block begins on a new line. */
  #newBlock = false;
  #model: string;
  #stopReason: string | undefined;
  #refusal = '';
  #stopped = false;

  constructor(
    request: ModelRequest,
    { onReasoning }: Pick<Parameters<Model['infer']>[1], 'onReasoning'>,
  ) {
    this.#request = request;
    this.#model = request.model;
    this.#onReasoning = onReasoning;
    this.#calls = new CallAssembly(offeredNames(request), this.#meter);
  }

  /** Throws HostError model_output_too_large, and model_unavailable for a stream that contradicts itself. */
  take(data: unknown): Progress {
    // `[DONE]` is none of this API's: a gateway's.
    if (data === undefined) return this.#stopped ? 'whole' : 'more';
    if (!hasItsMember(data)) throw lostConnection();
    const event = data as Anthropic.RawMessageStreamEvent;
    switch (event.type) {
      case 'message_start':
        this.#model = textIn(event.message.model) ?? this.#model;
        this.#count(event.message.usage);
        break;
      case 'content_block_start':
        this.#begin(event.index, event.content_block);
        break;
      case 'content_block_delta':
        this.#grow(event.index, event.delta);
        break;
      case 'message_delta':
        this.#end(event.delta);
        this.#count(event.usage);
        break;
      case 'message_stop':
        this.#stopped = true;
        break;
      case 'content_block_stop':
        break;
    }
    return this.#stopped ? 'whole' : 'more';
  }

  #begin(index: number, block: StartedBlock): void {
    const isAgain = this.#note(index, block);
    // A call says by its id whether it is another one.
    if (block.type === 'tool_use') this.#call(index, block);
    if (isAgain) return;
    this.#newBlock = true;
    if (block.type === 'text') this.#text(block.text);
    if (block.type === 'thinking') this.#think(block.thinking);
  }

  /** Notes the block; returns whether it had begun. Throws HostError model_unavailable where it was another one. */
  #note(index: number, block: StartedBlock): boolean {
    const { type: kind } = block;
    const text = kind === 'text' ? block.text : kind === 'thinking' ? block.thinking : '';
    const begun = this.#blocks.get(index);
    if (begun && (begun.kind !== kind || begun.text !== text)) throw lostConnection();
    this.#blocks.set(index, { kind, text });
    return begun !== undefined;
  }

  #grow(index: number, delta: Anthropic.RawContentBlockDelta): void {
    const kind = this.#blocks.get(index)?.kind;
    if (kind === undefined) throw lostConnection();
    switch (delta.type) {
      case 'text_delta':
        if (kind === 'text') this.#text(delta.text);
        break;
      case 'thinking_delta':
        if (kind === 'thinking') this.#think(delta.thinking);
        break;
      case 'input_json_delta':
        if (kind === 'tool_use') this.#calls.take({ place: index, args: delta.partial_json });
        break;
      case 'signature_delta':
      case 'citations_delta':
        break;
    }
  }

  /** Compatible endpoints give the whole input at the start, some of them as text. Where it comes in pieces, it is empty there. */
  #call(place: number, { id, name, input }: Anthropic.ToolUseBlock): void {
    const isEmpty = typeof input === 'object' && Object.keys(input ?? {}).length === 0;
    this.#calls.take({ place, id, name, args: isEmpty ? undefined : input });
  }

  #text(sent: unknown): void {
    const text = textIn(sent);
    if (text !== undefined) this.#splitter.push(this.#meter.take(text));
  }

  #think(sent: unknown): void {
    const text = textIn(sent);
    if (text !== undefined) this.#say(this.#meter.take(text));
  }

  #say(piece: string): void {
    const apart = this.#newBlock && this.#reasoning !== '' && !/\s/.test(this.#reasoning.slice(-1));
    const said = apart ? `\n${piece}` : piece;
    this.#newBlock = false;
    this.#reasoning += said;
    this.#onReasoning(said);
  }

  #end({ stop_reason, stop_details }: Anthropic.RawMessageDeltaEvent['delta']): void {
    this.#stopReason = stop_reason ?? this.#stopReason;
    this.#refusal =
      textIn(stop_details?.explanation) ?? textIn(stop_details?.category) ?? this.#refusal;
  }

  /** The counts are cumulative: the last one holds. */
  #count(usage: Partial<Anthropic.MessageDeltaUsage> | undefined): void {
    for (const name of ['input_tokens', 'output_tokens', ...CACHE_COUNTS] as const)
      this.#usage[name] = countOf(usage?.[name]) ?? this.#usage[name];
  }

  /** Throws HostError model_unavailable for half an answer, model_rejected_request where the conversation is too long. */
  response(): ModelResponse {
    if (!this.#stopped || this.#stopReason === undefined) throw lostConnection();
    if (this.#stopReason === 'model_context_window_exceeded') {
      const reason = "The conversation is longer than the model's context window.";
      throw new HostError('model_rejected_request', { reason });
    }
    const text = this.#splitter.end();
    const refused = this.#stopReason === 'refusal';
    const { said } = this.#splitter;
    const sent = { ...this.#calls.end(), text, said, finished: true };
    const answer = readAnswer(sent, this.#request);
    const cut = this.#stopReason === 'max_tokens';
    return {
      reasoning: this.#reasoning,
      ...answer,
      ...(cut ? { kind: 'truncated' as const } : {}),
      ...(refused ? { kind: 'refusal' as const, refusal: this.#refusal } : {}),
      usage: this.#meter.usage(this.#request, {
        inputTokens: this.#inputTokens(),
        outputTokens: this.#usage.output_tokens,
      }),
      model: this.#model,
    };
  }

  /** What went into the cache or came from it was input too. */
  #inputTokens(): number | undefined {
    const { input_tokens: plain } = this.#usage;
    if (plain === undefined) return undefined;
    return CACHE_COUNTS.reduce((sum, name) => sum + (this.#usage[name] ?? 0), plain);
  }
}

/** The member that holds what an event says. */
const MEMBERS: ReadonlyMap<unknown, string> = new Map([
  ['message_start', 'message'],
  ['content_block_start', 'content_block'],
  ['content_block_delta', 'delta'],
  ['message_delta', 'delta'],
]);

/** Of an event whose type is new to this code nothing is expected. */
function hasItsMember(event: unknown): boolean {
  if (!isJsonObject(event)) return false;
  const member = MEMBERS.get(event['type']);
  return member === undefined || isJsonObject(event[member]);
}

const CACHE_COUNTS = ['cache_creation_input_tokens', 'cache_read_input_tokens'] as const;
