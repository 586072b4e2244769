// A human's word on a tool call outlives the end of a segment (architecture §4: what entered stands in the frame at
// once): the same call is never asked about twice, and a "no" is never forgotten.
import type { WorkflowHandle } from '@temporalio/client';
import { temporal } from '@temporalio/proto';
import { describe, expect, it } from 'vitest';
import type {
  CallToolInput,
  CallToolOutput,
  InferTurnInput,
  InferTurnOutput,
  PrepareInvocationOutput,
} from '../../activities/contract.ts';
import type { StepResult } from '../../src/rules/journal.ts';
import type { JsonObject } from '../../src/rules/json.ts';
import { approvalSchema } from '../../workflows/approvals.ts';
import { agentNode, definition, pinned, runInput } from '../support/definitions.ts';
import type { FinishedRun, ScriptedActivities } from '../support/run-workflow.ts';
import { answer, payloadsOf, runOnce, useWorkflowRunner } from './both-ways.ts';
import { takes } from '../support/waiting.ts';

useWorkflowRunner();

const { EVENT_TYPE_WORKFLOW_TASK_STARTED, EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED } =
  temporal.api.enums.v1.EventType;
const AGENT = 'local.test.pack.agent';
const PAY = 'demo:pay';
/** Turns of the node that fills the history. */
const BUSY_TURNS = 12;
const BUSY_EVENTS = 90;

interface Asked {
  readonly title: string;
  readonly actions: readonly string[];
  /** What the first call of the tool comes to. */
  readonly output: CallToolOutput;
}
const DOUBT: Asked = {
  title: 'an effect in doubt',
  actions: ['accept', 'reject', 'edit-accept'],
  output: { kind: 'in-doubt', effectId: 'eff-1', reason: 'The worker died.', epoch: 1 },
};
const SHOWN = [{ effectId: 'eff-1', epoch: 1, why: 'doubt' }] as const;
/** An earlier call may have happened: no answer says what came of this one. */
const NEW_CALL: Asked = {
  title: 'an earlier call in the way',
  actions: ['accept', 'reject'],
  output: { kind: 'in-doubt', effectId: 'eff-2', reason: 'It was not made.', shown: SHOWN },
};
/** Nothing can perform it any more: no answer says that it is performed. */
const REFUSED: Asked = {
  title: 'an effect in doubt of a call that is refused now',
  actions: ['reject', 'edit-accept'],
  output: {
    kind: 'in-doubt',
    effectId: 'eff-1',
    reason: 'The tool is gone.',
    refused: true,
    epoch: 1,
  },
};
const APPROVAL: Asked = {
  title: 'a call that needs a word',
  actions: ['accept', 'reject'],
  output: { kind: 'needs-approval', reason: 'The operator asks.' },
};

/** What the human's word makes of the call. */
type Word = Pick<CallToolInput, 'resolution' | 'approvedBy'>;
const CASES: readonly (readonly [Asked, JsonObject, Word])[] = [
  [DOUBT, { action: 'accept' }, { resolution: { kind: 'perform', epoch: 1 } }],
  [DOUBT, { action: 'reject' }, { resolution: { kind: 'skip' } }],
  [
    DOUBT,
    { action: 'edit-accept', editedArtifactData: { paid: 5 } },
    { resolution: { kind: 'happened', outcome: { paid: 5 } } },
  ],
  [NEW_CALL, { action: 'accept' }, { resolution: { kind: 'perform', shown: SHOWN } }],
  [
    NEW_CALL,
    { action: 'reject', feedback: 'It was paid by hand.' },
    { resolution: { kind: 'skip', reason: 'It was paid by hand.' } },
  ],
  [REFUSED, { action: 'reject' }, { resolution: { kind: 'skip' } }],
  [
    REFUSED,
    { action: 'edit-accept', editedArtifactData: { paid: 5 } },
    { resolution: { kind: 'happened', outcome: { paid: 5 } } },
  ],
  [APPROVAL, { action: 'accept' }, { approvedBy: 'human:tester' }],
  [
    APPROVAL,
    { action: 'reject', reason: 'Too much.' },
    { resolution: { kind: 'skip', reason: 'Too much.', isRefusal: true } },
  ],
];

interface Gates {
  /** The busy node's turns begin when it is over. */
  readonly busy?: Promise<void>;
  /** The slow node's one model call lasts until it is over. */
  readonly slow?: Promise<void>;
}

