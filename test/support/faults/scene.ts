// What fault tests run: parallel branches with an agent that speaks and is unsure, one that pays, an approval and a
// timer, and two tools against the effect service of the test process. Facades and workers load the same scene.
import type { BuiltIn } from '../../../src/app/parts.ts';
import type { ResolvedAgent } from '../../../src/ports/catalog.ts';
import type { Tool } from '../../../src/ports/tools.ts';
import type { AgentScript } from '../../../schemas/types.generated.ts';
import { agentNode, chain, definition, edge, node } from '../definitions.ts';

/** Where a spawned half finds the effect service. */
export const EFFECTS_VARIABLE = 'OPENWOP_TEST_EFFECTS';
/** HostWaits.announcedMs of a spawned half. */
export const ANNOUNCED_VARIABLE = 'OPENWOP_TEST_ANNOUNCED_MS';
export const SCENE = 'fault-scene';
export const SPEECH = 'fault-speech';
/** Two agents speak at once, one of them for longer, when a human has said yes. */
export const SPEECHES = 'fault-speeches';
export const GATE = 'fault-gate';
export const FAMILY = 'fault-family';
const MEMBER = 'fault-member';
/** Child runs of a family. */
export const MEMBERS = 6;
/** Idempotent: its receiver counts a key once. */
export const MARK = 'tests:mark';
/** Not idempotent, and nobody can be asked whether it happened: in doubt it goes to a human. */
export const PAY = 'tests:pay';

const TALKER = 'local.faults.talker';
const PAYER = 'local.faults.payer';
const SPEAKER = 'local.faults.speaker';
const BRIEF_SPEAKER = 'local.faults.brief-speaker';
const TOOL_TIMEOUT_MS = 10_000;
const PACE_MS = 40;
const gate = { title: 'Go on?', actions: ['accept', 'reject'] };
const label = { label: { type: 'variable' as const, variableName: 'label' } };
const variables = [{ name: 'label', type: 'string' as const, required: true }];

const scene = definition(
  SCENE,
  [
    node('start', 'core.start'),
    agentNode('talk', TALKER, { inputs: label }),
    agentNode('pay', PAYER, { inputs: label }),
    node('ask', 'core.approvalGate', { config: gate }),
    node('rest', 'core.delay', { config: { ms: 300 } }),
    node('join', 'core.noop'),
    node('end', 'core.end'),
  ],
  [
    ...['talk', 'pay', 'ask', 'rest'].flatMap((id) => [edge('start', id), edge(id, 'join')]),
    edge('join', 'end'),
  ],
  { variables },
);

const speeches = definition(
  SPEECHES,
  [
    node('start', 'core.start'),
    node('ask', 'core.approvalGate', { config: gate }),
    agentNode('brief', BRIEF_SPEAKER),
    agentNode('speak', SPEAKER),
    node('join', 'core.noop'),
    node('end', 'core.end'),
  ],
  [
    edge('start', 'ask'),
    ...['brief', 'speak'].flatMap((id) => [edge('ask', id), edge(id, 'join')]),
    edge('join', 'end'),
  ],
);

const pieces = (text: string, count: number): string[] =>
  Array.from({ length: count }, (_, index) => `${text} ${index + 1}. `);

const scripts: Record<string, AgentScript> = {
  [TALKER]: {
    turns: [
      {
        chunks: pieces('I think', 8),
        delayMsPerChunk: PACE_MS,
        calls: [{ toolId: MARK, arguments: { label: '{{task.label}}' } }],
      },
      {
        chunks: pieces('I doubt', 10),
        delayMsPerChunk: PACE_MS,
        final: { decision: { marked: '{{task.label}}' }, confidence: 0.5 },
      },
    ],
  },
  [PAYER]: {
    turns: [
      {
        chunks: pieces('I pay', 3),
        delayMsPerChunk: PACE_MS,
        calls: [{ toolId: PAY, arguments: { label: '{{task.label}}' } }],
      },
      {
        chunks: pieces('I report', 3),
        delayMsPerChunk: PACE_MS,
        final: { decision: { done: true }, confidence: 0.95 },
      },
    ],
  },
  [BRIEF_SPEAKER]: {
    turns: [
      {
        chunks: pieces('I am brief', 8),
        delayMsPerChunk: PACE_MS,
        final: { decision: { said: true }, confidence: 0.95 },
      },
    ],
  },
  [SPEAKER]: {
    turns: [
      {
        chunks: pieces('I speak', 60),
        delayMsPerChunk: PACE_MS,
        final: { decision: { said: true }, confidence: 0.95 },
      },
    ],
  },
};

function agent(agentId: string, toolAllowlist: string[]): ResolvedAgent {
  const systemPrompt = 'Do what the script says.';
  return {
    manifest: {
      agentId,
      persona: agentId,
      modelClass: 'general',
      systemPrompt,
      toolAllowlist,
      confidence: { defaultThreshold: 0.7 },
    },
    packName: 'local.faults',
    packVersion: '1.0.0',
    systemPrompt,
  };
}

function effectTool(effectsUrl: string, toolId: string, idempotent: boolean): Tool {
  return {
    toolId,
    description: 'An effect on the outside, counted there.',
    inputSchema: {
      type: 'object',
      properties: { label: { type: 'string' } },
      required: ['label'],
      additionalProperties: false,
    },
    idempotent,
    timeoutMs: TOOL_TIMEOUT_MS,
    transport: 'http',
    safetyTier: 'write',
    async call(input, context) {
      const response = await fetch(`${effectsUrl}/${toolId}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'idempotency-key': context.idempotencyKey },
        body: JSON.stringify(input),
        signal: context.signal,
      });
      if (!response.ok) throw new Error(`The effect service answered ${response.status}.`);
      return (await response.json()) as { performed: string };
    },
  };
}

/** `effectsUrl` without a slash at the end. */
export function faultScene(effectsUrl: string): BuiltIn {
  return {
    definitions: [
      scene,
      speeches,
      chain(SPEECH, [
        agentNode('speak', SPEAKER),
        node('ask', 'core.approvalGate', { config: gate }),
      ]),
      chain(FAMILY, [
        ...Array.from({ length: MEMBERS }, (_, index) =>
          node(`sub${index}`, 'core.subWorkflow', { config: { workflowId: MEMBER } }),
        ),
        node('ask', 'core.approvalGate', { config: gate }),
      ]),
      chain(MEMBER, [node('rest', 'core.noop')]),
      chain(GATE, [node('ask', 'core.approvalGate', { config: gate }), node('after', 'core.noop')]),
    ],
    agents: [
      agent(TALKER, [MARK]),
      agent(PAYER, [PAY]),
      agent(SPEAKER, []),
      agent(BRIEF_SPEAKER, []),
    ],
    scripts,
    tools: [effectTool(effectsUrl, MARK, true), effectTool(effectsUrl, PAY, false)],
  };
}
