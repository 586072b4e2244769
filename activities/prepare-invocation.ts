// prepareInvocation: before the first model call of an invocation (RFC 0077 §B steps 1–3 and the inbound half of 6).
// It has no effect but content under its hash, so a retry gives the same.
import { codeOf } from '../src/rules/errors.ts';
import type { JsonValue } from '../src/rules/json.ts';
import type { StepResult } from '../src/rules/journal.ts';
import { askedModel } from '../src/rules/model-choice.ts';
import type { ResolvedAgent } from '../src/ports/catalog.ts';
import type { TranscriptItem } from '../src/ports/models.ts';
import { checkAgainst } from '../src/wire/user-schema.ts';
import type { ModelChoice, PrepareInvocationInput, PrepareInvocationOutput } from './contract.ts';
import { returnSchemaOf } from './decision.ts';
import { handoffTool, loadHandoffs } from './handoffs.ts';
import type { ActivityPorts } from './ports.ts';
import { composeAnswers, composedPayload, composeFirst, resolvePrompts } from './prompts.ts';
import { appendTranscript, loadTranscript, readJson } from './transcript.ts';

type Refusal = Extract<PrepareInvocationOutput, { ok: false }>;
/** ms that an invocation waits for agents that are just being started: what they can do belongs to its surface. */
const AGENT_START_MS = 10_000;
/** Faults of a task that are told. */
const MAX_TOLD_FAULTS = 10;

export async function prepareInvocation(
  ports: ActivityPorts,
  input: PrepareInvocationInput,
): Promise<StepResult<PrepareInvocationOutput>> {
  const { context, configurable } = input;
  const agent = await readJson<ResolvedAgent>(
    ports.stores.content,
    context.tenant,
    input.agent.manifestHash,
  );
  const task = ports.redactor.json(input.task);
  const refusal = input.resume ? undefined : taskViolation(agent, task);
  const chosen = refusal ?? chooseModel(ports, input);
  if (!chosen.ok) return { output: chosen, events: [] };
  const { provider, model } = chosen;
  const run = await ports.stores.runs.find(context.tenant, context.runId);
  const prompts = resolvePrompts({
    agent,
    configurable,
    nodeId: context.nodeId,
    ...(run ? { definition: run.input.definition } : {}),
  });
  const returnSchema = returnSchemaOf(agent, input.orchestrates);
  const { transcript, items } = await compose(ports, { input, agent, task });
  return {
    output: {
      ok: true,
      transcript,
      model: { provider, model },
      prompts,
      composed: composedPayload(prompts, items),
      tools: await toolSurface(ports, input),
      ...(returnSchema ? { returnSchema } : {}),
    },
    events: [],
  };
}

function taskViolation(agent: ResolvedAgent, task: JsonValue): Refusal | undefined {
  if (agent.taskSchema === undefined) return undefined;
  const checked = checkAgainst(agent.taskSchema, task);
  if (checked.ok) return undefined;
  const errors = checked.errors.slice(0, MAX_TOLD_FAULTS);
  return {
    ok: false,
    code: 'handoff_task_schema_violation',
    message: `The task does not match the agent's task schema: ${errors[0]?.pointer || '/'} ${errors[0]?.message}.`,
    details: { errors: errors.map(({ pointer, message }) => ({ pointer, message })) },
  };
}

function chooseModel(
  ports: ActivityPorts,
  { agent, configurable }: PrepareInvocationInput,
): ({ readonly ok: true } & ModelChoice) | Refusal {
  try {
    return { ok: true, ...ports.models.choose(agent, askedModel(configurable)) };
  } catch (error) {
    switch (codeOf(error)) {
      case 'model_not_configured':
        return {
          ok: false,
          code: 'model_not_configured',
          message: `No model is configured for the agent ${agent.agentId} (class ${agent.modelClass}).`,
        };
      case 'model_unavailable':
        return { ok: false, code: 'model_unavailable', message: (error as Error).message };
      default:
        throw error;
    }
  }
}

async function compose(
  ports: ActivityPorts,
  { input, agent, task }: { input: PrepareInvocationInput; agent: ResolvedAgent; task: JsonValue },
): Promise<{ transcript: string; items: TranscriptItem[] }> {
  const { content } = ports.stores;
  const { tenant } = input.context;
  const prev = input.resume?.transcript ?? null;
  const before = prev === null ? [] : (await loadTranscript(content, tenant, prev)).items;
  const added = input.resume
    ? composeAnswers(ports.redactor.json(input.resume.answers))
    : composeFirst(agent, task);
  const items = added.map((item) => ports.redactor.json(item));
  const transcript = await appendTranscript({ content, run: input.context }, prev, { items });
  return { transcript, items: [...before, ...items] };
}

/** Allowlist ∩ policy ∩ registered, or in the run as an agent that may take over, in the allowlist's order. */
async function toolSurface(
  ports: ActivityPorts,
  { agent, context, handoffs }: PrepareInvocationInput,
): Promise<Extract<PrepareInvocationOutput, { ok: true }>['tools']> {
  const allowed = [...new Set(agent.toolAllowlist)];
  const found = await ports.tools.find(context.tenant, allowed, AGENT_START_MS);
  const targets = await loadHandoffs(ports, context.tenant, handoffs);
  return allowed.flatMap((toolId) => {
    const target = targets.get(toolId);
    const tool = target ? handoffTool(toolId, target) : found.get(toolId);
    if (!tool || tool.remote?.approval === 'deny') return [];
    const { idempotent = false, timeoutMs, transport, remote, runs } = tool;
    const known = {
      ...{ toolId, idempotent, timeoutMs, transport },
      ...(tool.safetyTier === 'write' && !runs ? { sideEffects: true as const } : {}),
    };
    if (!remote) return [{ ...known, ...(runs ? { runs } : {}) }];
    const { agentId, waitMs, approval } = remote;
    return [{ ...known, remote: { agentId, waitMs, asks: approval === 'ask' } }];
  });
}
