// What every AgentRegistry does (seed 004 §5; architecture §5): tools as last declared, instances under a lease, a
// bounded audit in the order of its commits, tokens that are good once.
import { describe, expect, it } from 'vitest';
import { MAX_AUDIT_ROWS } from '../../src/adapters/postgres/agent-registry.ts';
import type { AgentAuditEntry, AgentInstance, AgentTool } from '../../src/ports/agents.ts';
import type { GivenStores } from './given.ts';
import { newId } from './given.ts';

/** Longer than the tests take. */
const TOKEN_MS = 3_600_000;
const LEASE_MS = 60_000;
const YEAR_MS = 365 * 24 * 3_600_000;
/** A lease that is over when it is given. */
const NO_LEASE_MS = 0;

export function agentTool(agentId: string, name: string, over: Partial<AgentTool> = {}): AgentTool {
  return {
    toolId: `${agentId}/${name}`,
    agentId,
    name,
    description: 'Says what it was told.',
    inputSchema: { type: 'object', properties: { text: { type: 'string' } } },
    capabilities: ['streaming'],
    sideEffects: false,
    requiresDirective: false,
    tags: [],
    approval: 'none',
    timeoutMs: 60_000,
    waitMs: 30_000,
    maxInputBytes: 1_024,
    maxOutputBytes: 1_024,
    ...over,
  };
}

export function agentInstance(over: Partial<AgentInstance> = {}): AgentInstance {
  return {
    tenant: 'default',
    agentId: 'example.echo',
    instanceId: 'core-1',
    coreHost: 'host-1',
    socket: '/tmp/core-1.sock',
    name: 'Echo',
    version: '1.0.0',
    launch: 'process',
    status: 'connected',
    restarts: 0,
    metrics: [],
    ...over,
  };
}

export function agentRegistryContract(stores: GivenStores): void {
  const registry = (): ReturnType<GivenStores>['agents'] => stores().agents;

  describe('AgentRegistry', () => {
    toolCases(registry);
    instanceCases(registry);
    auditCases(registry);
    tokenCases(registry);
    expiryCases(registry);
    deadCoreCase(registry);
  });
}

type GivenRegistry = () => ReturnType<GivenStores>['agents'];

