// Agents, workers with Core, and both at once die by SIGKILL in the middle of a call (architecture §5): the call ends
// once, an effect that is not idempotent is never repeated silently, and a call without an agent waits for it.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { AgentInstance, AgentSessionView } from '../../src/ports/agents.ts';
import { isThere } from '../../src/system/processes.ts';
import type { RunEventDoc, RunSnapshot } from '../../schemas/types.generated.ts';
import { agentNode, chain } from '../support/definitions.ts';
import { patientClient, type PatientClient } from '../support/faults/client.ts';
import type { EffectStage, EffectTool } from '../support/faults/effects-receiver.ts';
import { EFFECTS_VARIABLE, MARK, PAY } from '../support/faults/scene.ts';
import { type FaultSystem, type Half } from '../support/faults/system.ts';
import { withFaultSystem } from '../support/faults/with-system.ts';
import { neverByChance } from '../support/broken.ts';
import { until } from '../support/host.ts';
import { checkInvariants } from '../support/invariants.ts';
import { FAULT_AGENT } from '../support/opensentience/fault-agent.ts';
import {
  writeAgentFolder,
  writeCaller,
  writeDefinition,
} from '../support/opensentience/agent-folders.ts';
const WORKFLOW = { pay: 'remote-pay', mark: 'remote-mark' };

let system: FaultSystem;
let folder: string;
let client: PatientClient;
/** Runs workflows, has no agents. */
let plain: Half;
/** Has the agent. */
let core: Half;
/** Starts another worker that has it, too. */
let startSecond: () => Promise<Half>;
let second: Half | undefined;

afterAll(async () => {
  if (folder) await rm(folder, { recursive: true, force: true });
});

withFaultSystem(async (started) => {
  system = started;
  folder = await mkdtemp(join(tmpdir(), 'openwop-agents-'));
  const dirs = {
    agents: join(folder, 'agents'),
    definitions: join(folder, 'definitions'),
    processes: join(folder, 'processes'),
  };
  for (const name of ['pay', 'mark'] as const) {
    const agentId = `local.faults.remote.${name}`;
    const toolId = `${FAULT_AGENT}/${name}`;
    const label = { label: { type: 'variable' as const, variableName: 'label' } };
    await writeCaller(dirs.agents, {
      agentId,
      toolAllowlist: [toolId],
      turns: [
        { chunks: ['I call.'], calls: [{ toolId, arguments: { label: '{{task.label}}' } }] },
        { chunks: ['Done.'], final: { decision: { done: true }, confidence: 0.95 } },
      ],
    });
    await writeDefinition(
      dirs.definitions,
      chain(WORKFLOW[name], [agentNode('call', agentId, { inputs: label })], {
        variables: [{ name: 'label', type: 'string', required: true }],
      }),
    );
  }
  await writeAgentFolder(dirs.processes, {
    id: FAULT_AGENT,
    script: new URL('../support/opensentience/fault-agent.ts', import.meta.url),
    env: { [EFFECTS_VARIABLE]: system.effects.url },
    more: {
      policy: { sideEffects: 'allow' },
      restart: { policy: 'always', firstDelayMs: 100, crashLoop: { exits: 50, withinMs: 60_000 } },
    },
  });
  const env = {
    OPENWOP_AGENTS_DIR: dirs.agents,
    OPENWOP_FIXTURES_DIR: dirs.definitions,
  };
  startSecond = () =>
    system.start('worker', {
      ...env,
      OPENWOP_DATA_DIR: join(folder, 'data'),
      OPENWOP_OPENSENTIENCE_DIR: dirs.processes,
    });
  let facade: Half;
  [facade, plain, core] = await Promise.all([
    system.start('serve', env),
    system.start('worker', env),
    startSecond(),
  ]);
  client = patientClient(facade.url);
  await connected();
});

/** The session of the agent now; it is another one after each death. */
async function connected(but?: string): Promise<AgentSessionView> {
  let session: AgentSessionView | undefined;
  await until(async () => {
    const instances: readonly AgentInstance[] = await system.stores.agents.instances(
      'default',
      FAULT_AGENT,
    );
    session = instances
      .map((instance) => instance.session)
      // A killed Core's row stands until its lease ends.
      .find(
        (one) =>
          one?.toolIds.length === 2 &&
          one.sessionId !== but &&
          one.pid !== undefined &&
          isThere(one.pid),
      );
    return session !== undefined;
  }, 'the agent is connected');
  if (!session) throw new Error('no session');
  return session;
}

async function killAgent(): Promise<void> {
  const { pid } = await connected();
  if (pid === undefined) throw new Error('the pid of the agent is not known');
  process.kill(pid, 'SIGKILL');
}

async function reached(runId: string, ready: (snapshot: RunSnapshot) => boolean) {
  let last: RunSnapshot | undefined;
  await until(async () => {
    last = await client.snapshot(runId);
    return ready(last);
  }, `run ${runId} gets there`);
  return last;
}

async function eventsOf(runId: string): Promise<readonly RunEventDoc[]> {
  const told = await client.ask<{ events: RunEventDoc[] }>(`/v1/runs/${runId}/events`, {
    headers: { accept: 'application/json' },
  });
  return told.body.events;
}

