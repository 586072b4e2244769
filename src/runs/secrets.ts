// Secrets in what callers send: never stored (I37). What a person says, and what a fork or a cohort changes, is refused, since
// the run would go on with what nobody said; a run that is started with one has a mask in its place, and its caller is warned.
import { invalid } from '../rules/errors.ts';
import type { JsonValue } from '../rules/json.ts';
import { maskedAt, maskedIn } from '../rules/redaction.ts';
import type { RunInput } from '../rules/run-input.ts';
import type { RunCreateWarning } from '../../schemas/types.generated.ts';
import { normalized } from './configurable.ts';
import type { RunsDeps } from './deps.ts';
import type { RunRequest } from './request.ts';

type SecretsDeps = Pick<RunsDeps, 'redactor'>;

/** What is sent: the JSON pointer of its field, and what its sender calls it. */
export interface SentField {
  readonly field: string;
  readonly name: string;
}

/** The same value. Throws validation_error at the first text that redaction would change. */
export function kept(
  { redactor }: SecretsDeps,
  value: JsonValue,
  { field, name }: SentField,
): JsonValue {
  const at = maskedAt(redactor, value);
  if (at === undefined) return value;
  throw invalid(
    `${field}${at}`,
    `${name} looks like it holds a secret (${at === '' ? 'as a whole' : `at ${at}`}). Secrets are never stored, so it was not taken.`,
  );
}

/** Characters of a pointer that are shown. */
const KEY_LENGTH = 120;

/**
 * One for each field of the request in which the run has a mask, with the pointer of its first one; values are never
 * repeated. `input`: what the run was accepted with.
 */
export function maskedWarnings(
  { redactor }: SecretsDeps,
  request: RunRequest,
  input: RunInput,
): RunCreateWarning[] {
  const { tags, metadata, sessionTitle } = request;
  const declared = new Set(input.definition.variables.map(({ name }) => name));
  // Others are dropped, and have no mask.
  const inputs = Object.entries(request.inputs).filter(([name]) => declared.has(name));
  const fields: readonly [string, JsonValue | undefined, JsonValue | undefined][] = [
    ['inputs', Object.fromEntries(inputs), input.variables],
    ['configurable', normalized(request.configurable), input.configurable],
    ['tags', tags && [...tags], input.tags && [...input.tags]],
    ['metadata', metadata, input.metadata],
    // It is its session's, and not in the run.
    ['sessionTitle', sessionTitle, sessionTitle && redactor.json(sessionTitle)],
  ];
  return fields.flatMap(([field, sent, redacted]) => {
    const at = sent === undefined ? undefined : maskedIn(sent, redacted ?? null);
    if (at === undefined) return [];
    const key = shownKey(`${field}${at}`);
    return {
      ...{ code: 'value_masked' as const, key },
      message: `${key} looks like it holds a secret. Secrets are never stored: the run has a mask in its place.`,
    };
  });
}

function shownKey(pointer: string): string {
  return pointer.length > KEY_LENGTH ? `${pointer.slice(0, KEY_LENGTH)}…` : pointer;
}
