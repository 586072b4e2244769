// Whom control may pass to (RFC 0002 §B): what an allowlist names, and who can be reached over several agents.
import { describe, expect, it } from 'vitest';
import {
  handoffNamed,
  handoffTargets,
  handoffsOf,
  successorsOf,
} from '../../src/rules/handoffs.ts';
import { pinned } from '../support/definitions.ts';

const of = (agentId: string, ...targets: string[]) =>
  pinned(agentId, { toolAllowlist: targets.map((target) => `handoff:${target}`) });

describe('handoffs by an allowlist', () => {
  it('an entry names an agent by its prefix, and nothing else does', () => {
    expect(['handoff:a.b', 'handoff:', 'agent:a.b', 'core:handoff:a'].map(handoffNamed)).toEqual([
      'a.b',
      '',
      undefined,
      undefined,
    ]);
  });

  it('each target once, in the order of the list, and never the agent itself', () => {
    expect(handoffsOf(of('a', 'b', 'c', 'b', 'a'))).toEqual(['b', 'c']);
  });

  it('those that are pinned in the run are offered; names that every object has are no agents', () => {
    const b = of('b');
    const agents = { a: of('a', 'b', 'gone', 'constructor', '__proto__'), b };
    expect(handoffTargets(agents.a, agents)).toEqual([
      { agentId: 'b', manifestHash: b.manifestHash },
    ]);
  });

  it('successors are found over several agents and rings, each once; who is not there leads nowhere', () => {
    const all = [of('a', 'b'), of('b', 'c', 'gone'), of('c', 'a', 'b')];
    const found = successorsOf([of('a', 'b')], (agentId) =>
      all.find((agent) => agent.agentId === agentId),
    );
    expect(found.map(({ agentId }) => agentId).sort()).toEqual(['a', 'b', 'c']);
  });
});
