// Agents that control may pass to are pinned when a run starts, as its own are (RFC 0002 §B; architecture §2.6).
import { describe, expect, it } from 'vitest';
import { HostError } from '../../src/rules/errors.ts';
import { MAX_HANDOFF_AGENTS } from '../../src/rules/handoffs.ts';
import type { PinnedAgent } from '../../src/rules/run-input.ts';
import { buildRunInput } from '../../src/runs/input.ts';
import { agentNode, definition, pinned } from '../support/definitions.ts';

type Args = Parameters<typeof buildRunInput>;

function started(agents: readonly PinnedAgent[], without: readonly string[] = []) {
  const deps = {
    catalog: {
      definition: () => definition('desk', [agentNode('n', 'a')]),
      agent: (_: string, id: string) => {
        const found = agents.find(({ agentId }) => agentId === id);
        return found && { pinned: found };
      },
    },
    models: {
      providers: () => [],
      untaken: () => ({ provider: 'p', options: [] }),
      choose: ({ agentId }: PinnedAgent) => {
        if (without.includes(agentId)) throw new HostError('model_unavailable', { agentId });
        return { provider: 'p', model: 'm' };
      },
    },
    redactor: { json: <T>(value: T) => value, text: (text: string) => text },
    config: { escalation: true },
  } as unknown as Args[0];
  const caller = { tenant: 'default', subject: {} } as unknown as Args[1];
  const request = { workflowId: 'desk', inputs: {}, configurable: {} } as unknown as Args[2];
  return buildRunInput(deps, caller, request).agents;
}

const of = (agentId: string, ...targets: string[]) =>
  pinned(agentId, { toolAllowlist: targets.map((target) => `handoff:${target}`) });

describe('a run that may be handed over', () => {
  it('pins whom control may pass to, over several agents and rings; one that is not loaded is nobody', () => {
    const agents = started([of('a', 'b', 'gone'), of('b', 'c'), of('c', 'a'), of('d')]);
    expect(Object.keys(agents).sort()).toEqual(['a', 'b', 'c']);
  });

  it('is refused where one of them has no model, before anything happens', () => {
    const agents = [of('a', 'b'), of('b', 'c'), of('c')];
    expect(() => started(agents, ['c'])).toThrow(
      expect.objectContaining({ code: 'model_unavailable' }) as Error,
    );
  });

  it('is refused where they are more than MAX_HANDOFF_AGENTS', () => {
    const ring = (count: number) =>
      Array.from({ length: count + 1 }, (_, n) => of(n === 0 ? 'a' : `a${n}`, `a${n + 1}`));
    expect(Object.keys(started(ring(MAX_HANDOFF_AGENTS)))).toHaveLength(MAX_HANDOFF_AGENTS + 1);
    expect(() => started(ring(MAX_HANDOFF_AGENTS + 1))).toThrow(
      expect.objectContaining({ code: 'validation_error' }) as Error,
    );
  });
});
