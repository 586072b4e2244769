// A real Core for tests, with short limits and a registry in memory, and the calls that a run would make.
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { createRedactor } from '../../../src/rules/redaction.ts';
import type { JsonObject } from '../../../src/rules/json.ts';
import { createCore, type CoreOptions } from '../../../src/opensentience/core.ts';
import type { Core, SessionCall } from '../../../src/opensentience/parts.ts';
import type { ProcessLimits } from '../../../src/opensentience/process/limits.ts';
import type { AgentInstance } from '../../../src/ports/agents.ts';
import { quietLogger } from '../quiet-logger.ts';
import { createMemoryRegistry, type MemoryRegistry } from './memory-registry.ts';

const FAST: Partial<ProcessLimits> = {
  drainMs: 2_000,
  leaveMs: 300,
  terminateMs: 300,
  lingerMs: 200,
  firstDelayMs: 20,
  maxDelayMs: 100,
  memoryEveryMs: 50,
  renewMs: 200,
  coalesceMs: 20,
  coalesceCallsMs: 20,
};

export interface TestCore {
  readonly core: Core;
  readonly registry: MemoryRegistry;
  /** Every log line: message and fields as text. */
  readonly logs: string[];
  /** The agent's row as operators see it. */
  readonly row: (agentId: string) => Promise<AgentInstance | undefined>;
  /** Kinds of the agent's audit, oldest first. */
  readonly kinds: (agentId?: string) => readonly string[];
}

export async function startCore(
  root: string,
  { registry = createMemoryRegistry(), ...over }: Partial<CoreOptions> & CoreTestOptions = {},
): Promise<TestCore> {
  const logs: string[] = [];
  const log = (message: string, fields?: object) =>
    void logs.push(`${message} ${JSON.stringify(fields)}`);
  const instanceId = `core-${randomUUID()}`;
  const core = await createCore({
    agentsDir: join(root, 'agents'),
    socketDir: join(root, 's'),
    dataDir: join(root, 'data'),
    tenant: 'default',
    redactor: createRedactor([{ id: 'key', value: 'operator-secret-1' }]),
    logger: { ...quietLogger, debug: log, info: log, warn: log, error: log },
    coreVersion: '0.0.0',
    instanceId,
    environment: { PATH: process.env.PATH },
    ...over,
    registry,
    limits: { heartbeatIntervalMs: 1_000, ...over.limits },
    processLimits: { ...FAST, ...over.processLimits },
  });
  return {
    core,
    registry,
    logs,
    row: async (agentId) =>
      (await registry.instances('default', agentId)).find((one) => one.instanceId === instanceId),
    kinds: (agentId) =>
      registry.entries
        .filter((entry) => agentId === undefined || entry.agentId === agentId)
        .map(({ kind }) => kind),
  };
}

interface CoreTestOptions {
  readonly registry?: MemoryRegistry;
}

export function callOf(
  toolId: string,
  input: JsonObject = {},
  over: Partial<SessionCall> = {},
): SessionCall {
  return {
    toolId,
    input,
    sideEffects: true,
    timeoutMs: 10_000,
    maxInputBytes: 100_000,
    maxOutputBytes: 100_000,
    idempotencyKey: randomUUID(),
    requestId: randomUUID(),
    correlationId: 'run-1',
    actor: { type: 'agent', id: 'caller' },
    caller: { type: 'agent', id: 'caller' },
    context: {},
    runId: 'run-1',
    signal: new AbortController().signal,
    ...over,
  };
}