function toolCases(registry: GivenRegistry): void {
  it('seed 004 §4.2 tools are kept as declared, and a later set takes the place of the former', async () => {
    const [tenant, agentId] = [newId('tenant'), newId('agent')];
    const echo = agentTool(agentId, 'echo', {
      description: 'ü"\\\u0000\ud800',
      outputSchema: { type: 'object', z: 1, a: [null] },
      capabilities: ["' OR '1'='1"],
    });
    await registry().saveTools(tenant, agentId, [agentTool(agentId, 'old'), echo]);
    expect(await registry().tools(tenant)).toEqual([echo, agentTool(agentId, 'old')]);
    await registry().saveTools(tenant, agentId, [agentTool(agentId, 'new')]);
    expect(await registry().tools(tenant)).toEqual([agentTool(agentId, 'new')]);
    await registry().saveTools(tenant, agentId, []);
    expect(await registry().tools(tenant)).toEqual([]);
  });

  it('seed 004 §4.2 tools are found by id, and only those', async () => {
    const [tenant, one, two] = [newId('tenant'), newId('a'), newId('b')];
    await registry().saveTools(tenant, two, [agentTool(two, 'x')]);
    await registry().saveTools(tenant, one, [agentTool(one, 'x'), agentTool(one, 'y')]);
    expect(await registry().tools(tenant, [`${two}/x`, `${one}/y`, `${one}/none`])).toEqual([
      agentTool(one, 'y'),
      agentTool(two, 'x'),
    ]);
    expect(await registry().tools(tenant, [])).toEqual([]);
    expect((await registry().tools(tenant)).map(({ toolId }) => toolId)).toEqual([
      `${one}/x`,
      `${one}/y`,
      `${two}/x`,
    ]);
  });

  it('seed 004 §4.2 of sets that are saved at once one holds, whole', async () => {
    const [tenant, agentId] = [newId('tenant'), newId('agent')];
    const sets = ['a', 'b', 'c', 'd'].map((name) => [
      agentTool(agentId, `${name}-1`),
      agentTool(agentId, `${name}-2`),
    ]);
    await Promise.all(sets.map((set) => registry().saveTools(tenant, agentId, set)));
    expect(sets).toContainEqual(await registry().tools(tenant));
  });

  // [I119]
  it('a declaration that was lost is put back, one that was replaced is not', async () => {
    const [tenant, agentId] = [newId('tenant'), newId('agent')];
    const [first, second] = [[agentTool(agentId, 'old')], [agentTool(agentId, 'new')]];
    const stored = () => registry().tools(tenant);
    const before = await registry().saveTools(tenant, agentId, first);
    const version = await registry().saveTools(tenant, agentId, second);
    expect(version).toBeGreaterThan(before);
    await registry().keepTools(tenant, agentId, { tools: first, version: before });
    expect(await stored()).toEqual(second);
    // As a Core whose later word the database has lost.
    await registry().keepTools(tenant, agentId, { tools: first, version: version + 5 });
    expect(await stored()).toEqual(first);
    await registry().keepTools(tenant, agentId, { tools: second, version });
    expect(await stored()).toEqual(first);
    expect(await registry().saveTools(tenant, agentId, second)).toBeGreaterThan(version + 5);
    const other = newId('agent');
    await registry().keepTools(tenant, other, { tools: [agentTool(other, 'x')], version: 1 });
    expect(await stored()).toHaveLength(2);
  });

  it("architecture §10 a tenant's tools are its own", async () => {
    const [one, two, agentId] = [newId('tenant'), newId('tenant'), newId('agent')];
    await registry().saveTools(one, agentId, [agentTool(agentId, 'x', { description: 'one' })]);
    await registry().saveTools(two, agentId, [agentTool(agentId, 'x', { description: 'two' })]);
    await registry().saveTools(two, agentId, []);
    expect(await registry().tools(one, [`${agentId}/x`])).toHaveLength(1);
    expect(await registry().tools(two, [`${agentId}/x`])).toEqual([]);
  });
}

function instanceCases(registry: GivenRegistry): void {
  it('architecture §5 instances are those of living Cores, sorted by agent and instance', async () => {
    const tenant = newId('tenant');
    const given = [
      agentInstance({ tenant, agentId: 'b.agent', instanceId: 'core-2' }),
      agentInstance({ tenant, agentId: 'b.agent', instanceId: 'core-1' }),
      agentInstance({ tenant, agentId: 'B.agent', instanceId: 'core-2' }),
    ];
    for (const one of given) await registry().saveInstance(one, LEASE_MS);
    await registry().saveInstance(
      agentInstance({ tenant, agentId: 'a.dead', instanceId: 'core-3' }),
      NO_LEASE_MS,
    );
    expect(await registry().instances(tenant)).toEqual([given[2], given[1], given[0]]);
    expect(await registry().instances(tenant, 'b.agent')).toEqual([given[1], given[0]]);
    expect(await registry().instances(tenant, 'a.dead')).toEqual([]);
    expect(await registry().instances(newId('tenant'))).toEqual([]);
  });

  it('architecture §5 saving again renews the lease and replaces the view', async () => {
    const tenant = newId('tenant');
    await registry().saveInstance(agentInstance({ tenant }), NO_LEASE_MS);
    const later = agentInstance({ tenant, status: 'crash-loop', restarts: 5 });
    await registry().saveInstance(later, LEASE_MS);
    expect(await registry().instances(tenant)).toEqual([later]);
  });

  it('architecture §5 a Core that stops takes its instances with it, and no others', async () => {
    const [tenant, gone] = [newId('tenant'), newId('core')];
    const stays = agentInstance({ tenant, instanceId: newId('core') });
    await registry().saveInstance(agentInstance({ tenant, instanceId: gone }), LEASE_MS);
    await registry().saveInstance(
      agentInstance({ tenant, instanceId: gone, agentId: 'another.agent' }),
      LEASE_MS,
    );
    await registry().saveInstance(stays, LEASE_MS);
    await registry().removeInstances(gone);
    expect(await registry().instances(tenant)).toEqual([stays]);
  });
}

