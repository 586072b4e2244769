// The host's own tools. `core:json.query` is pure; `core:clock` reads the world, and what it read is recorded.
import { isJsonObject, type JsonObject, type JsonValue } from '../../rules/json.ts';
import type { Tool } from '../../ports/tools.ts';

const CORE_TOOL_TIMEOUT_MS = 5_000;

/** All tools of scope `core`, to register with createTools. */
export function coreTools(clock: () => number = Date.now): readonly Tool[] {
  return [jsonQuery, clockTool(clock)];
}

const jsonQuery: Tool = {
  toolId: 'core:json.query',
  description:
    'Reads one value out of a JSON document. Give `pointer`, a JSON Pointer (RFC 6901) such as /items/0/price, or ' +
    '`path`, dotted names with indexes such as items[0].price. Answers {found, value}.',
  inputSchema: {
    type: 'object',
    properties: {
      document: {},
      pointer: { type: 'string', maxLength: 1024, pattern: '^(/.*)?$' },
      path: { type: 'string', maxLength: 1024 },
    },
    required: ['document'],
    oneOf: [{ required: ['pointer'] }, { required: ['path'] }],
    additionalProperties: false,
  },
  outputSchema: {
    type: 'object',
    properties: { found: { type: 'boolean' }, value: {} },
    required: ['found'],
    additionalProperties: false,
  },
  idempotent: true,
  timeoutMs: CORE_TOOL_TIMEOUT_MS,
  transport: 'native',
  safetyTier: 'pure',
  call: async (input) => {
    const { document = null, pointer, path } = input as JsonObject;
    const segments =
      typeof pointer === 'string' ? pointerSegments(pointer) : pathSegments(path as string);
    const value = segments && lookUp(document, segments);
    const answer: JsonObject = value === undefined ? { found: false } : { found: true, value };
    return answer;
  },
};

/** RFC 6901: `~1` is `/`, `~0` is `~`; the empty pointer is the whole document. */
function pointerSegments(pointer: string): string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((segment) => segment.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** `a.b[0].c`; undefined when the text is not of this form. */
function pathSegments(path: string): string[] | undefined {
  if (path === '') return [];
  const segments: string[] = [];
  for (const part of path.split('.')) {
    const match = /^([^[\]]*)((?:\[\d+\])*)$/.exec(part);
    const [, name = '', indexes = ''] = match ?? [];
    if (!match || (name === '' && (indexes === '' || segments.length > 0))) return undefined;
    if (name !== '') segments.push(name);
    segments.push(...(indexes.match(/\d+/g) ?? []));
  }
  return segments;
}

function lookUp(document: JsonValue, segments: readonly string[]): JsonValue | undefined {
  let at: JsonValue | undefined = document;
  for (const segment of segments) {
    if (Array.isArray(at)) at = /^(0|[1-9]\d*)$/.test(segment) ? at[Number(segment)] : undefined;
    else at = isJsonObject(at) && Object.hasOwn(at, segment) ? at[segment] : undefined;
    if (at === undefined) return undefined;
  }
  return at;
}

function clockTool(clock: () => number): Tool {
  return {
    toolId: 'core:clock',
    description: 'Tells the current time: {iso, epochMs}, in UTC.',
    inputSchema: { type: 'object', properties: {}, additionalProperties: false },
    outputSchema: {
      type: 'object',
      properties: { iso: { type: 'string' }, epochMs: { type: 'integer' } },
      required: ['iso', 'epochMs'],
      additionalProperties: false,
    },
    idempotent: true,
    timeoutMs: CORE_TOOL_TIMEOUT_MS,
    transport: 'native',
    safetyTier: 'read',
    call: async () => {
      const epochMs = clock();
      return { iso: new Date(epochMs).toISOString(), epochMs };
    },
  };
}
