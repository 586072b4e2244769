// What Core tells a registry that is slow, away or back again (architecture §5).
import { afterEach, describe, expect, it } from 'vitest';
import { MAX_WAITING_AUDIT, RegistryWriter } from '../../src/opensentience/registry-writer.ts';
import { agentToolOf } from '../../src/opensentience/manifest.ts';
import type { AgentInstance } from '../../src/ports/agents.ts';
import { createMemoryRegistry } from '../support/opensentience/memory-registry.ts';
import { quietLogger } from '../support/quiet-logger.ts';

const ID = 'com.example.a';
let stop: () => Promise<void> = async () => undefined;
afterEach(() => stop());

function given(renewMs = 60_000) {
  const registry = createMemoryRegistry();
  const warnings: string[] = [];
  let version = 0;
  const writer = new RegistryWriter({
    registry,
    tenant: 'default',
    instanceId: 'core-1',
    agentIds: [ID],
    row: (agentId): AgentInstance => ({
      tenant: 'default',
      agentId,
      instanceId: 'core-1',
      coreHost: '',
      socket: '',
      name: '',
      version: String(++version),
      launch: 'attach',
      status: 'waiting',
      restarts: 0,
      metrics: [],
    }),
    limits: { leaseMs: 60_000, renewMs },
    logger: { ...quietLogger, warn: (line) => void warnings.push(line) },
  });
  stop = () => writer.stop();
  return { writer, registry, warnings };
}

const tool = (name: string) =>
  agentToolOf(
    { id: ID, version: '1' },
    { tool_id: `${ID}/${name}`, name, description: '', input_schema: {} },
  );

describe('the registry of agents', () => {
  it('gets changes that come together once', async () => {
    const { writer, registry } = given();
    for (let n = 0; n < 100; n++) writer.touch(ID, 50);
    await expect.poll(() => registry.saved).toHaveLength(1);
    writer.touch(ID, 0);
    await expect.poll(() => registry.saved).toHaveLength(2);
  });
  it('gets the newest tools only, also when it was away', async () => {
    const { writer, registry, warnings } = given();
    registry.away = true;
    writer.saveTools(ID, [tool('old')]);
    await expect.poll(() => warnings).toHaveLength(1);
    writer.saveTools(ID, [tool('new')]);
    writer.note({ agentId: ID, kind: 'session.opened', details: {} });
    registry.away = false;
    await expect
      .poll(async () => (await registry.tools('default')).map(({ name }) => name))
      .toEqual(['new']);
    await expect.poll(() => registry.entries.map(({ kind }) => kind)).toEqual(['session.opened']);
  });
  // [I119]
  it('puts back the tools that the database has lost, and none that another Core has declared since', async () => {
    const { writer, registry } = given(20);
    const names = async () => (await registry.tools('default')).map(({ name }) => name);
    writer.start();
    writer.saveTools(ID, [tool('mine')]);
    await expect.poll(names).toEqual(['mine']);
    registry.lose(ID);
    expect(await names()).toEqual([]);
    await expect.poll(names).toEqual(['mine']);
    await registry.saveTools('default', ID, [tool('newer')]);
    const before = registry.saved.length;
    await expect.poll(() => registry.saved.length).toBeGreaterThan(before + 3);
    expect(await names()).toEqual(['newer']);
  });
  // [I97]
  it('an agent whose tools are not taken keeps no lease, no tools of others and no audit waiting', async () => {
    const { writer, registry, warnings } = given();
    const saved: string[] = [];
    registry.saveTools = async (_tenant, agentId) => {
      if (agentId === 'com.example.bad') throw new Error('refused');
      saved.push(agentId);
      return 1;
    };
    writer.saveTools('com.example.bad', [tool('one')]);
    writer.saveTools(ID, [tool('two')]);
    writer.touch(ID, 0);
    writer.note({ agentId: ID, kind: 'session.opened', details: {} });
    await expect.poll(() => registry.entries).toHaveLength(1);
    expect([saved, registry.saved.length, warnings.length]).toEqual([[ID], 1, 1]);
  });
  it('audit that waits is bounded; what is dropped is counted in it', async () => {
    const { writer, registry } = given();
    for (let n = 0; n < MAX_WAITING_AUDIT + 7; n++)
      writer.note({ kind: 'frame.too_large', details: { n } });
    await expect.poll(() => registry.entries).toHaveLength(MAX_WAITING_AUDIT + 1);
    const dropped = registry.entries.filter(({ kind }) => kind === 'audit.dropped');
    expect(dropped.map(({ details }) => details)).toEqual([{ count: 7 }]);
  });
  it('at the end what is left is written, and the rows are removed', async () => {
    const { writer, registry } = given();
    writer.start();
    await expect.poll(() => registry.instances('default')).toHaveLength(1);
    writer.note({ kind: 'session.closed', details: {} });
    await writer.stop();
    expect(registry.entries.map(({ kind }) => kind)).toEqual(['session.closed']);
    expect(await registry.instances('default')).toEqual([]);
  });
  it('one that never answers does not hold the end up', async () => {
    const { writer, registry } = given();
    registry.appendAudit = () => new Promise(() => undefined);
    writer.note({ kind: 'session.closed', details: {} });
    await writer.stop();
    expect(registry.entries).toEqual([]);
  });
});
