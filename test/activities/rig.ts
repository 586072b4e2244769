// What tests of the activities share: real stores, one accepted run, scripted models, real tools.
import { MockActivityEnvironment } from '@temporalio/testing';
import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import { createActivities, type ActivityPorts } from '../../activities/create-activities.ts';
import type { Activities, Orchestrates, StepContext } from '../../activities/contract.ts';
import { createModels } from '../../src/adapters/models/index.ts';
import { createTools } from '../../src/adapters/tools/index.ts';
import { eventIdOf } from '../../src/rules/ids.ts';
import type { RecordedEvent } from '../../src/rules/journal.ts';
import type { JsonObject, JsonValue } from '../../src/rules/json.ts';
import { createRedactor, type Secret } from '../../src/rules/redaction.ts';
import type { PinnedAgent } from '../../src/rules/run-input.ts';
import type { ResolvedAgent } from '../../src/ports/catalog.ts';
import type { LogRow } from '../../src/ports/log.ts';
import type { TranscriptItem } from '../../src/ports/models.ts';
import type { Stores } from '../../src/ports/stores.ts';
import type { Tool } from '../../src/ports/tools.ts';
import type { AgentManifest, AgentScriptTurn } from '../../schemas/types.generated.ts';
import type { Children } from '../../src/runs/children.ts';
import { validateEvent } from '../../src/wire/validators.ts';
import { definition, node, runInput } from '../support/definitions.ts';
import { silentLogger } from '../support/log-parts.ts';
import { runRef } from '../support/run-ref.ts';

export const AGENT_ID = 'local.test.desk.agent';
export const TENANT = 'default';

export interface RigOptions {
  readonly turns?: readonly AgentScriptTurn[];
  readonly tools?: readonly Tool[];
  /** Tools of agent processes. */
  readonly remote?: readonly Tool[];
  readonly secrets?: readonly Secret[];
  readonly manifest?: Partial<AgentManifest>;
  readonly taskSchema?: JsonObject;
  readonly returnSchema?: JsonObject;
  readonly node?: Parameters<typeof node>[2];
  readonly children?: Children;
  readonly models?: Parameters<typeof createModels>[0];
  /** Rows that the run's log has once it is caught up; 0: the host has not noted the run's start. */
  readonly caughtUpTo?: number;
}

const NO_CHILDREN: Children = {
  accept: async (_parent, requests) =>
    requests.map(() => ({
      kind: 'refused' as const,
      code: 'workflow_not_found',
      message: 'No such workflow.',
    })),
  recorded: async () => [],
  end: async () => 'lost',
  recordedEnd: async () => 'lost',
  cancel: async () => 'none',
  keepTime: async () => ({ children: [] }),
  fork: async () => undefined,
};

/** What the agent says where a test does not care. */
const DECIDES = { final: { decision: 'done', confidence: 1 } };

export type Rig = Awaited<ReturnType<typeof createRig>>;

/** A run of its own in `stores`, with one agent. */
export async function createRig(stores: Stores, options: RigOptions = {}) {
  const runId = `run-${randomUUID()}`;
  const input = runInput(definition('desk', [node('n', 'core.agent', options.node)]), { runId });
  await stores.runs.accept({ runId, tenant: TENANT, workflowId: 'desk', input, createdAtMs: 1 });
  const manifest: AgentManifest = {
    agentId: AGENT_ID,
    persona: 'Desk',
    modelClass: 'general',
    systemPrompt: 'You decide.',
    ...options.manifest,
  };
  const resolved: ResolvedAgent = {
    manifest,
    packName: 'local.test.desk',
    packVersion: '1.2.3',
    systemPrompt: 'You decide.',
    ...(options.taskSchema ? { taskSchema: options.taskSchema } : {}),
    ...(options.returnSchema ? { returnSchema: options.returnSchema } : {}),
  };
  const agent: PinnedAgent = {
    agentId: AGENT_ID,
    manifestHash: await stores.content.put({ tenant: TENANT }, bytesOf(resolved)),
    modelClass: 'general',
    toolAllowlist: manifest.toolAllowlist ?? [],
  };
  const ports: ActivityPorts = {
    stores,
    log: {
      catchUp: async () => ({ nextSequence: options.caughtUpTo ?? 1 }),
      recording: async () => ({ batches: [], entries: [] }),
    },
    models: createModels(
      options.models ?? {
        scripts: { [AGENT_ID]: { turns: options.turns ?? [DECIDES] } },
        scriptedByCaller: 'all',
      },
    ),
    tools: createTools(options.tools ?? [], {
      find: async (_tenant, toolIds) =>
        new Map(
          (options.remote ?? [])
            .filter(({ toolId }) => toolIds.includes(toolId))
            .map((tool) => [tool.toolId, tool]),
        ),
    }),
    children: options.children ?? NO_CHILDREN,
    watch: { isThere: () => true, doubt: () => undefined },
    redactor: createRedactor(options.secrets ?? []),
    logger: silentLogger,
  };
  const activities = createActivities(ports);
  const context: StepContext = {
    runId,
    tenant: TENANT,
    principal: 'tester',
    header: { sessionId: runId, correlationId: runId },
    workflowId: 'desk',
    nodeId: 'n',
    visit: 1,
    attempt: 0,
    activityId: 'n/1/0/i0.t0.infer',
    cause: 'node.started|n',
  };
  return { stores, runId, agent, ports, activities, context };
}