function deadCoreCase(registry: GivenRegistry): void {
  it('architecture §5 the rows of Cores that died long ago go with the next save of another', async () => {
    const tenant = newId('tenant');
    const hourMs = 3_600_000;
    const dead = agentInstance({ tenant, instanceId: newId('core') });
    const own = agentInstance({ tenant, instanceId: newId('core') });
    await registry().saveInstance(dead, -2 * hourMs);
    await registry().saveInstance(own, -2 * hourMs);
    await registry().saveInstance(own, LEASE_MS);
    // Nothing is left for the expiry; the one that came back is there.
    expect(await registry().expire(hourMs)).toBe(0);
    expect(await registry().instances(tenant)).toEqual([own]);
  });
}

function noted(tenant: string, n: number, over: Partial<AgentAuditEntry> = {}): AgentAuditEntry {
  return {
    atMs: Date.now(),
    tenant,
    instanceId: 'core-1',
    agentId: 'example.echo',
    kind: 'session.opened',
    details: { n },
    ...over,
  };
}

function auditCases(registry: GivenRegistry): void {
  const seen = async (
    tenant: string,
    query: { agentId?: string; before?: number; limit: number },
  ): Promise<unknown[]> =>
    (await registry().audit(tenant, query)).map((entry) => entry.details['n']);

  it('seed 004 §5 audit is newest first, in the order it was given, and pages without a gap', async () => {
    const tenant = newId('tenant');
    await registry().appendAudit([
      noted(tenant, 1),
      noted(tenant, 2, { atMs: Date.now() - 60_000 }),
    ]);
    await registry().appendAudit([]);
    await registry().appendAudit([3, 4, 5].map((n) => noted(tenant, n)));
    const paged: unknown[] = [];
    for (let before: number | undefined; ;) {
      const page = await registry().audit(tenant, { before, limit: 2 });
      paged.push(...page.map(({ details }) => details['n']));
      before = page.at(-1)?.position;
      if (before === undefined) break;
    }
    expect(paged).toEqual([5, 4, 3, 2, 1]);
  });

  it('seed 004 §5 an entry is read as it was written; of an agent, and of none', async () => {
    const tenant = newId('tenant');
    const nobody: AgentAuditEntry = {
      atMs: Date.now(),
      tenant,
      instanceId: 'core-1',
      kind: 'hello.refused',
      details: { z: 'ü\u0000\ud800', a: [null, 1.5] },
    };
    const known = noted(tenant, 1, { sessionId: 'session-1' });
    const other = noted(tenant, 2, { agentId: 'another.agent' });
    await registry().appendAudit([nobody, known, other]);
    const all = await registry().audit(tenant, { limit: 10 });
    expect(all.map(({ position: _, ...entry }) => entry)).toEqual([other, known, nobody]);
    expect(await seen(tenant, { agentId: 'example.echo', limit: 10 })).toEqual([1]);
    expect(await seen(tenant, { agentId: 'no.such', limit: 10 })).toEqual([]);
  });

  it('seed 004 §5 entries of several tenants in one call stay apart', async () => {
    const [one, two] = [newId('tenant'), newId('tenant')];
    await registry().appendAudit([noted(one, 1), noted(two, 2), noted(one, 3)]);
    expect(await seen(one, { limit: 10 })).toEqual([3, 1]);
    expect(await seen(two, { limit: 10 })).toEqual([2]);
  });

  it('seed 004 §5 appended at once, every entry has a position of its own and none is lost', async () => {
    const tenant = newId('tenant');
    await Promise.all(
      [0, 1, 2, 3, 4, 5, 6, 7].map((n) =>
        registry().appendAudit([noted(tenant, 2 * n), noted(tenant, 2 * n + 1)]),
      ),
    );
    const all = await registry().audit(tenant, { limit: 100 });
    expect(new Set(all.map(({ position }) => position)).size).toBe(16);
    expect(new Set(all.map(({ details }) => details['n'])).size).toBe(16);
  });

  it(`seed 004 §5 a tenant keeps its last ${MAX_AUDIT_ROWS} entries`, async () => {
    const [tenant, other] = [newId('tenant'), newId('tenant')];
    await registry().appendAudit([noted(other, 1)]);
    const extra = 1_500;
    const total = MAX_AUDIT_ROWS + extra;
    const entries = Array.from({ length: total }, (_, n) => noted(tenant, n));
    await registry().appendAudit(entries);
    const [newest] = await registry().audit(tenant, { limit: 1 });
    expect(newest?.details).toEqual({ n: total - 1 });
    const oldest = (newest?.position ?? 0) - MAX_AUDIT_ROWS + 1;
    expect(await seen(tenant, { before: oldest + 2, limit: 10 })).toEqual([extra + 1, extra]);
    expect(await seen(other, { limit: 10 })).toEqual([1]);
  });
}

