// What one streamed answer of an OpenAI-compatible endpoint adds up to. Endpoints differ, and lie: nothing is believed
// of a chunk but what it has.
import type { ChatCompletionChunk } from 'openai/resources/chat/completions';
import type { Model, ModelRequest, ModelResponse } from '../../ports/models.ts';
import { CallAssembly } from './call-assembly.ts';
import { holdsDecision, offeredNames, readAnswer } from './decision-tool.ts';
import { OutputMeter, textIn } from './model-output.ts';
import { OutputSplitter } from './output-splitter.ts';
import type { Progress } from './endpoint/answer.ts';
import { lostConnection } from './endpoint/refusal.ts';
import { meaningOf } from './finish-reasons.ts';

type Options = Parameters<Model['infer']>[1];
type ToolCall = ChatCompletionChunk.Choice.Delta.ToolCall;

export class Reading {
  readonly #splitter: OutputSplitter;
  #reasoning = '';
  #refusal = '';
  #finishReason: string | undefined;
  /** What follows may be left out. A finish that comes with the first piece may come with each, and is no end. */
  #isEnding = false;
  #isBegun = false;
  /** By `[DONE]`. */
  #isDone = false;
  /** Something was said without a finish. */
  #saidOpenly = false;
  #usage: Partial<Record<'prompt_tokens' | 'completion_tokens', unknown>> | undefined;
  #model: string;
  readonly #meter = new OutputMeter();
  readonly #calls: CallAssembly;

  readonly #request: ModelRequest;
  readonly #onReasoning: (piece: string) => void;

  constructor(request: ModelRequest, options: Options) {
    this.#request = request;
    this.#model = request.model;
    this.#splitter = new OutputSplitter((piece) => this.#say(piece));
    this.#onReasoning = options.onReasoning;
    this.#calls = new CallAssembly(offeredNames(request), this.#meter);
  }

  #say(piece: string): void {
    this.#reasoning += piece;
    this.#onReasoning(piece);
  }

  /** Throws HostError model_output_too_large, and model_unavailable where the endpoint says that it broke off. */
  take(data: unknown): Progress {
    if (data === undefined) {
      this.#isDone = true;
      return 'whole';
    }
    const chunk = data as ChatCompletionChunk | null;
    if (typeof chunk?.model === 'string' && chunk.model !== '') this.#model = chunk.model;
    if (chunk?.usage) this.#usage = chunk.usage;
    const choice = chunk?.choices?.[0];
    if (choice) this.#takeChoice(choice);
    // The usage of the whole answer, in an event of its own.
    else if (chunk?.usage && this.#finishReason !== undefined) this.#isEnding = true;
    return this.#isEnding ? 'ending' : 'more';
  }

  #takeChoice(choice: ChatCompletionChunk.Choice & { message?: unknown }): void {
    // The first one counts: some endpoints say it again, with the usage or with an empty delta. An empty one is none.
    const finish: unknown = choice.finish_reason;
    const isFinish = typeof finish === 'string' && finish !== '' && finish !== 'null';
    if (isFinish) this.#finishReason ??= finish;
    if (meaningOf(this.#finishReason) === 'broken-off') throw lostConnection(undefined, BROKEN_OFF);
    // `reasoning_content` and `reasoning` are extensions of compatible endpoints; `message` is an answer that is no stream.
    const delta = (choice.delta ?? choice.message ?? {}) as ChatCompletionChunk.Choice.Delta & {
      reasoning_content?: unknown;
      reasoning?: unknown;
    };
    const thought = textIn(delta.reasoning_content) ?? textIn(delta.reasoning);
    if (thought !== undefined) this.#say(this.#meter.take(thought));
    if (typeof delta.refusal === 'string') this.#refusal += this.#meter.take(delta.refusal);
    if (typeof delta.content === 'string') this.#splitter.push(this.#meter.take(delta.content));
    const pieces = piecesIn(delta.tool_calls);
    for (const { index: place, id, function: called } of pieces)
      this.#calls.take({ place, id, name: called?.name, args: called?.arguments });
    const texts = [thought, delta.content, delta.refusal];
    this.#noteEnd(isFinish, pieces.length > 0 || texts.some((it) => textIn(it) !== undefined));
  }

  #noteEnd(isFinish: boolean, isSaid: boolean): void {
    if (isFinish) this.#isEnding = isSaid ? this.#saidOpenly : this.#isBegun || this.#isOver;
    else if (isSaid) this.#isEnding = false;
    this.#isBegun ||= isSaid;
    this.#saidOpenly ||= isSaid && this.#finishReason === undefined;
  }

  /** Why it ended needs nothing said. */
  get #isOver(): boolean {
    return ['refused', 'cut'].includes(meaningOf(this.#finishReason));
  }

  /** Throws HostError model_unavailable for an answer that has no end. */
  response(): ModelResponse {
    const finish = this.#finishReason;
    if (finish === undefined && !this.#isDone && this.#calls.isEmpty) throw lostConnection();
    const text = this.#finalText();
    const refused = this.#refusal !== '' || meaningOf(finish) === 'refused';
    return {
      reasoning: this.#reasoning,
      ...this.#outcome(text, refused),
      ...(refused ? { refusal: this.#refusal } : {}),
      usage: this.#meter.usage(this.#request, {
        inputTokens: this.#usage?.prompt_tokens,
        outputTokens: this.#usage?.completion_tokens,
      }),
      model: this.#model,
    };
  }

  /** JSON that a model quotes before it calls a tool is thought aloud. */
  #finalText(): string {
    const text = this.#splitter.end();
    if (text === '' || this.#calls.isEmpty || holdsDecision(text)) return text;
    this.#say(text);
    return '';
  }

  #outcome(
    text: string,
    refused: boolean,
  ): Pick<ModelResponse, 'kind' | 'calls' | 'final' | 'unusable'> {
    if (refused) return { kind: 'refusal', calls: [], final: text };
    if (meaningOf(this.#finishReason) === 'cut')
      return { kind: 'truncated', calls: [], final: text };
    const { said } = this.#splitter;
    // A call without a finish may be cut; text that ends is whole.
    const finished = this.#finishReason !== undefined || (this.#isDone && this.#calls.isEmpty);
    return readAnswer({ ...this.#calls.end(), text, said, finished }, this.#request);
  }
}

const BROKEN_OFF = 'The model provider broke off its answer.';

/** Some endpoints send one call and no list. */
function piecesIn(value: unknown): ToolCall[] {
  return [value].flat().filter((each) => typeof each === 'object' && each !== null) as ToolCall[];
}
