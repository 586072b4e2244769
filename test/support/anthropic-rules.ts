// What Anthropic's Messages API refuses with 400 (version 2026-10-21), as its documents say, for the test's endpoint:
// the first fault of a request, in words.
type Json = Record<string, unknown>;

const FIELDS: Readonly<Record<string, string>> = {
  model: 'string',
  max_tokens: 'number',
  messages: 'object',
  stream: 'boolean',
  system: 'object',
  tools: 'object',
  tool_choice: 'object',
  thinking: 'object',
  metadata: 'object',
  stop_sequences: 'object',
  output_config: 'object',
};
const REQUIRED = ['model', 'max_tokens', 'messages'];
const TOOL_NAME = /^[a-zA-Z0-9_-]{1,128}$/;
const TOOL_USE_ID = /^[a-zA-Z0-9_-]+$/;
const MIN_BUDGET = 1024;
/** Models that think by a budget alone. */
const MANUAL = /-4-5\b/;

const FIELDS_OF_BLOCKS: Readonly<Record<string, readonly string[]>> = {
  text: ['type', 'text', 'cache_control'],
  tool_use: ['type', 'id', 'name', 'input', 'cache_control'],
  tool_result: ['type', 'tool_use_id', 'content', 'is_error', 'cache_control'],
  thinking: ['type', 'thinking', 'signature'],
};

export function faultOfMessages(body: Json): string | undefined {
  return (
    faultOfFields(body) ??
    faultOfTools(body.tools as Json[] | undefined) ??
    faultOfThinking(body) ??
    (body.system as Json[] | undefined)?.map(faultOfBlock).find((fault) => fault !== undefined) ??
    faultOfConversation(body.messages as Json[], body.thinking as Json | undefined)
  );
}

function faultOfFields(body: Json): string | undefined {
  for (const name of Object.keys(body)) {
    if (!Object.hasOwn(FIELDS, name)) return `${name}: Extra inputs are not permitted`;
    if (typeof body[name] !== FIELDS[name]) return `${name}: Input should be of another type`;
  }
  const missing = REQUIRED.find((name) => body[name] === undefined);
  if (missing) return `${missing}: Field required`;
  const max = body.max_tokens as number;
  return Number.isInteger(max) && max >= 1 ? undefined : 'max_tokens: must be at least 1';
}

function faultOfTools(tools: Json[] = []): string | undefined {
  const names = tools.map(({ name }) => String(name));
  if (new Set(names).size < names.length) return 'tools: Tool names must be unique.';
  for (const [at, { name, input_schema: schema }] of tools.entries()) {
    if (!TOOL_NAME.test(String(name)))
      return `tools.${at}.custom.name: String should match pattern`;
    const { type, ...rest } = schema as Json;
    if (type !== 'object') return `tools.${at}.custom.input_schema.type: Input should be 'object'`;
    if (['anyOf', 'oneOf', 'allOf'].some((keyword) => Object.hasOwn(rest, keyword)))
      return `tools.${at}.custom: input_schema does not support oneOf, allOf, or anyOf at the top level`;
  }
  return undefined;
}

function faultOfThinking({ thinking, model, max_tokens, tool_choice }: Json): string | undefined {
  const { type, budget_tokens: budget } = (thinking ?? {}) as Json;
  const manual = MANUAL.test(String(model));
  if (type === 'adaptive' && manual) return 'adaptive thinking is not supported on this model';
  if (type !== 'enabled') return undefined;
  if (!manual) return '"thinking.type.enabled" is not supported for this model.';
  if (typeof budget !== 'number' || budget < MIN_BUDGET)
    return 'thinking.enabled.budget_tokens: Input should be greater than or equal to 1024';
  if (budget >= (max_tokens as number))
    return 'max_tokens must be greater than thinking.budget_tokens';
  const choice = (tool_choice as Json | undefined)?.type ?? 'auto';
  if (choice !== 'auto' && choice !== 'none')
    return 'Thinking may not be enabled when tool_choice forces tool use.';
  return undefined;
}

