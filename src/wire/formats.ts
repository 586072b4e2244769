// The `format`s of JSON Schema (date-time, uri, …) for an Ajv instance, each tried on texts of bounded length only.
import type { Ajv2020 } from 'ajv/dist/2020.js';
import formatsPlugin from 'ajv-formats';

/** Longest text that a `format` is tried on, in UTF-16 units; longer ones do not have the format. */
const FORMAT_LENGTH = 4096;

// The package is CommonJS: under some loaders the function is the module itself, under others its default.
const plugin = ((formatsPlugin as unknown as { default?: unknown }).default ?? formatsPlugin) as (
  ajv: Ajv2020,
) => unknown;

export function addFormats(ajv: Ajv2020): void {
  plugin(ajv);
  for (const [name, format] of Object.entries(ajv.formats)) {
    const described = typeof format === 'object' && !(format instanceof RegExp);
    if (described && format.type === 'number') continue;
    const test = described ? format.validate : format;
    if (test instanceof RegExp)
      ajv.addFormat(name, (text: string) => text.length <= FORMAT_LENGTH && test.test(text));
    else if (typeof test === 'function') {
      const matches = test as (text: string) => boolean;
      ajv.addFormat(name, (text: string) => text.length <= FORMAT_LENGTH && matches(text));
    }
  }
}
