// What one check of a value against somebody's schema may cost (design §10 "bounded work"): both may be hostile, and
// everybody else of the process waits meanwhile. It is counted, not timed: the same check always ends the same.
import { _, type KeywordCxt, type KeywordDefinition } from 'ajv/dist/2020.js';
import { canonicalJson, jsonBytes } from '../rules/json.ts';
import { compilePattern, type LinearPattern } from './linear-pattern.ts';

/** Units of one check: a visit of a subschema or a character written is about one, some 50 ns. */
export const MAX_WORK = 10_000_000;
/** A match, and as many steps of it (an instruction at a character) as take the time of one unit at worst. */
const MATCH_WORK = 20;
const STEPS_PER_UNIT = 2;
/** Each reference may begin a check of its own: schemas may refer to themselves. */
const REFERENCE_WORK = 50;
/** Names of an object are collected anew at each visit. */
const KEY_WORK = 10;
/** Comparisons and short steps that take the time of one unit. */
const CHEAP = 10;

/** Keyword that stands in each subschema, to count. */
export const COUNTER = 'x-openwop-counted';

/** Of one visit: `fixed` units, and some for each key of an object or character of a text. */
interface Cost {
  readonly fixed: number;
  readonly keys: boolean;
  readonly characters: boolean;
}

const BY_KEYS = ['additionalProperties', 'patternProperties', 'propertyNames', 'minProperties'];
const MORE_BY_KEYS = ['maxProperties', 'unevaluatedProperties'];
const KEYED = new Set([...BY_KEYS, ...MORE_BY_KEYS]);
const NAMED = new Set(['properties', 'dependentRequired', 'dependentSchemas', 'dependencies']);

/** By the rules that stand in the subschema itself. */
export function costOf(schema: Readonly<Record<string, unknown>>): Cost {
  const names = Object.keys(schema);
  const fixed = names.reduce((sum, name) => sum + fixedCost(name, schema[name]), 1);
  return {
    fixed: Math.ceil(fixed),
    keys: names.some((name) => KEYED.has(name)),
    characters: 'minLength' in schema || 'maxLength' in schema,
  };
}

function fixedCost(name: string, member: unknown): number {
  if (name === '$ref') return REFERENCE_WORK;
  if (name === 'enum' || name === 'const') return jsonBytes(member) / CHEAP;
  if (Array.isArray(member)) return name === 'required' ? member.length / CHEAP : member.length;
  if (NAMED.has(name) && typeof member === 'object' && member !== null)
    return Object.keys(member).length / CHEAP;
  return 0;
}

let work = 0;

/** To be called before each check. */
export function beginWork(): void {
  work = 0;
}

/** Throws RangeError when the check has cost too much. */
function charge(units: number): void {
  work += units;
  if (work > MAX_WORK) throw new RangeError('too much work');
}

function chargeVisit(fixed: number, value: unknown): void {
  if (Array.isArray(value) || typeof value !== 'object' || value === null) charge(fixed);
  else charge(fixed + KEY_WORK * Object.keys(value).length);
}

function chargeText(fixed: number, value: unknown): void {
  charge(typeof value === 'string' ? fixed + value.length / CHEAP : fixed);
}

export const counterKeyword: KeywordDefinition = {
  keyword: COUNTER,
  before: '$ref',
  code(context: KeywordCxt) {
    const { fixed, keys, characters } = context.schema as Cost;
    const { gen, data } = context;
    const call = (charging: (fixed: number, value: unknown) => void) =>
      gen.code(_`${gen.scopeValue('func', { ref: charging })}(${fixed}, ${data})`);
    if (keys) call(chargeVisit);
    if (characters) call(chargeText);
    if (!keys && !characters) call(charge);
  },
};

/** A pattern whose matching is counted. Throws as compilePattern does. */
export function countedPattern(pattern: string): LinearPattern {
  const compiled = compilePattern(pattern);
  return {
    ...compiled,
    test(text) {
      // Before it: a match cannot be interrupted.
      charge(MATCH_WORK + (compiled.size * text.length) / STEPS_PER_UNIT);
      return compiled.test(text);
    },
  };
}

/** The library compares every pair of items; equality of canonical texts is the same and takes linear work. */
export const uniqueItemsKeyword: KeywordDefinition = {
  keyword: 'uniqueItems',
  type: 'array',
  schemaType: 'boolean',
  error: { message: 'must NOT have duplicate items' },
  validate: (wanted: boolean, items: readonly unknown[]) => {
    if (!wanted) return true;
    const texts = new Set<string>();
    for (const item of items) {
      const text = canonicalJson(item);
      charge(1 + text.length);
      texts.add(text);
    }
    return texts.size === items.length;
  },
};
