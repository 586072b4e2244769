// Options of a run beside the API's own check of a request (run-options.md): of a fork, of a cohort's change, of a child.
import { describe, expect, it } from 'vitest';
import { createModels, type ModelsConfig } from '../../src/adapters/models/index.ts';
import type { JsonObject, JsonValue } from '../../src/rules/json.ts';
import { createRedactor } from '../../src/rules/redaction.ts';
import { subjectOf } from '../../src/rules/subject.ts';
import { readConfigurable } from '../../src/runs/configurable.ts';
import { buildRunInput } from '../../src/runs/input.ts';
import { readOverlay } from '../../src/runs/overlay.ts';
import { agentNode, definition, node, pinned } from '../support/definitions.ts';
import { runRow } from '../support/log-parts.ts';

const caller = {
  ...{ tenant: 'default', subject: subjectOf('api-key', 'default', 'tester') },
  scopes: [],
};
const key = { apiKey: 'k' };
const DESK = definition('desk', [agentNode('n', 'a.b')]);
const NOOP = definition('noop', [node('n', 'core.noop')]);

describe('an option that no model of the provider takes', () => {
  /** Of a source that had a temperature, or of one without. */
  function overlaid(
    has: ModelsConfig,
    configurable: JsonObject,
    of: { at?: number; had?: JsonObject } = {},
  ) {
    const { at = 0, had = {} } = of;
    const source = runRow('run-a');
    const input = { ...source.input, definition: DESK, agents: {}, configurable: had };
    const row = { type: 'node.started', key: 'node.started|n', payload: '{}' };
    return readOverlay(
      { models: createModels(has), redactor: createRedactor([]) } as never,
      {
        ...{ caller, source, input, length: 9, asked: { configurable }, at: undefined },
        before: Array.from({ length: at }, () => row),
      } as never,
    ).then((read) => read?.configurable);
  }
  const refused = {
    code: 'validation_error',
    details: expect.objectContaining({
      field: '/configurable/temperature',
      provider: 'anthropic',
    }) as unknown,
  };

  it('is refused of a fork and of a cohort’s change', async () => {
    const asked = { temperature: 1 };
    await expect(overlaid({ anthropic: key }, asked)).rejects.toMatchObject(refused);
    await expect(overlaid({ anthropic: key }, asked, { at: 3 })).rejects.toMatchObject(refused);
    const both = { openai: key, anthropic: key };
    expect(await overlaid(both, asked)).toEqual(asked);
    const had = { ai: { provider: 'anthropic' } };
    await expect(overlaid(both, asked, { had })).rejects.toMatchObject(refused);
  });

  it('is not, where a branch may go on with a model of a provider that takes it', async () => {
    const both = { provider: 'anthropic', openai: key, anthropic: key } as const;
    const asked = { temperature: 1 };
    await expect(overlaid(both, asked)).rejects.toMatchObject(refused);
    expect(await overlaid(both, asked, { at: 3 })).toEqual(asked);
    await expect(
      overlaid(both, { ...asked, 'ai.provider': 'anthropic' }, { at: 3 }),
    ).rejects.toMatchObject(refused);
  });

  it('is no matter where the source had it: who asks for another provider cannot take it away', async () => {
    const both = { openai: key, anthropic: key };
    const asked = { ai: { provider: 'anthropic' } };
    const had = { temperature: 1 };
    expect(await overlaid(both, asked, { had })).toEqual({ ...had, ...asked });
  });

  it('is no matter of a child, which has its parent’s', () => {
    const deps = {
      catalog: { definition: () => DESK, agent: () => ({ pinned: pinned('a.b') }) },
      models: createModels({ anthropic: key }),
      redactor: createRedactor([]),
      config: { escalation: true },
    } as unknown as Parameters<typeof buildRunInput>[0];
    const asked = { workflowId: 'desk', inputs: {}, configurable: { temperature: 1 } };
    const birth = { runId: 'run-c', header: { sessionId: 's', correlationId: 'c' } };
    expect(() => buildRunInput(deps, caller, asked)).toThrow(expect.objectContaining(refused));
    expect(buildRunInput(deps, caller, { ...asked, birth }).configurable).toEqual({
      temperature: 1,
    });
  });
});

describe('types and ranges, in words', () => {
  it.each<[string, JsonValue, string]>([
    ['recursionLimit', 2.5, 'must be a whole number'],
    ['runTimeoutMs', 2.5, 'must be a whole number'],
    ['maxTokens', '5', 'must be a whole number'],
    ['maxTokens', 0, 'must be from 1 to 1000000'],
    ['temperature', 'hot', 'must be a number'],
    ['temperature', 2.5, 'must be from 0 to 2'],
    ['reasoningVerbosity', 'loud', 'must be one of summary, full, off'],
    ['model', '', 'must be a text of 1 to 256 characters'],
    ['ai.model', '', 'must be a text of 1 to 256 characters'],
    ['ai.model', 4, 'must be a text of 1 to 256 characters'],
  ])('%s: %j %s', (name, value, reason) => {
    const asked = { [name]: value };
    const read = () => readConfigurable(asked, { definition: NOOP }, createModels({ openai: key }));
    const details = { field: `/configurable/${name}`, key: name, reason };
    expect(read).toThrow(expect.objectContaining({ code: 'validation_error' }));
    expect(read).toThrow(
      expect.objectContaining({ details: expect.objectContaining(details) as unknown }),
    );
  });
});
