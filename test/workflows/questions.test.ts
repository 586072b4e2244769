// A question to a human says what each answer does, and the answer does it (architecture §5): title, description, page
// and terminal of a question about a tool call, against the real ledger.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CallToolInput, InferTurnInput } from '../../activities/contract.ts';
import { EVENT_STORIES } from '../../src/rules/events.ts';
import { choiceOf, choicesOf } from '../../src/words/choices.ts';
import { headOf } from '../../src/words/question.ts';
import { questionLines } from '../../src/app/question-lines.ts';
import type { JsonObject } from '../../src/rules/json.ts';
import { renderRunPage } from '../../src/pages/index.ts';
import type { Stores } from '../../src/ports/stores.ts';
import type { Tool } from '../../src/ports/tools.ts';
import { approvalSchema } from '../../workflows/approvals.ts';
import {
  newCallQuestion,
  REFUSED_DOUBT_ACTIONS,
  refusedDoubtQuestion,
  rehearsedQuestion,
} from '../../workflows/questions.ts';
import { createRig, type Rig } from '../activities/rig.ts';
import { agentNode, definition, pinned, runInput } from '../support/definitions.ts';
import { openAnyStores } from '../support/log-parts.ts';
import type { ScriptedActivities } from '../support/run-workflow.ts';
import { answer, payloadsOf, runOnce, useWorkflowRunner } from './both-ways.ts';

useWorkflowRunner();

const AGENT = 'local.test.desk.agent';
const PAY = 'demo:pay';
let stores: Stores;
beforeAll(async () => {
  stores = await openAnyStores();
});
afterAll(() => stores.close());

/** Pays; the first answer is lost on its way. */
function payment(): { tool: Tool; times: () => number } {
  let times = 0;
  const tool: Tool = {
    toolId: PAY,
    description: 'Pays.',
    inputSchema: { type: 'object' },
    idempotent: false,
    timeoutMs: 5_000,
    transport: 'native',
    safetyTier: 'write',
    call: async () => {
      if (++times === 1) throw new Error('connection reset');
      return { paid: times };
    },
  };
  return { tool, times: () => times };
}

/** One call of the tool, then a decision; what the model is told of the call is kept. */
function activitiesOf(rig: Rig, tool: Tool) {
  const told: string[] = [];
  const { toolId, idempotent, timeoutMs, transport } = tool;
  const prepared = {
    ok: true,
    transcript: '',
    model: { provider: 'scripted', model: 'scripted' },
    prompts: [],
    composed: { refs: [], kind: 'system-only', hash: `sha256:${'0'.repeat(64)}` },
    tools: [{ toolId, idempotent, timeoutMs, transport }],
  };
  const activities = {
    prepareInvocation: async () => ({ output: prepared, events: [] }),
    inferTurn: async ({ transcript, results }: InferTurnInput) => {
      told.push(...results.map(({ resultHash }) => resultHash));
      const output = transcript
        ? { kind: 'decision', transcript, decision: 'done', schemaValidated: false }
        : { kind: 'calls', transcript: '.', calls: [{ toolId, arguments: { amount: 5 } }] };
      return { output, events: [] };
    },
    callTool: (input: CallToolInput) => rig.activities.callTool(input),
  };
  return { activities: activities as unknown as ScriptedActivities, told };
}

/** Answers the question about the effect; returns what was asked and what came of it. */
async function afterDoubt(value: JsonObject) {
  const { tool, times } = payment();
  const rig = await createRig(stores, { tools: [tool] });
  const { activities, told } = activitiesOf(rig, tool);
  const input = runInput(definition('doubt', [agentNode('pay', AGENT)]), {
    agentList: [pinned(AGENT)],
    runId: rig.runId,
  });
  const schema = approvalSchema(['accept', 'reject', 'edit-accept']);
  const run = await runOnce({
    input,
    activities,
    script: async (handle) => void (await answer(handle, 'pay', value, schema)),
  });
  const [asked] = payloadsOf(run, 'interrupt.requested');
  const bytes = await stores.content.get('default', told[0] ?? '');
  return {
    data: asked?.data as JsonObject,
    times: times(),
    told: JSON.parse(new TextDecoder().decode(bytes)) as unknown,
  };
}

describe('an effect in doubt: what the words promise is what happens (architecture §5)', () => {
  it.each<[string, JsonObject, RegExp, number, unknown]>([
    ['accept', {}, /^Perform it now/, 2, { paid: 2 }],
    [
      'reject',
      {},
      /^Do not perform it, and tell the agent/,
      1,
      { error: { code: 'effect_skipped' } },
    ],
    [
      'edit-accept',
      { editedArtifactData: { paid: 1 } },
      /^It happened: record this outcome/,
      1,
      { paid: 1 },
    ],
  ])('%s', async (action, more, promise, times, told) => {
    const result = await afterDoubt({ action, ...more });
    const { title, description } = result.data;
    const words = choiceOf({ kind: 'approval', data: result.data }, action)?.label;
    expect(title).toBe(`Perform ${PAY} again?`);
    expect(words).toMatch(promise);
    expect(description).toContain(`${action}: ${words}.`);
    expect(result.times).toBe(times);
    expect(result.told).toMatchObject(told as object);
  });

  it('page and terminal say the same words as the API', async () => {
    const { data } = await afterDoubt({ action: 'reject' });
    const asked = {
      nodeId: 'pay',
      interruptId: 'int-1',
      kind: 'approval',
      data,
      requestedAtMs: 0,
    } as const;
    const page = renderRunPage({
      snapshot: { runId: 'r', workflowId: 'w', status: 'waiting-approval' },
      events: [],
      stories: EVENT_STORIES,
      interrupts: [asked],
      csrfToken: 'c',
      eventsUrl: '/e',
      answerUrlOf: () => '/a',
      stale: false,
      nowMs: 0,
    });
    const terminal = questionLines(asked, { url: 'u', apiKey: 'k', runId: 'r' }).join('\n');
    const labels = choicesOf(asked).map(({ label }) => label);
    expect(labels).toHaveLength(3);
    // The answers that the description spells are shown by their own words.
    const { title, lead } = headOf({ kind: 'approval', data }, 'pay');
    expect(data.description).toContain(lead);
    for (const words of [title, lead, ...labels]) {
      expect(page).toContain(words);
      expect(terminal).toContain(words);
    }
  });
});

describe('a call that an earlier one stands in the way of', () => {
  it('is asked about as the call that it is, and nobody is asked for an outcome of it', () => {
    const { title, description, actions } = newCallQuestion(PAY, 'This call was not made.');
    expect(title).toBe(`Perform ${PAY}?`);
    expect(actions).toEqual(['accept', 'reject']);
    expect(description).toBe(
      'This call was not made. accept: Perform this call, whatever the earlier one did. ' +
        'reject: Do not perform this call, and tell the agent so.',
    );
  });
});

describe('a call that is not performed: what is asked is what the answer is checked against', () => {
  it.each([
    ['any more', refusedDoubtQuestion, 'It happened: record this outcome and perform nothing'],
    ['in a rehearsal', rehearsedQuestion, 'Go on as if this had come of it'],
  ])('%s', (_, question, label) => {
    const { actions, choices } = question(PAY, 'Why.');
    expect(actions).toEqual(REFUSED_DOUBT_ACTIONS);
    expect(choices).toMatchObject([{ action: 'reject' }, { action: 'edit-accept', label }]);
  });
});
