// The one compiler for JSON Schemas that others wrote: configurableSchema, resumeSchema, task and return schemas, tool
// schemas (workflow-definition.schema.json, RFC 0003). Guarded: size, depth, local references only, linear-time
// patterns; the work that it makes, to be made ready and at each check, has one bound (schema-work.ts), twice that to make
// ready what the host makes of several.
import { Ajv, type AnySchemaObject, type Options } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { sha256Hex } from '../rules/ids.ts';
import { canonicalJson, isJsonObject, jsonBytes, pointerSegment } from '../rules/json.ts';
import { addFormats } from './formats.ts';
import { faultsOf, type Checked, type Fault } from './checked.ts';
import {
  beginWork,
  chargeNames,
  chargePart,
  chargePattern,
  costOf,
  COUNTER,
  countedPattern,
  counterKeyword,
  MAX_WORK,
  uniqueItemsKeyword,
  workDone,
} from './schema-work.ts';

/** Largest schema in UTF-8 bytes of JSON. */
export const USER_SCHEMA_BYTES = 64 * 1024;
/** Deepest nesting of objects and arrays in a schema. */
export const USER_SCHEMA_DEPTH = 40;
/** Largest size and deepest nesting of a schema, and what it may cost to make it ready. A check by it costs MAX_WORK at most. */
interface Bounds {
  readonly bytes: number;
  readonly depth: number;
  readonly work: number;
}
const OF_OTHERS: Bounds = {
  ...{ bytes: USER_SCHEMA_BYTES, depth: USER_SCHEMA_DEPTH },
  work: MAX_WORK,
};
/**
 * Of a schema that this host made of such schemas, as that of a question: one of an agent or of a clarification fits in it.
 * Several of one node may not, nor one of a conversation, which stands in it twice: the definition is refused then
 * (load-definition.ts).
 */
export const COMPOSED: Bounds = {
  ...{ bytes: 8 * USER_SCHEMA_BYTES, depth: USER_SCHEMA_DEPTH + 10 },
  work: 2 * MAX_WORK,
};
/** Compiled schemas that are kept; the one used longest ago goes first. */
const CACHE_SIZE = 256;
/** Compilations after which the compiler is made anew: it keeps something of every schema that it ever saw. */
const RENEW_AFTER = 1000;
/** What `$schema` may say; without it a schema is of 2020-12. */
const DIALECTS: ReadonlyMap<string, Dialect> = new Map([
  ['https://json-schema.org/draft/2020-12/schema', '2020-12'],
  // Written by many tools still.
  ['http://json-schema.org/draft-07/schema', 'draft-07'],
  ['https://json-schema.org/draft-07/schema', 'draft-07'],
]);
type Dialect = '2020-12' | 'draft-07';

export interface UserSchema {
  /** Errors as JSON pointers into the value. Never throws. */
  validate(value: unknown): Checked<unknown>;
}

/** `work`: what it took to make the schema ready, or to refuse it, in units of MAX_WORK; the same each time. */
export type CompiledSchema = Checked<UserSchema> & { readonly work: number };

/** A value by a schema of others; a schema that cannot be used has the faults itself. */
export function checkAgainst(schema: unknown, value: unknown): Checked<unknown> {
  const compiled = compileUserSchema(schema);
  return compiled.ok ? compiled.value.validate(value) : compiled;
}

/** Compiles once and keeps the result by content. A schema that is refused is a value: pointers into the schema. */
export function compileUserSchema(schema: unknown, bounds = OF_OTHERS): CompiledSchema {
  if (!isJsonObject(schema) && typeof schema !== 'boolean')
    return refused('', 'a schema is an object or a boolean');
  // Writing JSON text recurses, and all that follows takes time with size: these come first.
  const { bytes, depth, work } = bounds;
  const deep = tooDeep(schema, { pointer: '', left: depth });
  if (deep !== undefined) return refused(deep, `is nested deeper than ${depth} levels`);
  if (jsonBytes(schema) > bytes) return refused('', `the schema is larger than ${bytes} bytes`);
  // What is refused within one bound may be taken within another.
  const key = sha256Hex(canonicalJson([work, schema]));
  const result = cache.get(key) ?? prepareAndCompile(schema, key, work);
  cache.delete(key);
  cache.set(key, result);
  for (const oldest of cache.keys()) {
    if (cache.size <= CACHE_SIZE) break;
    cache.delete(oldest);
  }
  return result;
}

const cache = new Map<string, CompiledSchema>();

function prepareAndCompile(schema: object | boolean, key: string, limit: number): CompiledSchema {
  beginWork(limit);
  const faults: Fault[] = [];
  let prepared: unknown;
  try {
    prepared = prepare(schema, { pointer: '', depth: 0, data: false }, faults);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return { ...refused('', 'takes too much work to make ready'), work: workDone() };
  }
  const work = workDone();
  const [first, ...rest] = faults;
  if (first) return { ok: false, errors: [first, ...rest], work };
  // With an id of its own, a schema may refer to itself as a whole.
  const document =
    typeof prepared === 'boolean' ? { allOf: [prepared] } : (prepared as AnySchemaObject);
  const dialect = typeof schema === 'boolean' ? undefined : dialectOf(schema);
  return {
    ...compile({ ...document, $id: `openwop:user-schema:${key}` }, dialect ?? '2020-12'),
    work,
  };
}

