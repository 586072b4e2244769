// `configurable` is open (run-options.md): a key that nobody here reads is accepted, and told. A misspelt one would
// otherwise leave a limit or a human check as it was, silently.
import { CODES, LACKING } from '../rules/capabilities.ts';
import { isJsonObject, type JsonObject } from '../rules/json.ts';
import type { RunCreateWarning, WorkflowDefinition } from '../../schemas/types.generated.ts';
import type { Models } from '../ports/models.ts';
import { CONFIGURABLE } from './configurable.ts';
import { untakenIn } from './model-options.ts';

/** Characters of a key that are shown, and up to which a similar one is looked for. */
const KEY_LENGTH = 64;
/** Keys of the workflow's own schema that a misspelt one is compared with. */
const MAX_OWN_KEYS = 128;
/** Letters that may differ: this many, or a third of the key. */
const MAX_DIFFERENCE = 3;

const AI = 'ai.';
/** Read besides the table. What is refused whatever the run does is so before anything is warned of. */
const ALSO_READ = ['provider', 'model', ...CODES.aiOptions.keys()].map((name) => `${AI}${name}`);

export interface WarnedOf {
  readonly configurable: JsonObject;
  readonly definition: WorkflowDefinition;
  readonly models: Pick<Models, 'untaken'>;
}

/** In the order of the keys, at most `most`: what is above is counted in the last one. Values are never repeated. */
export function configurableWarnings(asked: WarnedOf, most: number): RunCreateWarning[] {
  const { configurable, definition } = asked;
  const own = Object.keys(objectOf(objectOf(definition.configurableSchema).properties));
  const known = new Set([...Object.keys(CONFIGURABLE), ...ALSO_READ, ...own]);
  const candidates = [...Object.keys(CONFIGURABLE), ...ALSO_READ, ...own.slice(0, MAX_OWN_KEYS)];
  const untaken = untakenWarnings(asked, own);
  const odd = namedKeys(configurable, known).filter((key) => !known.has(key) || untaken.has(key));
  const warnings = odd.slice(0, most).map((key) => untaken.get(key) ?? warningOf(key, candidates));
  if (odd.length > most) {
    const left = odd.length - most + 1;
    const message = `And ${left} more keys of configurable that have no effect here.`;
    warnings[most - 1] = { ...(warnings[most - 1] as RunCreateWarning), message };
  }
  return warnings;
}

/** Options that the provider of the run does not take, by key; one of the workflow's own is read by that. */
function untakenWarnings(
  { configurable, models }: WarnedOf,
  own: readonly string[],
): ReadonlyMap<string, RunCreateWarning> {
  const { provider, options } = untakenIn(configurable, models);
  const without = options.filter((key) => !own.includes(key));
  return new Map(
    without.map((key) => {
      const message = `configurable.${key} has no effect: no model of the provider ${provider} takes it.`;
      return [key, { code: 'configurable_without_effect', key, message }];
    }),
  );
}

function objectOf(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {};
}

/** The keys as written, those below `ai` with it. */
function namedKeys(configurable: JsonObject, known: ReadonlySet<string>): string[] {
  return Object.entries(configurable).flatMap(([key, value]) =>
    key === 'ai' && isJsonObject(value) && !known.has(key)
      ? Object.keys(value).map((name) => `${AI}${name}`)
      : [key],
  );
}

function warningOf(key: string, candidates: readonly string[]): RunCreateWarning {
  const shown = key.length > KEY_LENGTH ? `${key.slice(0, KEY_LENGTH)}…` : key;
  if (LACKING.configurable.has(key)) {
    const message = `configurable.${shown} has no effect: this host does not offer its capability.`;
    return { code: 'configurable_without_effect', key: shown, message };
  }
  const nearest = key.length > KEY_LENGTH ? undefined : nearestOf(key, candidates);
  const hint = nearest === undefined ? '' : ` Did you mean "${nearest}"?`;
  return {
    code: 'configurable_unknown_key',
    key: shown,
    ...(nearest === undefined ? {} : { nearest }),
    message: `configurable.${shown} is not known here and has no effect.${hint}`,
  };
}

function nearestOf(key: string, candidates: readonly string[]): string | undefined {
  const limit = Math.min(MAX_DIFFERENCE, Math.floor(key.length / 3));
  let nearest: { name: string; distance: number } | undefined;
  for (const name of candidates) {
    if (Math.abs(name.length - key.length) > limit) continue;
    const distance = differenceOf(key.toLowerCase(), name.toLowerCase());
    if (distance <= limit && distance < (nearest?.distance ?? Infinity))
      nearest = { name, distance };
  }
  return nearest?.name;
}

/** Letters to insert, take away or replace between two words (Levenshtein); both are short. */
function differenceOf(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
