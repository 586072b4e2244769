// Activities of agents that answer from a script: for tests of workflow code.
import { randomUUID } from 'node:crypto';
import type {
  CallToolInput,
  CallToolOutput,
  InferTurnInput,
  InferTurnOutput,
  PrepareInvocationInput,
  PrepareInvocationOutput,
  SealBlockInput,
} from '../../activities/contract.ts';
import type { ActivityEvent, StepResult } from '../../src/rules/journal.ts';
import type { JsonObject, JsonValue } from '../../src/rules/json.ts';
import type { PinnedAgent, RunInput } from '../../src/rules/run-input.ts';
import { agentNode, chain, pinned, runInput } from '../support/definitions.ts';

export const AGENT = 'local.test.pack.agent';
export type Turn =
  | Omit<Extract<InferTurnOutput, { kind: 'decision' }>, 'transcript'>
  | { kind: 'calls'; calls: { toolId: string; arguments: JsonValue }[] }
  | Omit<Extract<InferTurnOutput, { kind: 'invalid' }>, 'transcript'>
  | Omit<Extract<InferTurnOutput, { kind: 'handoff' }>, 'transcript'>
  | { kind: 'clarification'; questions: { id: string; question: string }[] }
  | { kind: 'refusal' };

export interface Script {
  readonly turns: readonly Turn[];
  readonly tools?: readonly string[];
  /** The tools change something outside. */
  readonly sideEffects?: true;
  readonly call?: (input: CallToolInput) => CallToolOutput;
  readonly prepare?: PrepareInvocationOutput;
}

/** Activities that answer from a script; turns are chosen by the transcript, as the real ones do. */
export function scripted({ turns, tools = ['core:clock'], sideEffects, call, prepare }: Script) {
  const seals: SealBlockInput[] = [];
  const infers: InferTurnInput[] = [];
  const prepares: PrepareInvocationInput[] = [];
  const returned = (input: CallToolInput, status: 'ok' | 'forbidden'): ActivityEvent => ({
    type: 'agent.toolReturned',
    nodeId: input.context.nodeId,
    causedBy: input.calledKey,
    payload: {
      agentId: input.agentId,
      toolName: input.call.toolId,
      callId: input.call.callId,
      status,
    },
  });
  const activities = {
    async prepareInvocation(
      input: PrepareInvocationInput,
    ): Promise<StepResult<PrepareInvocationOutput>> {
      prepares.push(input);
      const output: PrepareInvocationOutput = prepare ?? {
        ok: true,
        transcript: input.resume ? `${input.resume.transcript}+a` : 't',
        model: { provider: 'scripted', model: 'scripted' },
        prompts: [
          {
            kind: 'system',
            chain: [{ layer: 'agent-intrinsic', applied: true, source: 'prompt:a' }],
            resolved: 'prompt:a',
          },
        ],
        composed: { refs: ['prompt:a'], kind: 'system+user', hash: `sha256:${'0'.repeat(64)}` },
        tools: tools.map((toolId) => ({
          toolId,
          idempotent: true,
          timeoutMs: 1000,
          transport: 'native',
          ...(sideEffects ? { sideEffects } : {}),
        })),
      };
      return { output, events: [] };
    },
    async inferTurn(input: InferTurnInput): Promise<StepResult<InferTurnOutput>> {
      infers.push(input);
      const turn = turns[input.transcript.length - 1] ?? turns.at(-1);
      if (!turn) throw new Error('no turn');
      const { agentId } = input.agent;
      const events: ActivityEvent[] = [
        {
          type: 'agent.reasoned',
          nodeId: input.context.nodeId,
          payload: { agentId, reasoning: 'hm' },
        },
      ];
      return { output: { ...turn, transcript: `${input.transcript}.` } as InferTurnOutput, events };
    },
    async callTool(input: CallToolInput): Promise<StepResult<CallToolOutput>> {
      // Equal calls of one turn end in call order, so that both ways give the same log.
      await new Promise((resolve) => setTimeout(resolve, input.call.occurrence === 1 ? 200 : 0));
      const output = call?.(input) ?? {
        kind: 'returned',
        status: input.tools.includes(input.call.toolId) ? 'ok' : 'forbidden',
        resultHash: `h:${input.call.callId}`,
      };
      return {
        output,
        events:
          output.kind === 'returned' && output.status !== 'error'
            ? [returned(input, output.status)]
            : [],
      };
    },
    async sealBlock(input: SealBlockInput): Promise<StepResult<{ deltas: number }>> {
      seals.push(input);
      return { output: { deltas: 0 }, events: [] };
    },
  };
  return { activities, seals, infers, prepares };
}

export const decision = (value: JsonValue, confidence?: number): Turn => ({
  kind: 'decision',
  decision: value,
  confidence,
  schemaValidated: true,
});
export const oneAgent = (
  more: Partial<RunInput> & { agentList?: readonly PinnedAgent[] } = {},
  config: JsonObject = {},
): RunInput =>
  runInput(chain(`agent-${randomUUID().slice(0, 8)}`, [agentNode('think', AGENT, { config })]), {
    agentList: [pinned(AGENT)],
    ...more,
  });
