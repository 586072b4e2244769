// Conversations that a node holds with people (RFC 0005; interrupt.md): only a close resumes, and silence decides
// nothing.
import { describe, expect, it } from 'vitest';
import type { WorkflowHandle } from '@temporalio/client';
import type { JsonObject, JsonValue } from '../../src/rules/json.ts';
import { conversationSchema } from '../../src/rules/answer-schemas.ts';
import { compileUserSchema } from '../../src/wire/user-schema.ts';
import { chain, node, runInput } from '../support/definitions.ts';
import {
  answer,
  factsOf,
  payloadsOf,
  runBothWays,
  typesOf,
  useWorkflowRunner,
} from './both-ways.ts';
import type { FinishedRun } from '../support/run-workflow.ts';

useWorkflowRunner();

const gate = (config: JsonObject = {}) =>
  node('desk', 'core.conversationGate', { config: { prompt: 'How may I help?', ...config } });
const end = node('end', 'core.end', {
  inputs: {
    outcome: { type: 'connection', nodeId: 'desk', outputKey: 'outcome' },
    turnCount: { type: 'connection', nodeId: 'desk', outputKey: 'turnCount' },
  },
});

const turn = (content: JsonValue, more: JsonObject = {}): JsonObject => ({
  operation: 'exchange',
  turn: { content, ...more },
});

/** The code that a value was refused with, or the status that it was taken with. */
async function say(
  handle: WorkflowHandle,
  value: JsonValue,
  config: JsonObject = {},
): Promise<string> {
  try {
    const { status } = (await answer(handle, 'desk', value, conversationSchema(config))) as {
      status: string;
    };
    return status;
  } catch (error) {
    return (error as { cause?: { type?: string } }).cause?.type ?? 'unknown';
  }
}

async function talked(
  values: readonly JsonValue[],
  config: JsonObject = {},
  more: { plainOnly?: boolean } = {},
): Promise<{ run: FinishedRun; heard: readonly string[] }> {
  let heard: string[] = [];
  const run = await runBothWays({
    ...more,
    input: runInput(chain('talk', [gate(config), end])),
    script: async (handle) => {
      heard = [];
      for (const value of values) heard.push(await say(handle, value, config));
    },
  });
  return { run, heard };
}

const talk = (run: FinishedRun) =>
  factsOf(run).filter(({ type }) => type.startsWith('conversation.'));

describe('core.conversationGate (RFC 0005)', () => {
  it('an exchange keeps the node suspended, a close resumes it with its outcome', async () => {
    const close = { operation: 'close', outcome: { refund: true } };
    const { run, heard } = await talked([turn('Hello'), turn('My parcel is lost.'), close]);
    expect(heard).toEqual(['open', 'open', 'resolved']);
    expect(typesOf(run)).toEqual([
      'run.started',
      'node.started desk',
      'node.suspended desk',
      'interrupt.requested desk',
      'conversation.opened desk',
      'conversation.exchanged desk',
      'conversation.exchanged desk',
      'conversation.closed desk',
      'interrupt.resolved desk',
      'node.resumed desk',
      'node.completed desk',
      'node.started end',
      'node.completed end',
      'run.completed',
    ]);
    expect(payloadsOf(run, 'run.completed')[0]?.outputs).toEqual({
      outcome: { refund: true },
      turnCount: 4,
    });
    expect(payloadsOf(run, 'node.suspended')[0]).toMatchObject({
      kind: 'conversation.exchange',
      reason: 'conversation-input',
    });
  });

  it('one conversationId, rising turns, each caused by the one before, the first by the suspension', async () => {
    const { run } = await talked([turn('a'), turn('b'), { operation: 'close' }]);
    const facts = talk(run);
    const suspended = factsOf(run).find(({ type }) => type === 'node.suspended');
    expect(new Set(facts.map(({ payload }) => payload.conversationId)).size).toBe(1);
    expect(facts.map(({ payload }) => payload.turnIndex)).toEqual([undefined, 1, 2, 3]);
    expect(facts.map(({ causedBy }) => causedBy)).toEqual([
      suspended?.key,
      ...facts.slice(0, -1).map(({ key }) => key),
    ]);
    const [opened, first] = facts;
    const conversationId = opened?.payload.conversationId as string;
    expect(opened?.payload.initialTurn).toMatchObject({
      ...{ role: 'system', turnIndex: 0, content: 'How may I help?' },
      messageId: `${conversationId}:0:system`,
    });
    expect(first?.payload.turn).toMatchObject({
      ...{ role: 'user', from: 'user', speakerId: 'tester', content: 'a', turnIndex: 1 },
      messageId: `${conversationId}:1:user`,
    });
  });

  it('RFC 0002 §G: a turn under a messageId that was used is none', async () => {
    const { run, heard } = await talked([
      turn('first', { messageId: 'm' }),
      turn('second', { messageId: 'm' }),
      { operation: 'close' },
    ]);
    expect(heard).toEqual(['open', 'open', 'resolved']);
    expect(payloadsOf(run, 'conversation.exchanged').map((each) => each.turn)).toMatchObject([
      { content: 'first', messageId: 'm' },
    ]);
  });

  it('an agent that opens it is named', async () => {
    const { run } = await talked(
      [{ operation: 'close' }],
      { agentId: 'core.desk' },
      { plainOnly: true },
    );
    expect(talk(run)[0]?.payload).toMatchObject({
      agentId: 'core.desk',
      initialTurn: { role: 'agent', from: 'core.desk', speakerId: 'core.desk' },
    });
  });

  it('a plain outcome closes where an outcome has a schema', async () => {
    const { run, heard } = await talked(
      ['yes'],
      { outcomeSchema: { enum: ['yes', 'no'] } },
      { plainOnly: true },
    );
    expect(heard).toEqual(['resolved']);
    expect(payloadsOf(run, 'conversation.closed')[0]).toMatchObject({ outcome: 'yes' });
  });

  it('after as many turns as permitted it can only be closed', async () => {
    const { run, heard } = await talked([turn('a'), turn('b'), turn('c'), { operation: 'close' }], {
      maxTurns: 2,
    });
    expect(heard).toEqual(['open', 'open', 'conversation_limit_exceeded', 'resolved']);
    expect(run.status).toBe('completed');
  });

  it('all turns together have a size', async () => {
    const long = Array.from({ length: 9 }, (_, index) => turn('x'.repeat(30_000 + index)));
    const { heard } = await talked([...long, { operation: 'close' }], {}, { plainOnly: true });
    expect(heard.slice(-3)).toEqual(['open', 'conversation_limit_exceeded', 'resolved']);
  });

  it('nobody closes it in time: closed without an outcome, by nobody, and the node fails', async () => {
    const { run } = await talked([turn('Hello?')], { timeoutMs: 1_500 });
    const closed = payloadsOf(run, 'conversation.closed');
    expect(closed).toMatchObject([
      { outcome: null, turnIndex: 2, finalTurn: { role: 'system', from: 'system' } },
    ]);
    expect(payloadsOf(run, 'node.failed')[0]).toMatchObject({
      error: { code: 'interrupt_timeout' },
    });
    expect(talk(run).at(-1)?.type).toBe('conversation.closed');
  });

  it('a node that is left before closes it as well', async () => {
    const desk = { ...gate(), settings: { timeoutMs: 1_500 } };
    const run = await runBothWays({ input: runInput(chain('left', [desk])) });
    expect(payloadsOf(run, 'conversation.closed')).toMatchObject([{ outcome: null }]);
    expect(payloadsOf(run, 'node.failed')[0]).toMatchObject({ error: { code: 'node_timeout' } });
  });
});

