// Templates in scripts: `{{task.<path>}}`, `{{results.<n>.<path>}}` (tool results of the conversation, in order),
// `{{answers.<path>}}` (a human's last answers), `{{prompt.<name>}}` (of a line `<name>: <value>` of the system prompt). A string that is one template alone gives the value itself.
import { isJsonObject, type JsonObject, type JsonValue } from '../../rules/json.ts';
import { untrustedSegment } from '../../rules/untrusted.ts';
import type { TranscriptItem } from '../../ports/models.ts';

const TEMPLATE = /\{\{\s*((?:task|results|answers|prompt)(?:\.[A-Za-z0-9_-]{1,64}){0,16})\s*\}\}/g;
const WHOLE = new RegExp(`^${TEMPLATE.source}$`);

/** What the templates of one call can name, read from the transcript as any model reads it. */
export function scriptValues(items: readonly TranscriptItem[]): JsonObject {
  const users = items.filter((item) => item.role === 'user' && !item.trusted);
  const results = items.filter(({ role }) => role === 'tool');
  return {
    task: valueOf(users[0]?.text),
    results: results.map(({ text }) => valueOf(text)),
    answers: users.length > 1 ? valueOf(users.at(-1)?.text) : null,
    prompt: settingsIn(items.find(({ role }) => role === 'system')?.text ?? ''),
  };
}

/** What a prompt sets by lines of its own: a script can follow a prompt that far. */
function settingsIn(prompt: string): JsonObject {
  const lines = prompt.matchAll(/^([A-Za-z0-9_-]{1,64}):[ \t]*(\S.*)$/gm);
  return Object.fromEntries([...lines].map(([, name = '', value = '']) => [name, value.trim()]));
}

function valueOf(text: string | undefined): JsonValue {
  const inner = text === undefined ? undefined : untrustedSegment(text);
  if (inner === undefined) return null;
  try {
    return JSON.parse(inner) as JsonValue;
  } catch {
    // A tool may answer plain text, or text cut at its bound.
    return inner;
  }
}

/** The value at a path of a template; null where there is none. */
export function lookUp(values: JsonObject, path: string): JsonValue {
  let at: JsonValue | undefined = values;
  for (const segment of path.split('.')) {
    if (Array.isArray(at)) at = at[Number(segment)];
    else at = isJsonObject(at) && Object.hasOwn(at, segment) ? at[segment] : undefined;
  }
  return at ?? null;
}

/** Fills every string of `value`; what a template does not find is null, inside a longer text nothing. */
export function fillTemplates(value: JsonValue, values: JsonObject): JsonValue {
  if (typeof value === 'string') {
    const whole = WHOLE.exec(value)?.[1];
    if (whole !== undefined) return lookUp(values, whole);
    return value.replace(TEMPLATE, (_, path: string) => {
      const found = lookUp(values, path);
      if (found === null) return '';
      return typeof found === 'string' ? found : JSON.stringify(found);
    });
  }
  if (Array.isArray(value)) return value.map((item) => fillTemplates(item, values));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, item]) => item !== undefined)
      .map(([key, item]) => [key, fillTemplates(item, values)]),
  );
}
