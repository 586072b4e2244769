// `npm run generate`: writes schemas/types.generated.ts from the schemas in this folder. test/wire fails
// when the written file is not what this gives.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { compile, type JSONSchema } from 'json-schema-to-typescript';
import { format, resolveConfig } from 'prettier';

const folder = new URL('./', import.meta.url);
export const GENERATED = new URL('./types.generated.ts', import.meta.url);

/** Named shapes are exported once, by their `title`. */
export async function generateTypes(): Promise<string> {
  const names = readdirSync(folder)
    .filter((name) => name.endsWith('.schema.json'))
    .sort();
  const parts: string[] = [];
  const seen = new Set<string>();
  for (const name of names) {
    const schema = JSON.parse(readFileSync(new URL(name, folder), 'utf8')) as JSONSchema;
    // "Exactly one of these fields" is no type of its own: the validators hold it.
    const shapes = Object.values((schema.$defs ?? {}) as Record<string, JSONSchema>);
    for (const shape of [schema, ...shapes]) {
      if (shape.oneOf?.every((choice) => Object.keys(choice).join() === 'required'))
        delete shape.oneOf;
    }
    const code = await compile(schema, name, {
      bannerComment: '',
      format: false,
      unknownAny: true,
      strictIndexSignatures: false,
    });
    for (const block of code.split(/\n(?=export )/)) {
      const exported = /export (?:interface|type) (\w+)/.exec(block)?.[1];
      if (!exported || seen.has(exported)) continue;
      seen.add(exported);
      parts.push(block.replace(/\n\/\*\*(?:(?!\*\/)[\s\S])*\*\/\s*$/, ''));
    }
  }
  const text = `// Written by \`npm run generate\` from schemas/. Do not edit.\n${parts.join('\n')}`;
  const config = await resolveConfig(new URL('../package.json', import.meta.url));
  return format(text, { ...config, parser: 'typescript' });
}

if (import.meta.url === `file://${process.argv[1]}`) {
  writeFileSync(GENERATED, await generateTypes());
}
