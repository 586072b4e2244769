// checkValue: whether a value fits a schema of the definition (channels-and-reducers.md §Channel declaration). Workflow
// code compiles no schemas.
import type { StepResult } from '../src/rules/journal.ts';
import { boundText } from '../src/rules/tokens.ts';
import { checkAgainst } from '../src/wire/user-schema.ts';
import type { CheckValueInput, CheckValueOutput } from './contract.ts';

/** Faults that are told: the rest says the same of other places. */
const MAX_ERRORS = 8;
/** Longest words about one, in bytes: they repeat what a schema lists. */
const MESSAGE_BYTES = 512;

export async function checkValue({
  value,
  schema,
}: CheckValueInput): Promise<StepResult<CheckValueOutput>> {
  const checked = checkAgainst(schema, value);
  if (checked.ok) return { output: { ok: true }, events: [] };
  const errors = checked.errors
    .slice(0, MAX_ERRORS)
    .map(({ pointer, message }) => ({ pointer, message: boundText(message, MESSAGE_BYTES) }));
  const [first] = errors;
  const message = `${first?.pointer || 'the value'} ${first?.message ?? 'is not valid'}`;
  return { output: { ok: false, message, errors }, events: [] };
}
