// What one streamed answer of an OpenAI-compatible endpoint adds up to. Endpoints differ, and lie: nothing is believed
// of a chunk but what it has, and a call is what its pieces make, by their place and not by their ids.
import type { ChatCompletionChunk } from 'openai/resources/chat/completions';
import { HostError } from '../../rules/errors.ts';
import { uncertainIn, type JsonFault } from '../../rules/json-text.ts';
import type { Model, ModelRequest, ModelResponse } from '../../ports/models.ts';
import { holdsDecision, readAnswer } from './decision-tool.ts';
import { MODEL_ANSWER_CALLS } from './limits.ts';
import { OutputMeter } from './model-output.ts';
import { OutputSplitter } from './output-splitter.ts';
import { lostConnection } from './provider-faults.ts';

type Options = Parameters<Model['infer']>[1];
type CallPiece = ChatCompletionChunk.Choice.Delta.ToolCall;

interface Call {
  readonly index: number;
  name: string;
  arguments: string;
  fault?: JsonFault | undefined;
  readonly brackets: Brackets;
}

export class Reading {
  readonly #splitter: OutputSplitter;
  /** In the order in which they began. */
  readonly #calls: Call[] = [];
  #reasoning = '';
  #refusal = '';
  #finishReason: string | undefined;
  #usage: Partial<Record<'prompt_tokens' | 'completion_tokens', unknown>> | undefined;
  #model: string;
  readonly #meter = new OutputMeter();

  readonly #request: ModelRequest;
  readonly #onReasoning: (piece: string) => void;

  constructor(request: ModelRequest, options: Options) {
    this.#request = request;
    this.#model = request.model;
    this.#splitter = new OutputSplitter((piece) => this.#say(piece));
    this.#onReasoning = options.onReasoning;
  }

  #say(piece: string): void {
    this.#reasoning += piece;
    this.#onReasoning(piece);
  }

  /** Throws HostError model_output_too_large. */
  take(chunk: ChatCompletionChunk | null): void {
    if (typeof chunk?.model === 'string' && chunk.model !== '') this.#model = chunk.model;
    if (chunk?.usage) this.#usage = chunk.usage;
    const choice = chunk?.choices?.[0];
    if (!choice) return;
    // The first one counts: some endpoints say it again, with the usage or with an empty delta.
    this.#finishReason ??= choice.finish_reason ?? undefined;
    // `reasoning_content` and `reasoning` are extensions of compatible endpoints.
    const delta = (choice.delta ?? {}) as ChatCompletionChunk.Choice.Delta & {
      reasoning_content?: unknown;
      reasoning?: unknown;
    };
    const thought = delta.reasoning_content ?? delta.reasoning;
    if (typeof thought === 'string' && thought !== '') this.#say(this.#meter.take(thought));
    if (typeof delta.refusal === 'string') this.#refusal += this.#meter.take(delta.refusal);
    if (typeof delta.content === 'string') this.#splitter.push(this.#meter.take(delta.content));
    for (const piece of delta.tool_calls ?? []) this.#takeCall(piece);
  }

  #takeCall(piece: CallPiece): void {
    const name = this.#meter.take(textOf(piece.function?.name));
    const sent: unknown = piece.function?.arguments;
    const args = this.#meter.take(textOf(sent));
    const known = this.#callOf(piece, name);
    if (typeof sent !== 'string') known.fault ??= uncertainIn(sent);
    if (known.name !== name) known.name += name;
    known.arguments += args;
    known.brackets.take(args);
  }

  /**
   * The call that a piece goes on with. A name behind whole arguments begins another one: some endpoints number all
   * their calls alike, others say the name with each piece, and some give no number at all.
   */
  #callOf({ index }: CallPiece, name: string): Call {
    const place = Number.isInteger(index) ? index : undefined;
    const open = this.#calls.findLast((call) => place === undefined || call.index === place);
    if (open && !(name !== '' && open.name !== '' && open.brackets.areClosed)) return open;
    if (this.#calls.length >= MODEL_ANSWER_CALLS) throw new HostError('model_output_too_large');
    const begun: Call = {
      ...{ index: place ?? this.#calls.length, name: '', arguments: '' },
      brackets: new Brackets(),
    };
    this.#calls.push(begun);
    return begun;
  }

  /** Throws HostError model_unavailable for an answer that has no end. */
  response(): ModelResponse {
    const finish = this.#finishReason;
    if (finish === undefined && this.#calls.length === 0) throw lostConnection();
    const text = this.#finalText();
    const refused = this.#refusal !== '' || finish === 'content_filter';
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
    if (text === '' || this.#calls.length === 0 || holdsDecision(text)) return text;
    this.#say(text);
    return '';
  }

  #outcome(
    text: string,
    refused: boolean,
  ): Pick<ModelResponse, 'kind' | 'calls' | 'final' | 'unusable'> {
    if (refused) return { kind: 'refusal', calls: [], final: text };
    if (this.#finishReason === 'length') return { kind: 'truncated', calls: [], final: text };
    const calls = this.#calls.toSorted((a, b) => a.index - b.index);
    const { said } = this.#splitter;
    const finished = this.#finishReason !== undefined;
    return readAnswer({ calls, text, said, finished }, this.#request);
  }
}

/** Arguments that come as a value and not as its text are taken as well. */
function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  return value === undefined || value === null ? '' : JSON.stringify(value);
}

/** Whether an object or array that comes in pieces is whole: each piece is looked at once. */
class Brackets {
  #open = 0;
  #began = false;
  #inString = false;
  #escaped = false;

  get areClosed(): boolean {
    return this.#began && this.#open === 0;
  }

  take(text: string): void {
    for (const character of text) {
      if (this.#inString) this.#takeOfString(character);
      else if (character === '"') this.#inString = true;
      else if (character === '{' || character === '[') {
        this.#began = true;
        this.#open++;
      } else if (character === '}' || character === ']') this.#open--;
    }
  }

  #takeOfString(character: string): void {
    if (this.#escaped) this.#escaped = false;
    else if (character === '\\') this.#escaped = true;
    else if (character === '"') this.#inString = false;
  }
}
