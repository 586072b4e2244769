// Test hooks of nodes count in test mode, and of definitions made for tests alone (conformance/fixtures.md).
import { describe, expect, it } from 'vitest';
import { createModels } from '../../src/adapters/models/index.ts';
import { codeOf } from '../../src/rules/errors.ts';
import type { JsonObject } from '../../src/rules/json.ts';
import { asksModel } from '../../src/rules/orchestrator.ts';
import { createRedactor } from '../../src/rules/redaction.ts';
import { agentsOf } from '../../src/runs/configurable.ts';
import { buildRunInput } from '../../src/runs/input.ts';
import type { WorkflowNode } from '../../schemas/types.generated.ts';
import { agentNode, definition, node } from '../support/definitions.ts';

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

describe('a model is asked for a node', () => {
  const planned = node('lead', 'core.orchestrator.supervisor', {
    agent: { agentId: 'a.b' },
    config: { mockDispatchPlan: [] },
  });
  const disabled = agentNode('rests', 'a.b', { disabled: true });
  const named = node('named', 'core.noop', { agent: { agentId: 'a.b' } });

  it.each<[string, WorkflowNode, string, true | undefined, boolean]>([
    ['that invokes its agent', agentNode('n', 'a.b'), 'desk', undefined, true],
    ['that is disabled', disabled, 'desk', undefined, false],
    ['that only names an agent', named, 'desk', undefined, false],
    ['with a plan, in test mode', planned, 'conformance-plan', true, false],
    [
      'with a plan that nothing follows, without test mode',
      planned,
      'conformance-plan',
      undefined,
      true,
    ],
    ['with a plan, of a definition that is no test', planned, 'desk', true, true],
  ])('%s: %#', (_what, one, id, testHooks, expected) => {
    const run = { definition: definition(id, [one]), ...(testHooks ? { testHooks } : {}) };
    expect(asksModel(one, run)).toBe(expected);
  });

  /** The code that a run is refused with, whose agent is not there and whose provider takes no temperature. */
  function refusal(one: WorkflowNode, has: object, configurable: JsonObject = {}) {
    const deps = {
      catalog: { definition: () => definition('conformance-plan', [one]), agent: () => undefined },
      models: createModels({ anthropic: { apiKey: 'k' } }),
      redactor: createRedactor([]),
      config: { escalation: true, ...has },
    } as unknown as Args[0];
    const caller = { tenant: 'default', subject: {} } as unknown as Args[1];
    const request = { workflowId: 'conformance-plan', inputs: {}, configurable };
    try {
      buildRunInput(deps, caller, request);
      return undefined;
    } catch (error) {
      return codeOf(error);
    }
  }

  it('an agent that is not there, or an option that is not taken, refuses no other run', () => {
    const warm = { temperature: 1 };
    expect(refusal(disabled, {})).toBeUndefined();
    expect(refusal(disabled, {}, warm)).toBeUndefined();
    expect(refusal(planned, { testMode: true }, warm)).toBeUndefined();
    expect(refusal(planned, {})).toBe('agent_not_found');
    expect(refusal(planned, {}, warm)).toBe('validation_error');
  });

  it('a credential is refused where a model is asked, and nowhere else', () => {
    const secret = { ai: { credentialRef: 'mine' } };
    expect(refusal(disabled, {}, secret)).toBeUndefined();
    expect(refusal(planned, { testMode: true }, secret)).toBeUndefined();
    expect(refusal(planned, {}, secret)).toBe('credential_forbidden');
  });

  it('a plan needs no model for the agent that it stands for', () => {
    const run = { definition: definition('conformance-plan', [planned]) };
    expect(agentsOf({ ...run, testHooks: true })).toEqual([]);
    expect(agentsOf(run)).toEqual(['a.b']);
  });
});
