// Why an answer of an OpenAI-compatible endpoint ended, in the words that endpoints have for it. A reason that is not here is
// an end like any other: what was said decides.

/** `broken-off`: what was said is no answer, and is asked for again. */
export type Ending = 'whole' | 'cut' | 'refused' | 'broken-off';

const ENDINGS: Readonly<Record<string, Ending>> = {
  length: 'cut',
  // Mistral: the end of the context.
  model_length: 'cut',
  max_tokens: 'cut',
  max_output_tokens: 'cut',
  content_filter: 'refused',
  // Gemini's own, where a gateway passes them on.
  safety: 'refused',
  recitation: 'refused',
  prohibited_content: 'refused',
  blocklist: 'refused',
  spii: 'refused',
  // Zhipu.
  sensitive: 'refused',
  // Anthropic's and Bedrock's, passed on.
  refusal: 'refused',
  guardrail_intervened: 'refused',
  error: 'broken-off',
  // vLLM: the request was given up.
  abort: 'broken-off',
  cancelled: 'broken-off',
  network_error: 'broken-off',
  // DeepSeek: its machines were full.
  insufficient_system_resource: 'broken-off',
};

/** By a name in any case; `whole` for none. */
export function meaningOf(finishReason: string | undefined): Ending {
  const name = finishReason?.toLowerCase() ?? '';
  return Object.hasOwn(ENDINGS, name) ? (ENDINGS[name] ?? 'whole') : 'whole';
}