function faultOfBlock(block: Json): string | undefined {
  const known = FIELDS_OF_BLOCKS[String(block.type)];
  if (!known) return `Input tag '${String(block.type)}' does not match any of the expected tags`;
  const extra = Object.keys(block).find((name) => !known.includes(name));
  if (extra) return `${extra}: Extra inputs are not permitted`;
  if (block.type === 'text' && String(block.text).trim() === '')
    return 'text content blocks must contain non-whitespace text';
  if (block.type === 'tool_use' && !TOOL_USE_ID.test(String(block.id)))
    return "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'";
  if (block.type === 'tool_use' && (typeof block.input !== 'object' || Array.isArray(block.input)))
    return 'tool_use.input: Input should be a valid dictionary';
  return undefined;
}

function blocksOf({ content }: Json): Json[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : (content as Json[]);
}

function faultOfConversation(messages: Json[], thinking: Json | undefined): string | undefined {
  if (messages.length === 0) return 'messages: at least one message is required';
  if (messages[0]?.role !== 'user') return 'messages: first message must use the "user" role';
  if (messages.at(-1)?.role !== 'user')
    return 'This model does not support assistant message prefill.';
  const seen = new Set<unknown>();
  for (const [at, message] of messages.entries()) {
    const fault = faultOfMessage({
      message,
      before: messages[at - 1],
      after: messages[at + 1],
      seen,
    });
    if (fault !== undefined) return `messages.${at}: ${fault}`;
  }
  return thinking?.type === 'enabled' ? faultOfUnsigned(messages) : undefined;
}

interface Placed {
  readonly message: Json;
  readonly before: Json | undefined;
  readonly after: Json | undefined;
  readonly seen: Set<unknown>;
}

function faultOfMessage({ message, before, after, seen }: Placed): string | undefined {
  const blocks = blocksOf(message);
  if (before && before.role === message.role)
    return 'roles must alternate between "user" and "assistant"';
  if (blocks.length === 0) return 'all messages must have non-empty content';
  const fault = blocks.map(faultOfBlock).find((one) => one !== undefined);
  if (fault !== undefined) return fault;
  if (message.role === 'assistant') return faultOfUses(blocks, after ? blocksOf(after) : [], seen);
  return faultOfResults(blocks, before ? blocksOf(before) : []);
}

const idsOf = (blocks: readonly Json[], type: string, name: string): unknown[] =>
  blocks.filter((block) => block.type === type).map((block) => block[name]);

function faultOfUses(
  blocks: readonly Json[],
  next: readonly Json[],
  seen: Set<unknown>,
): string | undefined {
  const results = idsOf(next, 'tool_result', 'tool_use_id');
  for (const id of idsOf(blocks, 'tool_use', 'id')) {
    if (seen.has(id)) return '`tool_use` ids must be unique';
    seen.add(id);
    if (!results.includes(id))
      return '`tool_use` ids were found without `tool_result` blocks immediately after';
  }
  return undefined;
}

function faultOfResults(blocks: readonly Json[], previous: readonly Json[]): string | undefined {
  const uses = idsOf(previous, 'tool_use', 'id');
  const results = idsOf(blocks, 'tool_result', 'tool_use_id');
  if (results.some((id) => !uses.includes(id)))
    return 'unexpected `tool_use_id` found in `tool_result` blocks';
  if (new Set(results).size < results.length) return 'each tool_use must have a single result';
  const firstOther = blocks.findIndex(({ type }) => type !== 'tool_result');
  const lastResult = blocks.findLastIndex(({ type }) => type === 'tool_result');
  return firstOther >= 0 && firstOther < lastResult
    ? '`tool_result` blocks must come first'
    : undefined;
}

/** With a budget, the turn that called tools has to come back with its signed thoughts. */
function faultOfUnsigned(messages: readonly Json[]): string | undefined {
  const last = messages.at(-1);
  if (!last || idsOf(blocksOf(last), 'tool_result', 'tool_use_id').length === 0) return undefined;
  const [first] = blocksOf(messages.at(-2) ?? { content: [] });
  return first?.type === 'thinking'
    ? undefined
    : 'Expected `thinking` or `redacted_thinking` in the final assistant message';
}
