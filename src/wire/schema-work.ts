// What a schema that somebody wrote may cost (architecture §10), to make it ready and to check a value
// by it: both may be hostile, and everybody else of the process waits meanwhile. One count for all, not time: the same
// schema and the same value always end the same.
import { _, type KeywordCxt, type KeywordDefinition } from 'ajv/dist/2020.js';
import { canonicalJson, jsonBytes } from '../rules/json.ts';
import { compilePattern, type LinearPattern } from './linear-pattern.ts';

/**
 * Units for one schema of others to be made ready, and for one check: one is some 50 ns, so that it ends within half a second.
 */
export const MAX_WORK = 10_000_000;
/** To make ready an object or a list of a schema, and as much again for each so much of what came before it. */
const PART_WORK = 3_000;
const PART_GROWS_WORK = MAX_WORK / 4;
/** To make ready a list of names that another one requires: the library's code for it grows with its square. */
const NAMES_SQUARED_WORK = 20;
/** To make ready an instruction of a pattern. */
const INSTRUCTION_WORK = 200;
/** A match, and as many steps of it (an instruction at a character) as take the time of one unit at worst. */
const MATCH_WORK = 20;
const STEPS_PER_UNIT = 2;
/** Each reference may begin a check of its own: schemas may refer to themselves. */
const REFERENCE_WORK = 50;
/** Names of an object are collected at each visit. */
const KEY_WORK = 5;
/** To look for a name that another one requires: the code for many of them is too long to be optimised. */
const REQUIRED_NAME_WORK = 4;
/** Comparisons and short steps that take the time of one unit. */
const CHEAP = 10;

/** Keyword that stands in each subschema, to count: what one visit costs by the rules in it. */
export const COUNTER = 'x-openwop-counted';

export function costOf(schema: Readonly<Record<string, unknown>>): number {
  const costs = Object.entries(schema).map(([name, member]) => ruleCost(name, member));
  return Math.ceil(costs.reduce((sum, cost) => sum + cost, 1));
}

const NAMED = new Set(['properties', 'dependentRequired', 'dependentSchemas', 'dependencies']);

function ruleCost(name: string, member: unknown): number {
  if (name === '$ref') return REFERENCE_WORK;
  if (name === 'enum' || name === 'const') return jsonBytes(member) / CHEAP;
  if (Array.isArray(member)) return name === 'required' ? member.length / CHEAP : member.length;
  if (NAMED.has(name) && typeof member === 'object' && member !== null)
    return Object.values(member).reduce<number>(
      (sum, one) => sum + 1 / CHEAP + lengthOf(one) * REQUIRED_NAME_WORK,
      0,
    );
  return 0;
}

function lengthOf(value: unknown): number {
  return Array.isArray(value) ? value.length : 0;
}

let work = 0;
let most = MAX_WORK;

/** To be called before each schema and each check. `limit`: what it may cost, in the same units. */
export function beginWork(limit = MAX_WORK): void {
  work = 0;
  most = limit;
}

export function workDone(): number {
  return work;
}

/** Throws RangeError when it has cost too much. */
function charge(units: number): void {
  work += units;
  if (work > most) throw new RangeError('too much work');
}

/** A part is made ready. Throws as `charge`: the compiler's work grows faster than the schema. */
export function chargePart(): void {
  charge(PART_WORK * (1 + work / PART_GROWS_WORK));
}

/** A list of names is made ready that one name requires (`dependentRequired`). Throws as `charge`. */
export function chargeNames(count: number): void {
  charge(NAMES_SQUARED_WORK * count ** 2);
}

/** A pattern is made ready. Throws as `charge`, and as compilePattern. */
export function chargePattern(pattern: string): void {
  charge(INSTRUCTION_WORK * compilePattern(pattern).size);
}

function chargeVisit(cost: number, value: unknown): void {
  if (typeof value === 'string') charge(cost + value.length / CHEAP);
  else if (typeof value !== 'object' || value === null || Array.isArray(value)) charge(cost);
  else charge(cost + KEY_WORK * Object.keys(value).length);
}

export const counterKeyword: KeywordDefinition = {
  keyword: COUNTER,
  before: '$ref',
  code({ gen, data, schema }: KeywordCxt) {
    gen.code(_`${gen.scopeValue('func', { ref: chargeVisit })}(${schema as number}, ${data})`);
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
