// What OpenAI's chat completions refuse with 400, as their documents say, for the test's endpoint: the first fault of a
// request, in words.
type Json = Record<string, unknown>;

const FIELDS: Readonly<Record<string, string>> = {
  model: 'string',
  messages: 'object',
  stream: 'boolean',
  stream_options: 'object',
  tools: 'object',
  tool_choice: 'string',
  response_format: 'object',
  temperature: 'number',
  max_completion_tokens: 'number',
};
const REQUIRED = ['model', 'messages'];
const NAME = /^[a-zA-Z0-9_-]{1,64}$/;
const ALTERNATIVES = ['oneOf', 'anyOf', 'allOf', 'enum', 'not'];
const FIELDS_OF_MESSAGES: Readonly<Record<string, readonly string[]>> = {
  system: ['role', 'content'],
  user: ['role', 'content'],
  assistant: ['role', 'content', 'tool_calls'],
  tool: ['role', 'content', 'tool_call_id'],
};

export function faultOfCompletions(body: Json): string | undefined {
  return (
    faultOfFields(body) ??
    faultOfTools(body) ??
    faultOfFormat(body.response_format as Json | undefined) ??
    faultOfMessages(body.messages as Json[])
  );
}

function faultOfFields(body: Json): string | undefined {
  if ('max_tokens' in body)
    return "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
  for (const [name, value] of Object.entries(body)) {
    if (!Object.hasOwn(FIELDS, name)) return `Unrecognized request argument supplied: ${name}`;
    if (typeof value !== FIELDS[name]) return `Invalid type for '${name}'.`;
  }
  const missing = REQUIRED.find((name) => body[name] === undefined);
  if (missing) return `you must provide a ${missing} parameter`;
  if (body.stream_options !== undefined && body.stream !== true)
    return "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
  const { temperature = 1 } = body;
  return Number(temperature) >= 0 && Number(temperature) <= 2 ? undefined : 'temperature: 0 to 2';
}

function faultOfTools({ tools, tool_choice: choice }: Json): string | undefined {
  if (tools === undefined)
    return choice === undefined
      ? undefined
      : "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.";
  const listed = tools as Json[];
  if (listed.length === 0 || listed.length > 128) return "Invalid 'tools': 1 to 128 of them.";
  const names = listed.map((tool) => (tool.function as Json).name);
  if (new Set(names).size < names.length) return "Invalid 'tools': names must be unique.";
  for (const [at, tool] of listed.entries()) {
    const { name, parameters, ...rest } = tool.function as Json;
    if (tool.type !== 'function' || Object.keys(tool).length > 2) return `Invalid 'tools[${at}]'.`;
    if (!NAME.test(String(name)))
      return `Invalid 'tools[${at}].function.name': string does not match pattern.`;
    if (Object.keys(rest).some((key) => !['description', 'strict'].includes(key)))
      return `Unknown parameter in 'tools[${at}].function'.`;
    const { type, ...schema } = parameters as Json;
    if (type !== 'object' || ALTERNATIVES.some((keyword) => keyword in schema))
      return `Invalid schema for function '${String(name)}': schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level.`;
  }
  return undefined;
}

function faultOfFormat(format: Json | undefined): string | undefined {
  if (format === undefined) return undefined;
  const { name, schema } = (format.json_schema ?? {}) as Json;
  const valid = format.type === 'json_schema' && NAME.test(String(name)) && schema !== undefined;
  return valid ? undefined : "Invalid 'response_format'.";
}

function faultOfMessages(messages: readonly Json[]): string | undefined {
  if (messages.length === 0) return "Invalid 'messages': empty array.";
  /** Ids of calls that are not answered yet. */
  let open: unknown[] = [];
  for (const [at, message] of messages.entries()) {
    const fields = FIELDS_OF_MESSAGES[String(message.role)] ?? [];
    const unknown = Object.keys(message).find((name) => !fields.includes(name));
    if (unknown !== undefined) return `Unknown parameter: 'messages[${at}].${unknown}'.`;
    if (message.role === 'tool') {
      if (!open.includes(message.tool_call_id))
        return "Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls'.";
      open = open.filter((id) => id !== message.tool_call_id);
    } else if (open.length > 0)
      return `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id': ${open.join()}`;
    const calls = message.tool_calls as Json[] | undefined;
    const fault = calls ? faultOfCalls(calls) : faultOfContent(message, at);
    if (fault !== undefined) return fault;
    if (calls) open = calls.map(({ id }) => id);
  }
  return open.length === 0 ? undefined : "messages: 'tool_calls' without an answer at the end.";
}

function faultOfContent({ content, role }: Json, at: number): string | undefined {
  if (typeof content !== 'string')
    return `Invalid value for 'content' of messages[${at}]: expected a string.`;
  return role === 'assistant' && content === ''
    ? `Invalid 'messages[${at}].content': an assistant that calls nothing has to say something.`
    : undefined;
}

function faultOfCalls(calls: readonly Json[]): string | undefined {
  if (calls.length === 0) return "Invalid 'tool_calls': empty array.";
  const ids = calls.map(({ id }) => id);
  if (new Set(ids).size < ids.length) return "Duplicate value for 'tool_call_id'.";
  const valid = calls.every(({ id, type, function: called }) => {
    const { name, arguments: sent } = called as Json;
    return (
      typeof id === 'string' &&
      type === 'function' &&
      NAME.test(String(name)) &&
      typeof sent === 'string'
    );
  });
  return valid ? undefined : "Invalid 'tool_calls'.";
}
