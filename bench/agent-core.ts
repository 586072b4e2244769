// Core as a worker has it (src/app/roles.ts), in the bench's process: one agent that it launches, and others of one
// process that attach with tokens of the operator's route.
import { fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { TYPESCRIPT } from '../src/system/compiled.ts';
import { createRedactor } from '../src/rules/redaction.ts';
import { createCore } from '../src/opensentience/core.ts';
import type { Core, SessionCall } from '../src/opensentience/parts.ts';
import type { CrowdOrder } from './agent-crowd.ts';
import { TENANT, type BenchHost } from './bench-host.ts';
import { benchLogger } from './closing.ts';
import { ECHO_NAME, ECHO_TIMEOUT_MS } from './echo.ts';

const AGENT_FILE = fileURLToPath(new URL('./echo-agent.ts', import.meta.url));
const CROWD_FILE = fileURLToPath(new URL('./agent-crowd.ts', import.meta.url));
const CONNECT_LIMIT_MS = 60_000;
const PROBE_MS = 20;
const MAX_BYTES = 64 * 1024;
/** What the wire can do, and not where Core reads an agent that floods it slower (DEFAULT_LIMITS). */
const UNPACED = 1_000_000;

export interface BenchCore {
  readonly core: Core;
  /** Launched by Core, a process of its own. */
  readonly launched: string;
  /** Connected after `attach`. */
  readonly attached: readonly string[];
  /** Connects the others; resolves when calls can go to all. */
  attach(): Promise<void>;
  stop(): Promise<void>;
}

async function writeManifests(dir: string, launched: string, attached: readonly string[]) {
  const launch = {
    command: process.execPath,
    args: ['--import', TYPESCRIPT, AGENT_FILE],
    env: { BENCH_AGENT_ID: launched },
  };
  const manifests = [
    { id: launched, version: '1.0.0', launch },
    ...attached.map((id) => ({ id, version: '1.0.0' })),
  ];
  for (const manifest of manifests) {
    await mkdir(join(dir, manifest.id), { recursive: true });
    await writeFile(join(dir, manifest.id, 'opensentience.agent.json'), JSON.stringify(manifest));
  }
}

/** `agents` in all, one of them launched and connected when this resolves. */
export async function startBenchCore(
  { host, closing }: BenchHost,
  folder: string,
  agents: number,
): Promise<BenchCore> {
  const launched = 'com.example.echo';
  const attached = Array.from({ length: agents - 1 }, (_, index) => `com.example.echo-${index}`);
  const agentsDir = join(folder, 'agents');
  await writeManifests(agentsDir, launched, attached);
  const core = await createCore({
    agentsDir,
    dataDir: folder,
    socketDir: join(folder, 'opensentience'),
    tenant: TENANT,
    registry: host.stores.agents,
    redactor: createRedactor([{ id: 'OPENWOP_API_KEY', value: host.apiKey }]),
    logger: benchLogger,
    coreVersion: '0.0.0',
    environment: process.env,
    instanceId: `core-${randomUUID()}`,
    limits: { messagesPerSecond: UNPACED },
  });
  closing.add(() => core.stop());
  const stopCrowd: (() => Promise<void>)[] = [];
  await untilRoutable(core, [launched]);
  return {
    core,
    launched,
    attached,
    async attach() {
      const order: CrowdOrder = await Promise.all(attached.map((id) => credentialsOf(host, id)));
      const crowd = fork(CROWD_FILE, {
        execArgv: ['--import', TYPESCRIPT],
        stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      });
      const gone = once(crowd, 'exit');
      stopCrowd.push(async () => {
        if (crowd.connected) crowd.disconnect();
        await gone;
      });
      closing.add(() => Promise.all(stopCrowd.map((stop) => stop())));
      crowd.send(order);
      await untilRoutable(core, attached);
    },
    async stop() {
      await core.stop();
      for (const stop of stopCrowd) await stop();
    },
  };
}

async function untilRoutable(core: Core, agentIds: readonly string[]): Promise<void> {
  const limitMs = performance.now() + CONNECT_LIMIT_MS;
  for (;;) {
    const here = new Set(core.routable());
    if (agentIds.every((agentId) => here.has(agentId))) break;
    if (performance.now() > limitMs) throw new Error('the agents do not connect');
    await sleep(PROBE_MS);
  }
  // The first call awaits the tools, too.
  for (const agentId of agentIds) await core.call(agentId, echoCall(agentId), CONNECT_LIMIT_MS);
}

/** As an operator gets them. Core's rows come a little after Core. */
async function credentialsOf(
  { url, apiKey }: BenchHost['host'],
  agentId: string,
): Promise<CrowdOrder[number]> {
  const path = `/v1/host/openwop-temporal/opensentience/agents/${agentId}/attach`;
  const limitMs = performance.now() + CONNECT_LIMIT_MS;
  for (;;) {
    const response = await fetch(url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${apiKey}` },
    });
    const answer = (await response.json()) as CrowdOrder[number];
    if (response.ok) return answer;
    if (performance.now() > limitMs) throw new Error(`no token: HTTP ${response.status}`);
    await sleep(PROBE_MS);
  }
}

export const ECHO_TEXT = 'The order is known and its total is within the policy. '.repeat(4);

/** As a run would call it. */
export function echoCall(agentId: string): SessionCall {
  const caller = { type: 'agent', id: 'local.bench.worker' } as const;
  return {
    toolId: `${agentId}/${ECHO_NAME}`,
    input: { text: ECHO_TEXT },
    sideEffects: false,
    timeoutMs: ECHO_TIMEOUT_MS,
    maxInputBytes: MAX_BYTES,
    maxOutputBytes: MAX_BYTES,
    idempotencyKey: randomUUID(),
    requestId: randomUUID(),
    correlationId: 'bench',
    actor: caller,
    caller,
    context: {},
    runId: 'bench',
    signal: new AbortController().signal,
  };
}
