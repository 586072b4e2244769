// What Anthropic's Messages API is asked (API version 2026-10-21): the conversation as turns of content blocks that
// alternate, the tools, and the decision as the last of them.
import type Anthropic from '@anthropic-ai/sdk';
import { sha256Hex } from '../../rules/ids.ts';
import type { ModelRequest, ToolDescription, TranscriptItem } from '../../ports/models.ts';
import { DECISION_TOOL, DECISION_TOOL_DESCRIPTION, toldOfDecisionTool } from './decision-tool.ts';
import { functionNameOf } from './tool-names.ts';
import { objectArguments, objectSchema } from './tool-schema.ts';

type Block =
  Anthropic.TextBlockParam | Anthropic.ToolUseBlockParam | Anthropic.ToolResultBlockParam;
interface Turn {
  readonly role: 'user' | 'assistant';
  readonly content: Block[];
}

/** Tokens of an answer when neither the request nor the configuration says: the API insists on a number. */
export const DEFAULT_ANTHROPIC_MAX_TOKENS = 16_000;
/** The least budget for thinking that the API takes, in tokens. */
export const MIN_THINKING_TOKENS = 1024;

/** `adaptive`: the model decides how much; a number: at most so many tokens; `off`: nothing is asked for. */
export type Thinking = 'adaptive' | 'off' | number;

const ALLOWED_ID = /^[a-zA-Z0-9_-]+$/;
/** Stands where the API wants a turn of the user and the conversation has none: first and last. */
const GO_ON = 'Go on.';

export function messagesBody(
  request: ModelRequest,
  { thinking, maxTokens }: { readonly thinking: Thinking; readonly maxTokens: number },
): Anthropic.MessageCreateParamsStreaming {
  const items = toldOfDecisionTool(request.items);
  const system = items.flatMap((item) => (item.role === 'system' ? [item.text] : [])).join('\n\n');
  const messages = turnsOf(items, request.tools);
  const budget = typeof thinking === 'number' && !continuesToolUse(messages) ? thinking : 0;
  return {
    model: request.model,
    // Thinking counts as output: its budget comes on top, so that the answer keeps its room.
    max_tokens: (request.maxOutputTokens ?? maxTokens) + budget,
    stream: true,
    // Tools and system text are the same in every turn of an agent and in all of its runs: the API reads them from
    // its cache when it saw them within five minutes.
    system: [{ type: 'text', text: system, cache_control: { type: 'ephemeral' } }],
    messages,
    tools: [...request.tools.map(toolOf), decisionTool(request)],
    // By default newer models think without a word; `summarized` lets them be heard.
    ...(thinking === 'adaptive'
      ? { thinking: { type: 'adaptive' as const, display: 'summarized' as const } }
      : {}),
    ...(budget > 0 ? { thinking: { type: 'enabled' as const, budget_tokens: budget } } : {}),
  };
}

/**
 * Whether the last turn answers calls. A model with a budget then has to be given its signed thoughts from before the
 * calls, word for word, and the API refuses the request without. The transcript is redacted and belongs to no provider,
 * so that they are not in it: such a turn is asked for without thinking. Models that think adaptively ask for none.
 */
function continuesToolUse(turns: readonly Turn[]): boolean {
  return turns.at(-1)?.content.some(({ type }) => type === 'tool_result') ?? false;
}

function decisionTool({ outputSchema }: ModelRequest): Anthropic.Tool {
  return {
    name: DECISION_TOOL,
    description: DECISION_TOOL_DESCRIPTION,
    input_schema: { ...outputSchema, type: 'object' },
  };
}

function toolOf({ toolId, description, inputSchema }: ToolDescription): Anthropic.Tool {
  return { name: functionNameOf(toolId), description, input_schema: objectSchema(inputSchema) };
}

/** Begins and ends with the user; what would be empty is left out, because the API refuses it. */
function turnsOf(items: readonly TranscriptItem[], offered: ModelRequest['tools']): Turn[] {
  const turns: Turn[] = [];
  const ids = new CallIds();
  const say = (role: Turn['role'], content: readonly Block[]): void => {
    const last = turns.at(-1);
    if (content.length === 0) return;
    if (last?.role === role) last.content.push(...content);
    else turns.push({ role, content: [...content] });
  };
  for (const item of items) {
    switch (item.role) {
      case 'system':
        break;
      case 'user':
        say('user', textOf(item.text));
        break;
      case 'assistant':
        say('assistant', [...textOf(item.text), ...callsOf(item, { ids, offered })]);
        break;
      case 'tool':
        say('user', resultOf(item, ids));
    }
  }
  if (turns[0]?.role !== 'user') turns.unshift({ role: 'user', content: textOf(GO_ON) });
  if (turns.at(-1)?.role !== 'user') turns.push({ role: 'user', content: textOf(GO_ON) });
  return turns;
}

function textOf(text: string): Anthropic.TextBlockParam[] {
  return text.trim() === '' ? [] : [{ type: 'text', text }];
}

function callsOf(
  { calls }: Extract<TranscriptItem, { role: 'assistant' }>,
  { ids, offered }: { readonly ids: CallIds; readonly offered: ModelRequest['tools'] },
): Anthropic.ToolUseBlockParam[] {
  ids.turn();
  return calls.map((call) => ({
    type: 'tool_use',
    id: ids.called(call.callId),
    name: functionNameOf(call.toolId),
    input: objectArguments(call, offered),
  }));
}

/** A result without its call in the turn before is told as text. */
function resultOf(
  { callId, toolId, text }: Extract<TranscriptItem, { role: 'tool' }>,
  ids: CallIds,
): (Anthropic.ToolResultBlockParam | Anthropic.TextBlockParam)[] {
  const id = ids.answered(callId);
  if (id === undefined) return textOf(`A result of ${toolId}: ${text}`);
  return [{ type: 'tool_result', tool_use_id: id, ...(text === '' ? {} : { content: text }) }];
}

/** Ids of calls in the form that the API takes, none twice in a conversation. */
class CallIds {
  readonly #used = new Set<string>();
  #open = new Map<string, string>();

  turn(): void {
    this.#open = new Map();
  }

  called(callId: string): string {
    const allowed = ALLOWED_ID.test(callId) ? callId : `call-${sha256Hex(callId)}`;
    let id = allowed;
    for (let next = 2; this.#used.has(id); next++) id = `${allowed}-${next}`;
    this.#used.add(id);
    this.#open.set(callId, id);
    return id;
  }

  answered(callId: string): string | undefined {
    const id = this.#open.get(callId);
    this.#open.delete(callId);
    return id;
  }
}
