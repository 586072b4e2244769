// What a fork takes of its source, beyond the scope of its route (auth.md): that is read, and a human's answer in it is one.
import { describe, expect, it, vi } from 'vitest';
import { HostError } from '../../src/rules/errors.ts';
import { createRedactor } from '../../src/rules/redaction.ts';
import { subjectOf } from '../../src/rules/subject.ts';
import { forkRun } from '../../src/runs/fork.ts';
import { readOverlay } from '../../src/runs/overlay.ts';
import type { PinnedAgent } from '../../src/rules/run-input.ts';
import type { RunForkOverlay } from '../../schemas/types.generated.ts';
import { runRow } from '../support/log-parts.ts';

const who = (...scopes: string[]) => ({
  ...{ tenant: 'default', subject: subjectOf('api-key', 'default', 'tester') },
  scopes,
});
const source = runRow('run-a');

describe('a fork', () => {
  it('is made by who may read its source: nothing of it is looked at before', async () => {
    const request = { source, asked: { mode: 'replay' as const }, once: undefined as never };
    await expect(forkRun({} as never, who('runs:create'), request)).rejects.toMatchObject({
      ...{ code: 'forbidden', details: { scopeRequired: 'runs:read' } },
    });
  });

  it('[I98] waits for the log of its source while that is made again', async () => {
    const fresh = () => Promise.reject(new HostError('run_not_found'));
    const request = { source, asked: { mode: 'replay' as const }, once: undefined as never };
    await expect(
      forkRun({ log: { fresh } } as never, who('runs:read'), request),
    ).rejects.toMatchObject({ code: 'service_unavailable' });
  });

  it("has another answer of a human by who may answer, as the question's own address asks", async () => {
    const at = {
      ...{ sequence: 0, eventId: 'evt-1', key: 'interrupt.resolved|n', type: 'interrupt.resolved' },
      ...{ nodeId: 'n', timestampMs: 1, payload: '{"interruptId":"int-1","kind":"approval"}' },
    };
    const answered = (...scopes: string[]) =>
      readOverlay(
        { redactor: createRedactor([]) } as never,
        {
          ...{ caller: who(...scopes), source, input: source.input, length: 1 },
          ...{ asked: { answer: { seq: 0, value: { action: 'accept' } } }, before: [], at },
        } as never,
      );
    await expect(answered('runs:create', 'runs:read')).rejects.toMatchObject({
      ...{ code: 'forbidden', details: { scopeRequired: 'approvals:respond' } },
    });
    await expect(answered('approvals:respond')).rejects.toMatchObject({
      code: 'validation_error',
    });
  });

  it('stores no prompt of a change that is refused for another of its parts', async () => {
    const agentOf = (agentId: string) => ({ agentId, manifestHash: 'sha256:0' }) as PinnedAgent;
    const put = vi.fn();
    const content = { get: async () => new TextEncoder().encode('{"packVersion":"1.0.0"}'), put };
    const asked = {
      agents: { 'a.b': { systemPrompt: 'Be strict.' }, 'a.c': { packVersion: '9.0.0' } },
    };
    const read = readOverlay(
      {
        redactor: createRedactor([]),
        stores: { content },
        catalog: { agent: () => undefined },
      } as never,
      {
        ...{ caller: who('runs:create'), source, length: 1, asked, before: [], at: undefined },
        input: { ...source.input, agents: { 'a.b': agentOf('a.b'), 'a.c': agentOf('a.c') } },
      },
    );
    await expect(read).rejects.toMatchObject({ code: 'agent_not_found' });
    expect(put).not.toHaveBeenCalled();
  });

  const secret = `sk-${'a'.repeat(20)}`;
  it.each<[string, RunForkOverlay]>([
    ['answer/value/reason', { answer: { seq: 0, value: { action: 'reject', reason: secret } } }],
    ['inputs/order/by', { inputs: { order: { by: secret } } }],
    ['configurable/note', { configurable: { note: secret } }],
    ['agents/a.b/systemPrompt', { agents: { 'a.b': { systemPrompt: `Say ${secret}.` } } }],
  ])('[I116] changes nothing to what would be stored otherwise: %s', async (place, asked) => {
    const pinned = { agentId: 'a.b', modelClass: 'general' } as PinnedAgent;
    const given = {
      ...{ caller: who('approvals:respond'), source, length: 1, asked, before: [], at: undefined },
      input: { ...source.input, agents: { 'a.b': pinned } },
    };
    const read = readOverlay({ redactor: createRedactor([]) } as never, given);
    await expect(read).rejects.toMatchObject({
      code: 'validation_error',
      details: {
        field: `/runOptionsOverlay/${place}`,
        reason: expect.stringContaining('The change looks like it holds a secret') as unknown,
      },
    });
  });
});
