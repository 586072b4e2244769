// An SDK agent and a real Core: tools that are replaced among many (seed 004 §4.2.1).
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { agent, tool, type Tool } from '../../src/agent-sdk/index.ts';
import { mintToken, tokenHash } from '../../src/opensentience/tokens.ts';
import { callOf, startCore } from '../support/opensentience/core-parts.ts';
import { tempFolder, writeAgent } from '../support/opensentience/temp.ts';
import { surroundingsOf } from './attached.ts';
import { patient } from '../support/machine.ts';

const ID = 'com.example.many';
const WAIT_MS = patient(20_000);
const folder = join(tempFolder(), randomUUID().slice(0, 8));

/** Of about 42 parts; `version` is what it answers with. */
function wide(name: string, version: number): Tool {
  const properties = Object.fromEntries(
    Array.from({ length: 40 }, (_, at) => [`p${at}`, { type: 'string' }]),
  );
  const input = { type: 'object', properties } as const;
  return tool({ name, description: `${version}`, input, run: () => ({ version }) });
}

it('60 tools of which one is replaced, time and again: all stay, and the newest answers', async () => {
  writeAgent(join(folder, 'agents'), { id: ID });
  const { core, registry, row } = await startCore(folder);
  const token = mintToken();
  const minted = { tenant: 'default', agentId: ID, tokenHash: tokenHash(token) };
  await registry.mintToken(minted, 60_000);
  await expect.poll(() => row(ID)).toBeDefined();
  const { surroundings } = surroundingsOf((await row(ID))?.socket ?? '', token);
  const tools = Array.from({ length: 60 }, (_, at) => wide(`t${at}`, 0));
  const one = agent({ id: ID, version: '1.0.0', surroundings, tools });
  const ended = one.run();
  onTestFinished(async () => {
    await one.stop();
    await ended;
    await core.stop();
  });
  const version = async (name: string): Promise<unknown> =>
    (await core.call(ID, callOf(`${ID}/${name}`), WAIT_MS)).version;
  expect(await version('t59')).toBe(0);
  for (let time = 1; time <= 5; time += 1) {
    const told = await one.register(wide('t7', time));
    expect(told).toEqual({ registered: [`${ID}/t7`], rejected: [] });
    expect(await version('t7')).toBe(time);
  }
  expect(await version('t59')).toBe(0);
  await expect.poll(() => registry.tools('default')).toHaveLength(60);
});