type Name = 'pay' | 'mark';
interface Death {
  readonly kill: () => Promise<unknown>;
  readonly back: () => Promise<unknown>;
}
/** Who is killed, and how it comes back; effects' answers go into the void. */
const DEATHS: Record<string, Death> = {
  'the agent': { kill: killAgent, back: async () => undefined },
  'the agent and every worker': {
    kill: () => Promise.all([killAgent(), core.kill(), plain.kill()]),
    back: () => Promise.all([core.restart(), plain.restart()]),
  },
  // Its calls move to the other one, which stays.
  'the worker with Core, of two that have the agent,': {
    async kill() {
      const { sessionId } = await connected();
      second = await startSecond();
      await connected(sessionId);
      await core.kill();
    },
    back: async () => undefined,
  },
};

const TOOLS: Record<Name, EffectTool> = { pay: PAY, mark: MARK };

/** A run of each, whose calls all stand at that stage when death comes. */
async function runInto(
  names: readonly Name[],
  { kill, back }: Death,
  at: { label: string; stage: EffectStage },
): Promise<string[]> {
  let arrived = 0;
  let died: () => void = () => undefined;
  const dead = new Promise<void>((resolve) => (died = resolve));
  for (const name of names) {
    system.effects.at({ tool: TOOLS[name], ...at }, async () => {
      arrived++;
      if (arrived === names.length) await kill().then(died);
      await dead;
    });
  }
  const runs = await Promise.all(
    names.map((name) => client.start(WORKFLOW[name], { label: at.label })),
  );
  await dead;
  await back();
  return runs;
}

const ended = ({ status }: RunSnapshot): boolean => status === 'completed' || status === 'failed';
const asked = ({ status }: RunSnapshot): boolean =>
  status === 'waiting-approval' || ended({ status } as RunSnapshot);

async function check(runId: string): Promise<readonly RunEventDoc[]> {
  await checkInvariants({ stores: system.stores, temporal: system.temporal }, runId);
  const events = await eventsOf(runId);
  const count = (type: string) => events.filter((event) => event.type === type).length;
  expect(count('agent.toolCalled')).toBe(1);
  expect(count('agent.toolReturned')).toBe(1);
  return events;
}

describe('the call ends once (architecture §5)', () => {
  for (const [death, how] of Object.entries(DEATHS)) {
    it(`when ${death} is killed in the middle of calls`, async () => {
      const label = death;
      const runs = await runInto(['pay', 'mark'], how, { label, stage: 'performed' });
      const [paying = '', marking = ''] = runs;

      // Not idempotent: the effect stands once, and a human says what became of it.
      expect((await reached(paying, asked))?.status).toBe('waiting-approval');
      const value = {
        action: 'edit-accept',
        editedArtifactData: { performed: 'as the bank says' },
      };
      expect(await client.answer(paying, 'call', { value, key: `answer-${paying}` })).toBe(200);
      expect((await reached(paying, ended))?.status).toBe('completed');
      await neverByChance(() => {
        expect(system.effects.requests(PAY, label)).toHaveLength(1);
      });
      const events = await check(paying);
      expect(events.find((event) => event.type === 'interrupt.requested')?.payload).toMatchObject({
        data: { artifactType: 'effect-in-doubt' },
      });

      // Idempotent: it is asked again with its key, and has one effect.
      expect((await reached(marking, ended))?.status).toBe('completed');
      const requests = system.effects.requests(MARK, label);
      expect(requests.length).toBeGreaterThan(1);
      await neverByChance(() => {
        expect(requests.filter(({ performed }) => performed)).toHaveLength(1);
        expect(new Set(requests.map(({ key }) => key)).size).toBe(1);
      });
      await check(marking);
    });
  }
});

describe('an agent that nobody has', () => {
  it('its calls wait, and are performed when it comes', async () => {
    const before = await connected();
    await Promise.all([core.kill(), second?.kill()]);
    const label = 'while it is away';
    const runId = await client.start(WORKFLOW.pay, { label });
    await until(
      async () => (await eventsOf(runId)).some(({ type }) => type === 'agent.toolCalled'),
      'the call is stated',
    );
    expect((await client.snapshot(runId)).status).toBe('running');
    await core.restart();
    await connected(before.sessionId);
    expect((await reached(runId, ended))?.status).toBe('completed');
    expect(system.effects.requests(PAY, label)).toHaveLength(1);
    await check(runId);
  });
});

describe('progress of a call (architecture §3.5)', () => {
  it('is in the log, also of a call whose agent died', async () => {
    const label = 'told';
    const death = { kill: killAgent, back: async () => undefined };
    const [runId = ''] = await runInto(['mark'], death, { label, stage: 'received' });
    await reached(runId, ended);
    const events = await check(runId);
    const chunks = events.filter(({ type }) => type === 'output.chunk');
    expect(chunks[0]?.payload).toMatchObject({
      channel: 'tool.status',
      toolId: `${FAULT_AGENT}/mark`,
    });
    expect(chunks.map(({ payload }) => (payload as { chunk: string }).chunk).join('')).toContain(
      'asks for told',
    );
  });
});
