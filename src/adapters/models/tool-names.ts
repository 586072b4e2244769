// Tool ids hold characters that providers refuse in function names (`demo:orders.get`): an injective mapping into
// [A-Za-z0-9_-]{1,64} and back.
import { sha256Hex } from '../../rules/ids.ts';

const NAME_LENGTH = 64;
/** Characters of the id kept in a name that had to be shortened; a hash of the whole follows. */
const KEPT_LENGTH = 40;

const ESCAPES: Readonly<Record<string, string>> = { _: '__', ':': '_c', '.': '_d', '/': '_s' };

/** `_` begins an escape, so two ids never give one name; ids whose name is too long end in a hash of the id. */
export function functionNameOf(toolId: string): string {
  const name = toolId.replace(
    /[^A-Za-z0-9-]/g,
    (character) =>
      ESCAPES[character] ?? `_x${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  if (name.length <= NAME_LENGTH) return name;
  return `${name.slice(0, KEPT_LENGTH)}_h${sha256Hex(toolId).slice(0, 20)}`;
}

/** The id behind a name that a model used; a name that was never offered comes back as it is, to be refused. */
export function toolIdOf(name: string, offered: readonly string[]): string {
  return offered.find((toolId) => functionNameOf(toolId) === name) ?? name;
}
