// What the agent journeys run: the refund desk of the demo, quickened, and one small agent for each behaviour, all on
// the scripted model and with tools of the journeys' own.
import type { BuiltIn } from '../../src/app/parts.ts';
import type { JsonObject, JsonValue } from '../../src/rules/json.ts';
import { REFUND_DESK, refundDesk, refundDeskAgents } from '../../src/demo/definition.ts';
import { orderTools } from '../../src/demo/order-tools.ts';
import { refundDeskScripts } from '../../src/demo/scripts.ts';
import type { ResolvedAgent } from '../../src/ports/catalog.ts';
import type { Tool } from '../../src/ports/tools.ts';
import type { AgentManifest, AgentScript, AgentScriptTurn } from '../../schemas/types.generated.ts';
import { agentNode, chain, definition, edge, node } from '../support/definitions.ts';
import { until } from '../support/host.ts';
import { paced } from '../support/machine.ts';

/** Registered as OPENAI_API_KEY: it must appear nowhere, whoever says it, nor as it stands in a JSON text. */
export const CANARY = 'canary-9c41e7d2b6"a84f03-value';
/** The canary in two parts, said as two pieces. */
const CANARY_PARTS = [CANARY.slice(0, 14), CANARY.slice(14)] as const;

const PACK = 'local.journey';
export const ECHO = 'journey:echo';
export const WAIT = 'journey:wait';
const CHARGE = 'journey:charge';
const LEAK = 'journey:leak';

export const SPEAKER = `${PACK}.speaker`;
export const RAMBLER = `${PACK}.rambler`;
export const JUGGLER = `${PACK}.juggler`;
export const CLIMBER = `${PACK}.climber`;
export const STRICT = `${PACK}.strict`;
export const STUBBORN = `${PACK}.stubborn`;
export const LEARNER = `${PACK}.learner`;
export const UNSURE = `${PACK}.unsure`;
export const BLABBER = `${PACK}.blabber`;
export const MARATHON = `${PACK}.marathon`;
export const REFUSER = `${PACK}.refuser`;
export const CHARGER = `${PACK}.charger`;
/** Charges twice in one turn. */
export const DOUBLE_CHARGER = `${PACK}.double-charger`;
/** Two agents that speak at once. */
export const DUET = 'duet';
/** An agent whose node allows it less time than it needs, twice. */
export const HURRIED = 'hurried';

/** More than a `summary` shows (REASONING_TOKEN_LIMIT), with characters of several bytes. */
export const LONG_SPEECH = Array.from({ length: 240 }, (_, at) => `Gedanke ${at} über „Öl“. `);
export const SPEECH = Array.from({ length: 40 }, (_, at) => `word ${at} `);
/** Takes 8 s: outlives the grace of a worker that leaves (LEAVING_GRACE_MS) however late the shutdown begins. */
export const MARATHON_SPEECH = Array.from({ length: 80 }, (_, at) => `step ${at} `);

const sure = (decision: JsonValue, more: JsonObject = {}): AgentScript['turns'][number] => ({
  final: { decision, confidence: 0.9 },
  ...more,
});

const climb = (n: number): AgentScript['turns'][number] => ({
  reasoning: `Step ${n}. `,
  calls: [{ toolId: ECHO, arguments: { n } }],
});

