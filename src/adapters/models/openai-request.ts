// What an OpenAI-compatible endpoint is sent: the conversation, the tools, and the way to decide.
import type {
  ChatCompletionCreateParamsStreaming,
  ChatCompletionFunctionTool,
  ChatCompletionMessageParam,
} from 'openai/resources/chat/completions';
import type { JsonObject } from '../../rules/json.ts';
import type { ModelRequest, TranscriptItem } from '../../ports/models.ts';
import type { DecisionMode } from './decision-modes.ts';
import {
  DECISION_TOOL,
  DECISION_TOOL_DESCRIPTION,
  toldOfDecisionTool,
  toldOfSchema,
} from './decision-tool.ts';
import { functionNameOf } from './tool-names.ts';
import { objectArguments, objectSchema } from './tool-schema.ts';

export function bodyOf(
  request: ModelRequest,
  mode: DecisionMode,
): ChatCompletionCreateParamsStreaming {
  const tools = toolsOf(request, mode);
  return {
    model: request.model,
    messages: itemsOf(request, mode).flatMap((item) => messageOf(item, request.tools)),
    stream: true,
    stream_options: { include_usage: true },
    ...(tools.length === 0 ? {} : { tools }),
    // What the model may think aloud is its own: it is never forced to a tool, which would end its text.
    ...(mode === 'tool' ? { tool_choice: 'auto' as const } : {}),
    ...(mode === 'json_schema'
      ? {
          response_format: {
            type: 'json_schema' as const,
            json_schema: { name: 'decision', schema: request.outputSchema, strict: false },
          },
        }
      : {}),
    ...(request.temperature === undefined ? {} : { temperature: request.temperature }),
    ...(request.maxOutputTokens === undefined
      ? {}
      : { max_completion_tokens: request.maxOutputTokens }),
  };
}

function itemsOf(request: ModelRequest, mode: DecisionMode): readonly TranscriptItem[] {
  switch (mode) {
    case 'tool':
      return toldOfDecisionTool(request.items);
    case 'json_schema':
      return request.items;
    case 'text':
      return toldOfSchema(request);
  }
}

function toolsOf({ tools, outputSchema }: ModelRequest, mode: DecisionMode) {
  const offered = tools.map(({ toolId, description, inputSchema }) =>
    toolOf(functionNameOf(toolId), description, inputSchema),
  );
  return mode === 'tool'
    ? [...offered, toolOf(DECISION_TOOL, DECISION_TOOL_DESCRIPTION, outputSchema)]
    : offered;
}

function toolOf(
  name: string,
  description: string,
  parameters: JsonObject,
): ChatCompletionFunctionTool {
  const schema = objectSchema(parameters);
  return { type: 'function', function: { name, description, parameters: schema } };
}

/** A turn in which the model said nothing has no message. */
function messageOf(
  item: TranscriptItem,
  offered: ModelRequest['tools'],
): ChatCompletionMessageParam[] {
  switch (item.role) {
    case 'system':
      return [{ role: 'system', content: item.text }];
    case 'user':
      return [{ role: 'user', content: item.text }];
    case 'tool':
      return [{ role: 'tool', tool_call_id: item.callId, content: item.text }];
    case 'assistant': {
      const tool_calls = item.calls.map((call) => ({
        type: 'function' as const,
        id: call.callId,
        function: {
          name: functionNameOf(call.toolId),
          arguments: JSON.stringify(objectArguments(call, offered)),
        },
      }));
      if (tool_calls.length > 0) return [{ role: 'assistant', content: item.text, tool_calls }];
      return item.text === '' ? [] : [{ role: 'assistant', content: item.text }];
    }
  }
}
