// Secrets in what callers send: never stored (I37). What a person says, and what a fork or a cohort changes, is refused, since
// the run would go on with what nobody said; a run that is started with one has a mask in its place, and its caller is warned.
import { invalid } from '../rules/errors.ts';
import type { JsonValue } from '../rules/json.ts';
import { maskedAt } from '../rules/redaction.ts';
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

const FIELDS = ['inputs', 'configurable', 'tags', 'metadata', 'sessionTitle'] as const;
/** Characters of a pointer that are shown. */
const KEY_LENGTH = 120;

/** One for each field of the request that holds a secret, with the pointer of its first one; values are never repeated. */
export function maskedWarnings({ redactor }: SecretsDeps, request: RunRequest): RunCreateWarning[] {
  const configurable = normalized(request.configurable);
  const sent: Partial<Record<string, unknown>> = { ...request, configurable };
  return FIELDS.flatMap((field) => {
    const value = sent[field] as JsonValue | undefined;
    const at = value === undefined ? undefined : maskedAt(redactor, value);
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