describe('what an answer may be', () => {
  const outcomeSchema = { type: 'string', enum: ['yes', 'no'] };
  it.each<[string, JsonObject, JsonValue, boolean]>([
    ['a turn', {}, turn('x'), true],
    ['a turn without content', {}, { operation: 'exchange', turn: {} }, false],
    ['an exchange without a turn', {}, { operation: 'exchange' }, false],
    ['a turn against its schema', { turnSchema: { type: 'string' } }, turn(5), false],
    ['a turn in an agent’s name', {}, turn('x', { role: 'agent', from: 'core.boss' }), false],
    ['a messageId of 10 kB', {}, turn('x', { messageId: 'm'.repeat(10_240) }), false],
    ['a close', {}, { operation: 'close' }, true],
    [
      'a close without the outcome that has a schema',
      { outcomeSchema },
      { operation: 'close' },
      false,
    ],
    [
      'an outcome against its schema',
      { outcomeSchema },
      { operation: 'close', outcome: 'maybe' },
      false,
    ],
    ['an outcome by its schema', { outcomeSchema }, { operation: 'close', outcome: 'no' }, true],
    ['a plain outcome by its schema', { outcomeSchema }, 'no', true],
    ['a plain outcome against it', { outcomeSchema }, 'maybe', false],
    ['a plain value where no outcome has a schema', {}, 'yes', false],
    ['another operation', {}, { operation: 'start' }, false],
    ['nothing', {}, null, false],
    ['another operation as a plain outcome', { outcomeSchema: {} }, { operation: 'start' }, false],
  ])('%s', (_, config, value, valid) => {
    const compiled = compileUserSchema(conversationSchema(config));
    expect(compiled.ok && compiled.value.validate(value).ok).toBe(valid);
  });
});

describe('conformance/fixtures.md mockAutoResume', () => {
  const config = { lifecycle: 'open-exchange-close', mockAutoResume: true, turnCount: 3 };
  it('the conversation goes through all by itself, in test mode', async () => {
    const input = runInput(chain('conformance-conversation-lifecycle', [gate(config), end]), {
      testHooks: true,
    });
    const run = await runBothWays({ input });
    expect(talk(run).map(({ type }) => type)).toEqual([
      'conversation.opened',
      ...['conversation.exchanged', 'conversation.exchanged', 'conversation.exchanged'],
      'conversation.closed',
    ]);
    expect(payloadsOf(run, 'run.completed')[0]?.outputs).toMatchObject({ turnCount: 5 });
  });

  it('outside test mode it waits for people', async () => {
    const { run } = await talked([{ operation: 'close', outcome: 'by a person' }], config);
    expect(payloadsOf(run, 'conversation.exchanged')).toEqual([]);
    expect(payloadsOf(run, 'interrupt.resolved')).toMatchObject([
      { resolvedBy: { subjectId: 'tester' } },
    ]);
  });
});
