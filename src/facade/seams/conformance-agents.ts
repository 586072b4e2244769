// Agents of the test seams, with the scripts that play them: one that calls a tool and decides, two that hand over a
// structured result (one of them never a valid one), and one that reaches for whatever tool its task names.
import type { ResolvedAgent } from '../../ports/catalog.ts';
import type { JsonObject } from '../../rules/json.ts';

/** What scenarios call the schema below (host-sample-test-seams.md). */
export const STRICT_HANDOFF = 'conformance-strict-handoff';

const PACK = { packName: 'core.conformance', packVersion: '1.0.0' };
const PROMPT = 'You are asked by a test of the host. Decide on the verdict.';
const VERDICT: JsonObject = {
  type: 'object',
  properties: { verdict: { enum: ['yes', 'no'] } },
  required: ['verdict'],
  additionalProperties: false,
};
const YES = { final: { decision: { verdict: 'yes' }, confidence: 1 } };

interface Played {
  readonly agentId: string;
  readonly turns: readonly object[];
  readonly tools?: readonly string[];
  readonly isStrict?: true;
}

const LIVE: Played = {
  agentId: 'core.conformance.live',
  tools: ['core:json.query'],
  turns: [
    {
      reasoning: 'The document has the verdict.',
      calls: [{ toolId: 'core:json.query', arguments: { document: { a: 1 }, pointer: '/a' } }],
    },
    YES,
  ],
};
const STRICT: Played = { agentId: 'core.conformance.strict', isStrict: true, turns: [YES] };
const INVALID: Played = {
  agentId: 'core.conformance.invalid',
  isStrict: true,
  turns: [{ final: { decision: { verdict: 'perhaps' }, confidence: 1 } }],
};
const REACHING: Played = {
  agentId: 'core.conformance.reaching',
  turns: [{ calls: [{ toolId: '{{task.attemptTool}}', arguments: {} }] }, YES],
};

/** By what is asked of them. */
export const CONFORMANCE_AGENTS = {
  live: LIVE.agentId,
  strict: STRICT.agentId,
  invalid: INVALID.agentId,
  reaching: REACHING.agentId,
} as const;

const ALL = [LIVE, STRICT, INVALID, REACHING];

export const conformanceAgents: readonly ResolvedAgent[] = ALL.map(
  ({ agentId, tools = [], isStrict }) => ({
    ...PACK,
    manifest: {
      ...{ agentId, persona: 'Conformance', modelClass: 'general', systemPrompt: PROMPT },
      toolAllowlist: [...tools],
      ...(isStrict ? { handoff: { returnSchemaRef: `${STRICT_HANDOFF}.json` } } : {}),
    },
    systemPrompt: PROMPT,
    ...(isStrict ? { returnSchema: VERDICT } : {}),
  }),
);

export const conformanceScripts: Readonly<Record<string, unknown>> = Object.fromEntries(
  ALL.map(({ agentId, turns }) => [agentId, { turns }]),
);
