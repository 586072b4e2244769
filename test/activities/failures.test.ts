// What the log has of a step that failed: one line, whatever was thrown.
import { expect, test } from 'vitest';
import { failure, guarded } from '../../activities/failures.ts';
import { HostError } from '../../src/rules/errors.ts';
import { createRedactor } from '../../src/rules/redaction.ts';
import { activityEnvironment } from './rig.ts';

async function logged(thrown: unknown) {
  const lines: Record<string, unknown>[] = [];
  const note = (_message: string, fields: Record<string, unknown> = {}) => void lines.push(fields);
  const ports = {
    logger: { debug: note, info: note, warn: note, error: note },
    redactor: createRedactor([{ id: 'KEY', value: 'a-secret-key' }]),
    watch: { isThere: () => true, doubt: () => undefined },
  };
  const body = (): Promise<never> => guarded(ports, () => Promise.reject(thrown as Error));
  const failed = await activityEnvironment(1)
    .run(body)
    .catch((error: unknown) => error);
  return { lines, type: (failed as { type?: unknown }).type };
}

test.each<[name: string, thrown: unknown, code: string, error: string]>([
  [
    'an error of ours',
    new HostError('model_unavailable'),
    'model_unavailable',
    'HostError: There is',
  ],
  [
    'a failure',
    failure('tool_failed', { message: 'No.' }),
    'tool_failed',
    'ApplicationFailure: No.',
  ],
  ['a bug', new TypeError('x is no function'), 'internal_error', 'TypeError: x is no function'],
  ['a text', 'a-secret-key', 'internal_error', '[REDACTED:KEY]'],
  ['nothing', undefined, 'internal_error', 'undefined'],
  [
    'an error whose members are none of texts',
    Object.assign(new Error('No.', { cause: { message: null } }), { stack: 7 }),
    'internal_error',
    '7',
  ],
])('%s', async (_name, thrown, code, error) => {
  const { lines, type } = await logged(thrown);
  expect(lines).toEqual([expect.objectContaining({ code, try: 1 })]);
  expect(lines[0]?.error).toContain(error);
  expect(type).toBe(code);
});

test('its cause is logged with it, redacted', async () => {
  const { lines } = await logged(
    new HostError('model_unavailable', {}, new Error('of a-secret-key')),
  );
  expect(lines).toMatchObject([{ cause: 'of [REDACTED:KEY]' }]);
});
