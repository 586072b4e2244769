// What a model gives within one answer: bounded, and counted where its provider counts nothing.
import { HostError } from '../../rules/errors.ts';
import { utf8Length } from '../../rules/json.ts';
import { MODEL_OUTPUT_BYTES } from '../../rules/limits.ts';
import { BYTES_PER_TOKEN, estimateTokens } from '../../rules/tokens.ts';
import type { ModelRequest, ModelUsage } from '../../ports/models.ts';

export class OutputMeter {
  #bytes = 0;

  /** Gives the text back. Throws HostError model_output_too_large above MODEL_OUTPUT_BYTES in all. */
  take(text: string): string {
    this.#bytes += utf8Length(text);
    if (this.#bytes > MODEL_OUTPUT_BYTES) throw new HostError('model_output_too_large');
    return text;
  }

  /** As counted by the provider, else estimated: what is no count is not believed. */
  usage(
    request: ModelRequest,
    counted: { readonly [Name in keyof ModelUsage]?: unknown },
  ): ModelUsage {
    return {
      inputTokens: countOf(counted.inputTokens) ?? estimateTokens(JSON.stringify(request.items)),
      outputTokens: countOf(counted.outputTokens) ?? Math.ceil(this.#bytes / BYTES_PER_TOKEN),
    };
  }
}

export function countOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

/** A text that says something: nothing is believed of what should be one. */
export function textIn(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