/** `pay` calls one tool and decides; `busy` fills the history; `slow` keeps an activity in flight. */
function scripted({ output }: Asked, { busy, slow }: Gates = {}) {
  const words: Word[] = [];
  const prepared: PrepareInvocationOutput = {
    ok: true,
    transcript: '',
    model: { provider: 'scripted', model: 'scripted' },
    prompts: [],
    composed: { refs: [], kind: 'system-only', hash: `sha256:${'0'.repeat(64)}` },
    tools: [{ toolId: PAY, idempotent: false, timeoutMs: 1000, transport: 'native' }],
  };
  const activities = {
    prepareInvocation: async () => ({ output: prepared, events: [] }),
    async inferTurn({ context, transcript }: InferTurnInput): Promise<StepResult<InferTurnOutput>> {
      const turn = transcript.length;
      if (context.nodeId === 'busy' && turn === 0) await busy;
      if (context.nodeId === 'slow') await slow;
      const calls = { pay: 1, busy: BUSY_TURNS, slow: 0 }[context.nodeId] ?? 0;
      const next = `${transcript}.`;
      return {
        output:
          turn < calls
            ? {
                kind: 'calls',
                transcript: next,
                calls: [{ toolId: PAY, arguments: { node: context.nodeId, turn } }],
              }
            : { kind: 'decision', transcript: next, decision: 'done', schemaValidated: false },
        events: [],
      };
    },
    async callTool({ context, call, resolution, approvedBy }: CallToolInput) {
      if (context.nodeId === 'pay') {
        if (!resolution && approvedBy === undefined) {
          words.push({});
          return { output, events: [] };
        }
        words.push({
          ...(resolution ? { resolution } : {}),
          ...(approvedBy ? { approvedBy } : {}),
        });
      }
      return {
        output: { kind: 'returned', status: 'ok', resultHash: `h:${call.callId}` },
        events: [],
      };
    },
  };
  return { activities: activities as unknown as ScriptedActivities, words };
}

function inputOf(nodeIds: readonly string[]) {
  const nodes = nodeIds.map((id) => agentNode(id, AGENT));
  return runInput(definition('answers', nodes), { agentList: [pinned(AGENT)] });
}

/** Asked once, resolved once, and the call performed once, as the word says. */
function expectHeard(run: FinishedRun, words: readonly Word[], word: Word): void {
  expect(payloadsOf(run, 'interrupt.requested')).toHaveLength(1);
  expect(payloadsOf(run, 'interrupt.resolved')).toHaveLength(1);
  expect(words).toEqual([{}, word]);
  expect(run.status).toBe('completed');
}

/** The history's length in the workflow task before the one that took the answer. */
function lengthBeforeAnswer({ segments: [events = []] }: FinishedRun): number {
  const taken = events.findIndex(
    ({ eventType }) => eventType === EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED,
  );
  const started = events
    .slice(0, taken)
    .filter(({ eventType }) => eventType === EVENT_TYPE_WORKFLOW_TASK_STARTED)
    .map(({ eventId }) => Number(eventId));
  return started.at(-2) ?? 0;
}

/** Runs until one ends its segment in the task that took the answer. */
const SEGMENT_TRIES = 5;

const named = CASES.map(([asked, value, word]) => ({
  name: `${asked.title}: ${value.action as string}`,
  asked,
  value,
  word,
}));

describe.each(named)('$name', ({ asked, value, word }) => {
  const schema = approvalSchema(asked.actions);
  const says = async (handle: WorkflowHandle) => void (await answer(handle, 'pay', value, schema));

  it('is kept when the segment ends in the task that took the answer (architecture §4)', async () => {
    const plain = await runOnce({
      input: inputOf(['pay']),
      activities: scripted(asked).activities,
      script: says,
    });
    // Where tasks fall is the server's: a run that had fewer of them says where its own were.
    let like = plain;
    for (let tries = 1; ; tries++) {
      const { activities, words } = scripted(asked);
      const forceContinueAsNewAfter = lengthBeforeAnswer(like) + 1;
      const run = await runOnce({
        input: { ...inputOf(['pay']), forceContinueAsNewAfter },
        activities,
        script: says,
      });
      expectHeard(run, words, word);
      if (run.segments.length > 1) break;
      expect(tries).toBeLessThan(SEGMENT_TRIES);
      like = run;
    }
  });

  it('is kept when it comes while the segment drains (architecture §4)', async () => {
    const busy = gate();
    const slow = gate();
    const { activities, words } = scripted(asked, { busy: busy.opened, slow: slow.opened });
    const run = await runOnce({
      input: { ...inputOf(['pay', 'busy', 'slow']), forceContinueAsNewAfter: BUSY_EVENTS },
      activities,
      script: async (handle) => {
        await reaches(() => Promise.resolve(words.length > 0));
        busy.open();
        await reaches(async () => (await handle.describe()).historyLength >= BUSY_EVENTS);
        await says(handle);
        slow.open();
      },
    });
    expect(run.segments.length).toBeGreaterThan(1);
    expectHeard(run, words, word);
  });
});

function gate(): { readonly opened: Promise<void>; open(): void } {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open };
}

/** Bounded: looks 200 times. */
async function reaches(isThere: () => Promise<boolean>): Promise<void> {
  for (let look = 0; look < 200 && !(await isThere()); look++) await takes(50);
}
