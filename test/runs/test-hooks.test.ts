// Test hooks of nodes count in test mode, and of definitions made for tests alone (conformance/fixtures.md).
import { expect, it } from 'vitest';
import { buildRunInput } from '../../src/runs/input.ts';
import { definition, node } from '../support/definitions.ts';

type Args = Parameters<typeof buildRunInput>;

function hooksOf(workflowId: string, testMode?: boolean): boolean | undefined {
  const deps = {
    catalog: { definition: (_: string, id: string) => definition(id, [node('n', 'core.noop')]) },
    models: { providers: () => [], choose: () => ({}) },
    redactor: { json: <T>(value: T) => value, text: (text: string) => text },
    config: { escalation: true, ...(testMode === undefined ? {} : { testMode }) },
  } as unknown as Args[0];
  const caller = { tenant: 'default', subject: {} } as unknown as Args[1];
  const request = { workflowId, inputs: {}, configurable: {} } as unknown as Args[2];
  return buildRunInput(deps, caller, request).testHooks;
}

it.each<[string, boolean | undefined, true | undefined]>([
  ['conformance-message-reducer', true, true],
  ['conformance-message-reducer', false, undefined],
  ['conformance-message-reducer', undefined, undefined],
  ['desk', true, undefined],
])('%s, test mode %s: %s', (workflowId, testMode, expected) => {
  expect(hooksOf(workflowId, testMode)).toBe(expected);
});
