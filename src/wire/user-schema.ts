// The one compiler for JSON Schemas that others wrote: configurableSchema, resumeSchema, task and return schemas, tool
// schemas (spec/01 §6, spec/03 §2.3). Guarded: size, depth, local references only, linear-time patterns, bounded work.
import { Ajv2020, type AnySchemaObject } from 'ajv/dist/2020.js';
import { sha256Hex } from '../core/ids.ts';
import { canonicalJson, isJsonObject, jsonBytes } from '../core/json.ts';
import { addFormats } from './formats.ts';
import { faultsOf, type Checked, type Fault } from './checked.ts';
import { pointerSegment } from '../core/definition-graph.ts';
import { compilePattern, patternFault } from './linear-pattern.ts';

/** Largest schema in UTF-8 bytes of JSON. */
export const USER_SCHEMA_BYTES = 64 * 1024;
/** Deepest nesting of objects and arrays in a schema. */
export const USER_SCHEMA_DEPTH = 40;
/** References that one validation may follow: schemas may refer to themselves. */
const MAX_REFERENCES = 200_000;
/** Compiled schemas that are kept; the one used longest ago goes first. */
const CACHE_SIZE = 256;
/** Compilations after which the compiler is made anew: it keeps something of every schema that it ever saw. */
const RENEW_AFTER = 1000;
const DIALECT = 'https://json-schema.org/draft/2020-12/schema';
/** Keyword that this file puts beside every $ref, to count. */
const COUNTER = 'x-openwop-counted';

export interface UserSchema {
  /** Errors as JSON pointers into the value. Never throws. */
  validate(value: unknown): Checked<unknown>;
}

/**
 * Compiles once and keeps the result by content. A schema that is refused is a value: pointers into the schema.
 */
export function compileUserSchema(schema: unknown): Checked<UserSchema> {
  if (!isJsonObject(schema) && typeof schema !== 'boolean')
    return refused('', 'a schema is an object or a boolean');
  const unsafe: Fault[] = [];
  const prepared = prepare(schema, { pointer: '', depth: 0, names: false, data: false }, unsafe);
  const [first, ...rest] = unsafe;
  if (first) return { ok: false, errors: [first, ...rest] };
  // Behind the depth check: writing JSON text recurses.
  if (jsonBytes(schema) > USER_SCHEMA_BYTES)
    return refused('', `the schema is larger than ${USER_SCHEMA_BYTES} bytes`);
  const key = sha256Hex(canonicalJson(schema));
  const known = cache.get(key);
  cache.delete(key);
  // With an id of its own, a schema may refer to itself as a whole.
  const document =
    typeof prepared === 'boolean' ? { allOf: [prepared] } : (prepared as AnySchemaObject);
  const result = known ?? compile({ ...document, $id: `openwop:user-schema:${key}` });
  cache.set(key, result);
  for (const oldest of cache.keys()) {
    if (cache.size <= CACHE_SIZE) break;
    cache.delete(oldest);
  }
  return result;
}

const cache = new Map<string, Checked<UserSchema>>();

function refused(pointer: string, message: string): { ok: false; errors: [Fault] } {
  return { ok: false, errors: [{ pointer, message }] };
}

interface Place {
  readonly pointer: string;
  readonly depth: number;
  /** The object's keys are names of the author's choosing (properties, $defs), not keywords. */
  readonly names: boolean;
  /** Inside const, enum, default or examples: nothing is a keyword. */
  readonly data: boolean;
}

const NAME_MAPS = new Set([
  'properties',
  'patternProperties',
  '$defs',
  'definitions',
  'dependentSchemas',
  'dependentRequired',
]);
const DATA = new Set(['const', 'enum', 'default', 'examples', 'required', 'type']);
const REFUSED_KEYWORDS = new Set([
  '$dynamicRef',
  '$dynamicAnchor',
  '$recursiveRef',
  '$recursiveAnchor',
  '$vocabulary',
  '$async',
  COUNTER,
]);