const SCRIPTS: Record<string, AgentScript> = {
  [SPEAKER]: { turns: [sure('said', { chunks: SPEECH, delayMsPerChunk: 20 })] },
  [RAMBLER]: { turns: [sure('said', { chunks: LONG_SPEECH })] },
  [MARATHON]: {
    turns: [sure('arrived', { chunks: MARATHON_SPEECH, delayMsPerChunk: paced(100) })],
  },
  [JUGGLER]: {
    turns: [
      {
        reasoning: 'Several at once. ',
        calls: [
          { toolId: WAIT, arguments: { ms: 400, say: 'slow' } },
          { toolId: WAIT, arguments: { ms: 1, say: 'quick' } },
          { toolId: 'core:clock', arguments: {} },
          { toolId: 'journey:nowhere', arguments: {} },
          { toolId: ECHO, arguments: 'not an object' },
          { toolId: ECHO, arguments: { n: 1 } },
          { toolId: ECHO, arguments: { n: 1 } },
        ],
      },
      sure({
        slow: '{{results.0.say}}',
        quick: '{{results.1.say}}',
        clock: '{{results.2.error.code}}',
        nowhere: '{{results.3.error.code}}',
        bad: '{{results.4.error.code}}',
        echo: ['{{results.5.n}}', '{{results.6.n}}'],
      }),
    ],
  },
  [CLIMBER]: {
    turns: [
      climb(0),
      ...Array.from({ length: 7 }, (_, at) => climb(at + 1)),
      { final: { decision: { last: '{{results.7.n}}' }, confidence: 0.4 } },
    ],
  },
  [STRICT]: {
    turns: [
      { reasoning: 'A guess. ', final: { decision: { amount: 'many' }, confidence: 0.9 } },
      { raw: 'no JSON at all' },
      sure({ amount: '{{task.amount}}' }),
    ],
  },
  [STUBBORN]: { turns: [{ final: { decision: { amount: 'many' }, confidence: 0.9 } }] },
  [LEARNER]: {
    turns: [
      { final: { decision: 'a guess', confidence: 0.1 } },
      { reasoning: 'Now I know. ', final: { decision: '{{answers.colour}}', confidence: 0.9 } },
    ],
  },
  [UNSURE]: { turns: [{ final: { decision: 'perhaps', confidence: 0.6, reasoning: 'Unclear.' } }] },
  [REFUSER]: { turns: [{ refusal: `I will not, not even for ${CANARY}.` }] },
  [CHARGER]: {
    turns: [
      { reasoning: 'I charge. ', calls: [{ toolId: CHARGE, arguments: { cents: 5 } }] },
      sure({ result: '{{results.0}}' }),
    ],
  },
  [DOUBLE_CHARGER]: {
    turns: [
      {
        reasoning: 'I charge both. ',
        calls: [
          { toolId: CHARGE, arguments: { cents: 6 } },
          { toolId: CHARGE, arguments: { cents: 7 } },
        ],
      },
      sure({ results: ['{{results.0}}', '{{results.1}}'] }),
    ],
  },
  [BLABBER]: {
    turns: [
      {
        chunks: [
          `The key ${CANARY} is `,
          'split: ',
          ...CANARY_PARTS,
          ' and ',
          ...CANARY,
          '. Done.',
        ],
        calls: [
          { toolId: ECHO, arguments: { key: CANARY, [CANARY]: [`in ${CANARY} text`] } },
          { toolId: LEAK, arguments: {} },
        ],
      },
      {
        final: {
          decision: { key: CANARY, [CANARY]: CANARY, leaked: '{{results.1}}' },
          confidence: 0.2,
          reasoning: `Because of ${CANARY}.`,
        },
      },
    ],
  },
};

const MANIFESTS: Record<string, Partial<AgentManifest>> = {
  [JUGGLER]: { toolAllowlist: [WAIT, ECHO, 'journey:gone'] },
  [CLIMBER]: { toolAllowlist: [ECHO] },
  [CHARGER]: { toolAllowlist: [CHARGE] },
  [DOUBLE_CHARGER]: { toolAllowlist: [CHARGE] },
  [BLABBER]: { toolAllowlist: [ECHO, LEAK] },
};

const amountOf = (type: string): JsonObject => ({
  type: 'object',
  properties: { amount: { type } },
  required: ['amount'],
});
const SCHEMAS: Pick<ResolvedAgent, 'taskSchema' | 'returnSchema'> = {
  taskSchema: amountOf('integer'),
  returnSchema: amountOf('integer'),
};

function agentOf(agentId: string): ResolvedAgent {
  const strict = agentId === STRICT || agentId === STUBBORN;
  return {
    manifest: {
      agentId,
      persona: agentId,
      modelClass: 'general',
      systemPrompt: 'You play a part.',
      ...MANIFESTS[agentId],
      ...(strict
        ? { handoff: { taskSchemaRef: 'task.json', returnSchemaRef: 'return.json' } }
        : {}),
    },
    packName: PACK,
    packVersion: '1.0.0',
    systemPrompt: 'You play a part.',
    ...(strict ? SCHEMAS : {}),
  };
}

