// A row as the first major shows it, parsed.
import type { LogRow } from '../../src/ports/log.ts';
import { ERA } from '../../src/rules/versions.ts';
import { FIRST_MAJOR } from '../../src/wire/first-major.ts';
import { rowsShown } from '../../src/wire/major.ts';
import type { RunEventDoc } from '../../schemas/types.generated.ts';

export function shownEvent(row: LogRow): RunEventDoc {
  const shown = rowsShown(FIRST_MAJOR, { tenant: 'default', input: { era: ERA } });
  return JSON.parse(shown.textOf(row)) as RunEventDoc;
}