function tokenCases(registry: GivenRegistry): void {
  it('seed 004 §5.3 a token is good once: of many that bring it at once, one gets in', async () => {
    const token = { tenant: 'default', agentId: 'example.echo', tokenHash: newId('hash') };
    await registry().mintToken(token, TOKEN_MS);
    const won = await Promise.all(Array.from({ length: 8 }, () => registry().consumeToken(token)));
    expect(won.filter(Boolean)).toHaveLength(1);
    expect(await registry().consumeToken(token)).toBe(false);
  });

  it('seed 004 §5.3 a token is for its tenant and agent, and not spent by another', async () => {
    const token = { tenant: newId('tenant'), agentId: 'example.echo', tokenHash: newId('hash') };
    await registry().mintToken(token, TOKEN_MS);
    for (const wrong of [
      { ...token, agentId: 'another.agent' },
      { ...token, tenant: 'default' },
      { ...token, tokenHash: "' OR '1'='1" },
    ])
      expect(await registry().consumeToken(wrong)).toBe(false);
    expect(await registry().consumeToken(token)).toBe(true);
  });

  it('seed 004 §5.3 a token is not good after its time', async () => {
    const token = { tenant: 'default', agentId: 'example.echo', tokenHash: newId('hash') };
    await registry().mintToken(token, 0);
    expect(await registry().consumeToken(token)).toBe(false);
  });
}

function expiryCases(registry: GivenRegistry): void {
  it('architecture §7 audit, unused tokens and instances go when they are older than their retention', async () => {
    const tenant = newId('tenant');
    const now = Date.now();
    const token = { tenant, agentId: 'example.echo', tokenHash: newId('hash') };
    await registry().appendAudit([noted(tenant, 1, { atMs: 1_000 }), noted(tenant, 2)]);
    await registry().mintToken(token, 1_000 - now);
    await registry().saveInstance(agentInstance({ tenant, instanceId: newId('core') }), LEASE_MS);
    await registry().saveInstance(agentInstance({ tenant, instanceId: newId('core') }), -now);
    await registry().saveTools(tenant, 'example.echo', [agentTool('example.echo', 'x')]);
    expect(await registry().expire(YEAR_MS)).toBe(3);
    expect(await registry().expire(YEAR_MS)).toBe(0);
    const left = await registry().audit(tenant, { limit: 10 });
    expect(left.map(({ details }) => details)).toEqual([{ n: 2 }]);
    expect(await registry().instances(tenant)).toHaveLength(1);
    expect(await registry().tools(tenant)).toHaveLength(1);
  });
}