function tool(toolId: string, call: Tool['call'], inputSchema: JsonObject = {}): Tool {
  return {
    toolId,
    description: 'A tool of the journeys.',
    inputSchema: { type: 'object', ...inputSchema },
    idempotent: true,
    timeoutMs: 5_000,
    transport: 'native',
    safetyTier: 'read',
    call,
  };
}

/** Idempotency keys of charges that were made. */
export const charged: string[] = [];

const PAIR: readonly JsonValue[] = [6, 7];
/** By run: charges of a pair that are under way, or were. */
const ofPair = new Map<string, number>();

/** A call that begins after the doubt of another one is a question of its own: neither ends before both have begun. */
async function withTheOther({ cents }: JsonObject, runId: string): Promise<void> {
  if (!PAIR.includes(cents ?? null)) return;
  ofPair.set(runId, (ofPair.get(runId) ?? 0) + 1);
  await until(() => ofPair.get(runId) !== 1, 'both charges have begun');
}

/** Charges, and then fails to say so, the first time for each key. Nobody can ask it afterwards. */
const charge: Tool = {
  ...tool(CHARGE, async (input, { idempotencyKey, runId }) => {
    charged.push(idempotencyKey);
    await withTheOther(input as JsonObject, runId);
    if (charged.filter((key) => key === idempotencyKey).length === 1)
      throw new Error('The connection was lost.');
    return { charge: 'made' };
  }),
  idempotent: false,
  safetyTier: 'write',
};

const TOOLS: readonly Tool[] = [
  charge,
  tool(ECHO, async (input) => input),
  tool(WAIT, async (input) => {
    const { ms, say } = input as { ms: number; say: string };
    await new Promise((resolve) => setTimeout(resolve, ms));
    return { say };
  }),
  tool(LEAK, async () => ({ key: CANARY, [CANARY]: `-${CANARY}-` })),
];

/** The pace of the demo is for people. */
function quick(script: AgentScript): AgentScript {
  const faster = (turn: AgentScriptTurn): AgentScriptTurn => ({
    ...turn,
    delayMsPerChunk: 2,
    ...(turn.cases ? { cases: turn.cases.map((it) => ({ ...it, turn: faster(it.turn) })) } : {}),
  });
  return { turns: script.turns.map(faster) as AgentScript['turns'] };
}

const duet = definition(
  DUET,
  [node('start', 'core.start'), agentNode('left', SPEAKER), agentNode('right', SPEAKER)],
  [edge('start', 'left'), edge('start', 'right')],
);
const hurried = chain(HURRIED, [
  agentNode('think', MARATHON, {
    settings: { timeoutMs: 3_000, retry: { maxAttempts: 2, initialDelayMs: 10 } },
  }),
]);

/** Id of the workflow that has the agent as its only one. */
export function workflowOf(agentId: string): string {
  return agentId.slice(PACK.length + 1);
}

/** `ordersUrl`: base of the demo's shop. */
export function journeyParts(ordersUrl: string): Partial<BuiltIn> {
  const ids = Object.keys(SCRIPTS);
  return {
    definitions: [
      refundDesk,
      duet,
      hurried,
      ...ids.map((id) =>
        chain(
          workflowOf(id),
          [
            node('start', 'core.start'),
            agentNode('think', id, {
              inputs: { amount: { type: 'variable', variableName: 'amount' } },
            }),
          ],
          { variables: [{ name: 'amount', type: 'object' }] },
        ),
      ),
    ],
    agents: [...refundDeskAgents, ...ids.map(agentOf)],
    scripts: {
      ...Object.fromEntries(
        Object.entries(refundDeskScripts).map(([id, script]) => [id, quick(script)]),
      ),
      ...SCRIPTS,
    },
    tools: [...TOOLS, ...orderTools(ordersUrl)],
  };
}

export { REFUND_DESK };