export function bytesOf(value: unknown): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(value));
}

/** An activity environment of Temporal's try `attempt`, behind others that failed by themselves. It logs nothing. */
export function activityEnvironment(
  attempt: number,
  info: { heartbeatDetails?: JsonValue; startToCloseTimeoutMs?: number; taskQueue?: string } = {},
): MockActivityEnvironment {
  const log = (): void => undefined;
  const logger = { log, trace: log, debug: log, info: log, warn: log, error: log };
  const heartbeatDetails = { tries: { begun: attempt - 1, failures: attempt - 1, outages: 0 } };
  return new MockActivityEnvironment(
    { attempt, startToCloseTimeoutMs: 60_000, heartbeatDetails, ...info },
    { logger },
  );
}

/** Runs one activity as Temporal's try `tryNumber`. */
export function runActivity<Name extends keyof Activities>(
  { activities }: Pick<Rig, 'activities'>,
  name: Name,
  call: {
    input: Parameters<Activities[Name]>[0];
    tryNumber?: number;
    env?: MockActivityEnvironment;
  },
): ReturnType<Activities[Name]> {
  const env = call.env ?? activityEnvironment(call.tryNumber ?? 1);
  const activity = activities[name] as (input: unknown) => Promise<unknown>;
  return env.run<[unknown], unknown, typeof activity>(activity, call.input) as ReturnType<
    Activities[Name]
  >;
}

/** Prepares an invocation and returns what the first turn starts with. */
export async function prepare(
  rig: Rig,
  more: {
    task?: JsonValue;
    configurable?: JsonObject;
    resume?: { transcript: string; answers: JsonValue };
    orchestrates?: Orchestrates;
  } = {},
) {
  const result = await runActivity(rig, 'prepareInvocation', {
    input: {
      context: rig.context,
      agent: rig.agent,
      task: more.task ?? { order: 'A-1' },
      configurable: more.configurable ?? {},
      ...(more.resume ? { resume: more.resume } : {}),
      ...(more.orchestrates ? { orchestrates: more.orchestrates } : {}),
    },
  });
  if (!result.output.ok) throw new Error(result.output.code);
  return result.output;
}

/** Input of a model turn. */
export async function turnInput(
  rig: Rig,
  more: Partial<Parameters<Activities['inferTurn']>[0]> = {},
): Promise<Parameters<Activities['inferTurn']>[0]> {
  const { transcript, model, tools } = await prepare(rig);
  return {
    context: rig.context,
    agent: rig.agent,
    model,
    configurable: {},
    transcript,
    tools: tools.map(({ toolId }) => toolId),
    results: [],
    verbosity: 'full',
    ...more,
  };
}

export async function contentJson(rig: Rig, hash: string): Promise<unknown> {
  return JSON.parse(new TextDecoder().decode(await rig.stores.content.get(TENANT, hash)));
}

/** Items of the newest chunk. */
export async function newestItems(rig: Rig, transcript: string): Promise<TranscriptItem[]> {
  return ((await contentJson(rig, transcript)) as { items: TranscriptItem[] }).items;
}

/** The rows that the log stores, each valid against the schema of its event. */
export async function rowsOf(rig: Rig): Promise<readonly LogRow[]> {
  const rows = await rig.stores.log.read(runRef(rig.runId), { after: -1, limit: 1000 });
  for (const row of rows) {
    expectValid(rig, { ...row, payload: JSON.parse(row.payload) as JsonObject }, row.sequence);
  }
  return rows;
}

/** Every event that an activity returns is valid as it will stand in the log. */
export function expectValid(rig: Rig, event: RecordedEvent, sequence = 0): void {
  const checked = validateEvent({
    eventId: eventIdOf(rig.runId, String(sequence)),
    runId: rig.runId,
    type: event.type,
    nodeId: event.nodeId,
    payload: event.payload,
    timestamp: new Date(0).toISOString(),
    sequence,
  });
  expect(checked, event.type).toMatchObject({ ok: true });
}
