// core.conversationGate: people talk at this node until one of them closes the conversation (RFC 0005; interrupt.md
// §Conversations; status waiting-approval).
import { conversationSchema, type TalkSchemas } from '../../src/rules/answer-schemas.ts';
import { subjectOf } from '../../src/rules/subject.ts';
import type { NodeKind, Visit } from '../context.ts';
import { tupleOf } from '../context.ts';
import { payloadId } from '../../src/rules/ids.ts';
import type { JsonObject, JsonValue } from '../../src/rules/json.ts';
import { MAX_CONVERSATION_TURNS } from '../../src/rules/limits.ts';
import { openConversation, outcomeOf } from '../conversation.ts';
import type { Interrupt } from '../frames.ts';
import { interrupt, resolve } from '../interrupts.ts';
import { stepKey } from '../steps.ts';

interface Config extends TalkSchemas {
  readonly title?: string;
  readonly prompt?: string;
  readonly agentId?: string;
  readonly maxTurns?: number;
  readonly timeoutMs?: number;
  /** Test mode only, as `turnCount`. */
  readonly mockAutoResume?: boolean;
  readonly turnCount?: number;
}

const STEP = 'talk';
const PROMPT = 'The conversation is open.';
/** Who speaks where a test definition has the host answer itself. */
const MOCK_SPEAKER = 'host:mock-user';

export const conversationGate: NodeKind = async (visit) => {
  const config = visit.node.config as Config;
  const { prompt = PROMPT, title, agentId, timeoutMs, outcomeSchema } = config;
  const conversationId = payloadId('conv', visit.run.input.idSeed, tupleOf(visit, STEP));
  const { value, turnCount } = await interrupt(visit, {
    step: STEP,
    kind: 'conversation.exchange',
    data: {
      conversationId,
      prompt,
      turnIndex: 1,
      ...(title === undefined ? {} : { title }),
      ...(agentId === undefined ? {} : { agentId }),
      ...(outcomeSchema === undefined ? {} : { outcomeSchema }),
    },
    resumeSchema: conversationSchema(config),
    timeoutMs,
    suspended: { reason: 'conversation-input' },
    onRaised: (open) => begin(visit, open, { ...config, conversationId, prompt }),
  });
  const outputs: JsonObject = { conversationId, outcome: outcomeOf(value) };
  return {
    kind: 'completed',
    outputs: turnCount === undefined ? outputs : { ...outputs, turnCount },
  };
};

function begin(
  visit: Visit,
  open: Interrupt,
  config: Config & { readonly conversationId: string; readonly prompt: string },
): void {
  const { run } = visit;
  const { maxTurns = MAX_CONVERSATION_TURNS } = config;
  const atMs = run.steps.now(stepKey(visit, `${STEP}.opened`));
  openConversation(visit, open, { ...config, maxTurns, atMs });
  if (run.input.testHooks && config.mockAutoResume)
    talkAlone(open, config, { atMs, tenant: run.input.tenant });
}

/** Test mode only (conformance/fixtures.md): as many turns as asked for, and a close, nobody being asked. */
function talkAlone(
  open: Interrupt,
  { turnCount = 1 }: Config,
  { atMs, tenant }: { readonly atMs: number; readonly tenant: string },
): void {
  const resolvedBy = subjectOf('session', tenant, MOCK_SPEAKER);
  const say = (value: JsonValue) => resolve(open, { value, resolvedBy, atMs });
  for (let turn = 1; turn <= turnCount; turn++)
    say({ operation: 'exchange', turn: { content: `Turn ${turn}.` } });
  say({ operation: 'close', outcome: null });
}