/** A copy in which every reference is counted; what is unsafe is noted in `faults`. */
function prepare(value: unknown, place: Place, faults: Fault[]): unknown {
  if (place.depth > USER_SCHEMA_DEPTH) {
    faults.push({
      pointer: place.pointer,
      message: `is nested deeper than ${USER_SCHEMA_DEPTH} levels`,
    });
    return true;
  }
  if (typeof value !== 'object' || value === null || place.data) return value;
  const within = (name: string | number, more: Partial<Place>): Place => ({
    ...{ names: false, data: false },
    ...more,
    pointer: `${place.pointer}/${pointerSegment(name)}`,
    depth: place.depth + 1,
  });
  if (Array.isArray(value))
    return value.map((item, index) => prepare(item, within(index, {}), faults));
  const copy: Record<string, unknown> = {};
  for (const [name, member] of Object.entries(value)) {
    const inside = within(
      name,
      place.names ? {} : { names: NAME_MAPS.has(name), data: DATA.has(name) },
    );
    if (place.names) {
      if (name === '__proto__')
        faults.push({ pointer: inside.pointer, message: 'is not allowed as a name' });
    } else {
      const message = keywordFault(name, member);
      if (message !== undefined) faults.push({ pointer: inside.pointer, message });
      if (name === '$schema') continue;
      if (name === '$id') {
        // A schema within a schema keeps its own root for `#` references; what it calls itself is of no use here.
        parts += 1;
        if (place.depth > 0) copy.$id = `openwop:user-schema:part:${parts}`;
        continue;
      }
    }
    copy[name] = prepare(member, inside, faults);
    if (!place.names && name === '$ref') copy[COUNTER] = true;
  }
  if (place.names && place.pointer.endsWith('/patternProperties')) {
    for (const pattern of Object.keys(copy)) {
      const message = patternFault(pattern);
      if (message !== undefined)
        faults.push({ pointer: `${place.pointer}/${pointerSegment(pattern)}`, message });
    }
  }
  return copy;
}

function keywordFault(name: string, member: unknown): string | undefined {
  if (REFUSED_KEYWORDS.has(name)) return 'is not supported';
  if (name === '__proto__') return 'is not allowed as a name';
  if (name === '$ref' && !(typeof member === 'string' && member.startsWith('#')))
    return 'must refer to a place in this schema: #…';
  if (name === '$schema' && String(member).replace(/#$/, '') !== DIALECT)
    return `must be ${DIALECT}`;
  if (name === 'pattern' && typeof member === 'string') return patternFault(member);
  return undefined;
}

/** Numbers schemas within schemas: each needs a name of its own. */
let parts = 0;
let references = 0;
let ajv = createAjv();
let compiled = 0;

function compile(schema: AnySchemaObject): Checked<UserSchema> {
  compiled += 1;
  if (compiled % RENEW_AFTER === 0) ajv = createAjv();
  try {
    const check = ajv.compile(schema);
    ajv.removeSchema(schema.$id);
    return {
      ok: true,
      value: {
        validate: (value) => {
          references = 0;
          try {
            return check(value)
              ? { ok: true, value }
              : { ok: false, errors: faultsOf(check.errors) };
          } catch (error) {
            // Too many references, or one that refers to itself in place.
            if (!(error instanceof RangeError)) throw error;
            return refused('', 'takes too much work to check against this schema');
          }
        },
      },
    };
  } catch (error) {
    ajv.removeSchema(schema.$id);
    return refused('', error instanceof Error ? error.message : String(error));
  }
}

function createAjv(): Ajv2020 {
  const engine = Object.assign((pattern: string) => compilePattern(pattern), {
    code: 'compilePattern',
  });
  const created = new Ajv2020({
    strict: false,
    allErrors: false,
    inlineRefs: false,
    logger: false,
    addUsedSchema: false,
    code: { regExp: engine },
  });
  addFormats(created);
  // The library compares every pair of items; equality of canonical texts is the same and takes linear work.
  created.removeKeyword('uniqueItems').addKeyword({
    keyword: 'uniqueItems',
    type: 'array',
    schemaType: 'boolean',
    error: { message: 'must NOT have duplicate items' },
    validate: (wanted: boolean, items: readonly unknown[]) =>
      !wanted || new Set(items.map(canonicalJson)).size === items.length,
  });
  created.addKeyword({
    keyword: COUNTER,
    before: '$ref',
    validate: () => {
      references += 1;
      if (references > MAX_REFERENCES) throw new RangeError('too many references');
      return true;
    },
  });
  return created;
}