/** Undefined where it does not say. */
function dialectOf(schema: object): Dialect | undefined {
  const { $schema } = schema as { $schema?: unknown };
  return typeof $schema === 'string' ? DIALECTS.get($schema.replace(/#$/, '')) : undefined;
}

/** Where the value is deeper than permitted, data in it too. */
function tooDeep(
  value: unknown,
  { pointer, left }: { readonly pointer: string; readonly left: number },
): string | undefined {
  if (left < 0) return pointer;
  if (typeof value !== 'object' || value === null) return undefined;
  for (const [name, member] of Object.entries(value)) {
    const inside = { pointer: `${pointer}/${pointerSegment(name)}`, left: left - 1 };
    const found = tooDeep(member, inside);
    if (found !== undefined) return found;
  }
  return undefined;
}

function refused(pointer: string, message: string): { ok: false; errors: [Fault]; work: number } {
  return { ok: false, errors: [{ pointer, message }], work: 0 };
}

interface Place {
  readonly pointer: string;
  readonly depth: number;
  /** The keyword whose object this is: its keys are names of the author's choosing (properties, $defs), not keywords. */
  readonly namesOf?: string;
  /** The keyword whose object this is a member of, or `list`. */
  readonly memberOf?: string;
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
  'dependencies',
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

/** Lists below these are of names that one name requires. */
const REQUIRING = new Set(['dependentRequired', 'dependencies']);

/** A copy in which the work of each subschema is counted; what is unsafe is noted. Throws as chargePart. */
function prepare(value: unknown, place: Place, faults: Fault[]): unknown {
  // A member that is yes or no is made ready as any other schema.
  if (typeof value === 'boolean' && place.memberOf !== undefined) chargePart();
  if (typeof value !== 'object' || value === null || place.data) return value;
  chargePart();
  const within = (name: string | number, more: Partial<Place>): Place => ({
    data: false,
    ...more,
    pointer: `${place.pointer}/${pointerSegment(name)}`,
    depth: place.depth + 1,
  });
  if (Array.isArray(value)) {
    if (REQUIRING.has(place.memberOf ?? '')) chargeNames(value.length);
    return value.map((item, index) => prepare(item, within(index, { memberOf: 'list' }), faults));
  }
  const isNames = place.namesOf !== undefined;
  const copy: Record<string, unknown> = {};
  for (const [name, member] of Object.entries(value)) {
    const inside = within(
      name,
      isNames
        ? { memberOf: place.namesOf }
        : { namesOf: NAME_MAPS.has(name) ? name : undefined, data: DATA.has(name) },
    );
    const message = isNames ? nameFault(name, place) : keywordFault(name, member);
    if (message !== undefined) faults.push({ pointer: inside.pointer, message });
    if (!isNames && name === '$schema') continue;
    if (!isNames && name === '$id') {
      // A schema within a schema keeps its own root for `#` references; what it calls itself is of no use here.
      parts += 1;
      if (place.depth > 0) copy.$id = `openwop:user-schema:part:${parts}`;
      continue;
    }
    copy[name] = prepare(member, inside, faults);
  }
  const counts = !isNames && Object.keys(copy).length > 0;
  return counts ? { ...copy, [COUNTER]: costOf(copy) } : copy;
}

function nameFault(name: string, { namesOf }: Place): string | undefined {
  if (name === '__proto__') return 'is not allowed as a name';
  return namesOf === 'patternProperties' ? patternFault(name) : undefined;
}

function patternFault(pattern: string): string | undefined {
  try {
    chargePattern(pattern);
    return undefined;
  } catch (error) {
    if (error instanceof RangeError) throw error;
    return error instanceof Error ? error.message : String(error);
  }
}

function keywordFault(name: string, member: unknown): string | undefined {
  if (REFUSED_KEYWORDS.has(name)) return 'is not supported';
  if (name === '__proto__') return 'is not allowed as a name';
  if (name === '$ref' && !(typeof member === 'string' && member.startsWith('#')))
    return 'must refer to a place in this schema: #…';
  if (name === '$schema' && dialectOf({ $schema: member }) === undefined)
    return `must be one of ${[...DIALECTS.keys()].join(', ')}`;
  if (name === 'pattern' && typeof member === 'string') return patternFault(member);
  return undefined;
}

/** Numbers schemas within schemas: each needs a name of its own. */
let parts = 0;
let compilers: Partial<Record<Dialect, Ajv>> = {};
let compiled = 0;

function compile(schema: AnySchemaObject, dialect: Dialect): Checked<UserSchema> {
  compiled += 1;
  if (compiled % RENEW_AFTER === 0) compilers = {};
  const ajv = (compilers[dialect] ??= createAjv(dialect));
  // The schema itself is checked by the same means.
  beginWork();
  try {
    const check = ajv.compile(schema);
    ajv.removeSchema(schema.$id);
    return {
      ok: true,
      value: {
        validate: (value) => {
          beginWork();
          try {
            return check(value)
              ? { ok: true, value }
              : { ok: false, errors: faultsOf(check.errors) };
          } catch (error) {
            // Its limit, or a reference to itself in place.
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

function createAjv(dialect: Dialect): Ajv {
  const engine = Object.assign((pattern: string) => countedPattern(pattern), {
    code: 'countedPattern',
  });
  const options: Options = {
    strict: false,
    allErrors: false,
    inlineRefs: false,
    logger: false,
    addUsedSchema: false,
    // A name that every object has is there only where the value has it.
    ownProperties: true,
    // The optimiser's time grows with the square of the schema: seconds for one of 60 KB.
    code: { regExp: engine, optimize: false },
  };
  const created = dialect === '2020-12' ? new Ajv2020(options) : new Ajv(options);
  addFormats(created);
  created.removeKeyword('uniqueItems').addKeyword(uniqueItemsKeyword);
  created.addKeyword(counterKeyword);
  return created;
}
