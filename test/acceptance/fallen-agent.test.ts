// A run that calls a tool of an agent in a crash loop (architecture §5), on a real host: the call that waits ends with the agent's
// last exit, so does the next one, and an agent that is started by hand is called again.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { AgentInstance } from '../../src/ports/agents.ts';
import { mintToken, tokenHash } from '../../src/opensentience/tokens.ts';
import { ended, readLog } from '../facade/suite-parts.ts';
import { agentNode, definition } from '../support/definitions.ts';
import { startTestHost, type TestHost } from '../support/host.ts';
import { checkInvariants } from '../support/invariants.ts';
import { paced } from '../support/machine.ts';
import { writeCaller, writeDefinition } from '../support/opensentience/agent-folders.ts';
import { RAW_AGENT } from '../support/opensentience/raw-agent.ts';
import { writeAgent } from '../support/opensentience/temp.ts';

const ID = 'com.example.falls';
/** Its tools are known from a former host; in this one it never comes up. */
const NEVER = 'com.example.never';
const callerOf = (agentId: string) => `local.fallen.caller-of-${agentId.split('.').at(-1)}`;
const callsOf = (agentId: string) =>
  definition(`calls-${agentId.split('.').at(-1)}`, [agentNode('call', callerOf(agentId))]);
/** Where the file `fallen` is, each start ends at once. */
const FALLS = `import { existsSync } from 'node:fs';\nif (existsSync('fallen')) process.exit(3);\n`;
const LAST_EXIT =
  "The agent's process ended 2 times within 600 s and is not started any more. Its last exit: exit code 3.";

let host: TestHost;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'openwop-fallen-'));
  for (const agentId of [ID, NEVER]) {
    const toolId = `${agentId}/echo`;
    await writeCaller(join(folder, 'callers'), {
      agentId: callerOf(agentId),
      toolAllowlist: [toolId],
      turns: [
        { calls: [{ toolId, arguments: { text: 'hi' } }] },
        { final: { decision: 'done', confidence: 1 } },
      ],
    });
    await writeDefinition(join(folder, 'definitions'), callsOf(agentId));
  }
  const launch = { command: process.execPath, args: ['agent.mjs'] };
  const restart = {
    crashLoop: { exits: 2, withinMs: 600_000 },
    // A call finds the time to wait for it.
    ...{ firstDelayMs: paced(3_000), maxDelayMs: paced(3_000) },
  };
  writeAgent(
    join(folder, 'agents'),
    { id: ID, launch, restart },
    { 'agent.mjs': FALLS + RAW_AGENT },
  );
  writeAgent(join(folder, 'agents'), {
    id: NEVER,
    launch: { command: process.execPath, args: ['-e', 'process.exit(3)'] },
    restart: { crashLoop: restart.crashLoop, firstDelayMs: 20 },
  });
  host = await startTestHost({
    agentsDir: join(folder, 'callers'),
    fixturesDir: join(folder, 'definitions'),
    env: { OPENWOP_OPENSENTIENCE_DIR: join(folder, 'agents') },
  });
});
afterAll(async () => {
  await host?.stop();
  await rm(folder, { recursive: true, force: true });
});

async function instance(agentId = ID): Promise<AgentInstance | undefined> {
  return (await host.stores.agents.instances('default', agentId))[0];
}
const status = async () => (await instance())?.status;
const FAILED = {
  status: 'completed',
  returned: { status: 'error', error: { code: 'tool_failed', message: LAST_EXIT } },
};

const startRun = (agentId = ID) => host.startRun({ workflowId: callsOf(agentId).id });

async function resultOf(runId: string) {
  const end = await host.waitFor(runId, ended);
  await checkInvariants(host, runId);
  const { events } = await readLog(host, runId);
  const [payload] = events.filter(({ type }) => type === 'agent.toolReturned');
  return { status: end.status, returned: payload?.payload };
}

it('its calls end, those that wait as well, until it is started by hand', async () => {
  await expect.poll(async () => (await instance())?.session?.toolIds).toContain(`${ID}/echo`);
  await writeFile(join(folder, 'agents', ID, 'fallen'), '');
  process.kill((await instance())?.session?.pid ?? NaN, 'SIGKILL');
  await expect.poll(status).toBe('backing-off');
  const waits = await startRun();
  await expect.poll(status).toBe('crash-loop');
  expect(await resultOf(waits)).toMatchObject(FAILED);
  expect(await resultOf(await startRun())).toMatchObject(FAILED);

  const token = mintToken();
  const minted = { tenant: 'default', agentId: ID, tokenHash: tokenHash(token) };
  await host.stores.agents.mintToken(minted, 600_000);
  const child = spawn(process.execPath, ['--input-type=module', '-e', RAW_AGENT], {
    env: {
      OPENSENTIENCE_SOCKET: (await instance())?.socket,
      OPENSENTIENCE_SESSION_TOKEN: token,
      OPENSENTIENCE_AGENT_ID: ID,
    },
    stdio: 'ignore',
  });
  try {
    await expect.poll(status).toBe('connected');
    expect(await resultOf(await startRun())).toMatchObject({
      ...{ status: 'completed', returned: { status: 'ok', outcome: { input: { text: 'hi' } } } },
    });
  } finally {
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
});

it('calls of one that never came up here are taken from its queue, and end', async () => {
  const known = await host.stores.agents.tools('default', [`${ID}/echo`]);
  const tools = known.map((tool) => ({ ...tool, toolId: `${NEVER}/echo`, agentId: NEVER }));
  await host.stores.agents.saveTools('default', NEVER, tools);
  await expect.poll(async () => (await instance(NEVER))?.status).toBe('crash-loop');
  expect(await resultOf(await startRun(NEVER))).toMatchObject(FAILED);
});
