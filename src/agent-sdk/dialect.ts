// The JSON Schemas of tools, compiled by the dialect that each names: the dialects that the host takes of a tool, too.
import { Ajv, type ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formatsPlugin from 'ajv-formats';

/** What `$schema` may say, with or without `#` at its end; without it a schema is of 2020-12. */
const DIALECTS: ReadonlyMap<unknown, typeof Ajv> = new Map([
  ['https://json-schema.org/draft/2020-12/schema', Ajv2020],
  // Written by many tools still.
  ['http://json-schema.org/draft-07/schema', Ajv],
  ['https://json-schema.org/draft-07/schema', Ajv],
]);

// The package is CommonJS: under some loaders the function is the module itself, under others its default.
const addFormats = ((formatsPlugin as unknown as { default?: unknown }).default ??
  formatsPlugin) as (ajv: Ajv) => unknown;

/** `what` begins the sentence of a fault. Throws TypeError on a dialect that is not taken, and what Ajv throws on a bad schema. */
export function compileSchema(schema: object, what: string): ValidateFunction {
  const { $schema, ...rest } = schema as { readonly $schema?: unknown };
  const named = typeof $schema === 'string' ? $schema.replace(/#$/, '') : $schema;
  const Dialect = named === undefined ? Ajv2020 : DIALECTS.get(named);
  if (!Dialect)
    throw new TypeError(
      `${what} has the "$schema" ${JSON.stringify($schema)}, and must have none or one of ${[...DIALECTS.keys()].join(', ')}.`,
    );
  // One for each schema: two of a tool may have one id.
  const ajv = new Dialect({ strict: false, logger: false });
  addFormats(ajv);
  return ajv.compile(rest);
}
