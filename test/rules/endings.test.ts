// What is open and how it is closed, in one table for workflow and translator (architecture §3.1).
import { describe, expect, test } from 'vitest';
import { closingsOf, cutOffItem, trackOpen, type OpenItem } from '../../src/rules/endings.ts';
import type { JsonObject } from '../../src/rules/json.ts';
import { validate } from '../../src/wire/validators.ts';

interface Event {
  readonly type: string;
  readonly key: string;
  readonly nodeId?: string;
  readonly payload: JsonObject;
}

const node = (nodeId: string): Event => ({
  ...{ type: 'node.started', key: `node.started|${nodeId}/1/0/node`, nodeId },
  payload: { nodeId, typeId: 'core.agent' },
});
const bracket = (nodeId: string): Event => ({
  ...{ type: 'agent.invocation.started', key: `agent.invocation.started|${nodeId}/1/0/i0`, nodeId },
  payload: { invocationId: `inv-${nodeId}`, agentId: 'core.demo', source: 'workflow-node' },
});
const call = (nodeId: string, n: number): Event => ({
  ...{ type: 'agent.toolCalled', key: `agent.toolCalled|${nodeId}/1/0/c${n}`, nodeId },
  payload: {
    agentId: 'core.demo',
    toolName: 'core:clock',
    callId: `call-${n}`,
    inputs: { secret: 'no' },
  },
});

const track = (events: readonly Event[]) => events.reduce<readonly OpenItem[]>(trackOpen, []);
const types = (open: readonly OpenItem[]) => open.map((item) => item.type);
const ENDING = { code: 'run_terminated', message: 'Ended.' };

describe('trackOpen', () => {
  test.each(['node.completed', 'node.failed', 'node.cancelled', 'node.retried'])(
    '%s closes its node alone',
    (type) => {
      const open = track([node('a'), node('b'), { type, key: 'k', payload: { nodeId: 'a' } }]);
      expect(open.map((item) => item.ids)).toEqual([{ nodeId: 'b' }]);
    },
  );

  test('a call is closed by its own return, a bracket by its own completion', () => {
    const open = track([
      ...[node('a'), bracket('a'), call('a', 1), call('a', 2)],
      { type: 'agent.toolReturned', key: 'k', payload: { callId: 'call-1' } },
    ]);
    expect(types(open)).toEqual(['node.started', 'agent.invocation.started', 'agent.toolCalled']);
    expect(
      types(
        track([
          bracket('a'),
          { type: 'agent.invocation.completed', key: 'k', payload: { invocationId: 'inv-a' } },
        ]),
      ),
    ).toEqual([]);
  });

  test('what closes nothing changes nothing', () => {
    const open = track([node('a')]);
    for (const type of ['node.suspended', 'agent.reasoned', 'toString']) {
      expect(trackOpen(open, { type, key: 'k', payload: { nodeId: 'a' } })).toBe(open);
    }
    expect(trackOpen(open, { type: 'node.completed', key: 'k', payload: { nodeId: 'z' } })).toBe(
      open,
    );
  });

  test('a second visit of a node is open again', () => {
    expect(
      types(
        track([
          node('a'),
          { type: 'node.completed', key: 'k', payload: { nodeId: 'a' } },
          node('a'),
        ]),
      ),
    ).toEqual(['node.started']);
  });

  test.each(['run.completed', 'run.failed', 'run.cancelled'])('%s leaves nothing open', (type) => {
    expect(track([node('a'), call('a', 1), { type, key: 'terminal', payload: {} }])).toEqual([]);
  });

  test('keeps the identifying fields only', () => {
    expect(track([call('a', 1)])[0]?.ids).toEqual({
      agentId: 'core.demo',
      toolName: 'core:clock',
      callId: 'call-1',
    });
  });
});

describe('a call with effects that is cut off is in doubt [I99]', () => {
  const pays: Event = {
    ...call('a', 1),
    payload: { ...call('a', 1).payload, sideEffects: true },
  };
  const asks: Event = {
    ...{ type: 'node.suspended', key: 'asked', nodeId: 'a' },
    payload: { nodeId: 'a', interruptId: 'int-1', callId: 'call-1' },
  };
  const answer = (action: string, interruptId = 'int-1'): Event => ({
    ...{ type: 'interrupt.resolved', key: `answered ${action}`, nodeId: 'a' },
    payload: { nodeId: 'a', interruptId, resumeValue: { action } },
  });
  const lapses: Event = {
    ...{ type: 'interrupt.resolved', key: 'lapsed', nodeId: 'a' },
    payload: { nodeId: 'a', interruptId: 'int-1', outcome: 'rejected', reason: 'timeout' },
  };
  const doubt = {
    code: 'effect_in_doubt',
    message: 'It is not known whether the effect happened. Ended.',
  };

  test.each<[string, readonly Event[], object]>([
    ['made', [pays], doubt],
    ['one without effects', [call('a', 1)], ENDING],
    ['asked about, and nobody has answered', [pays, asks], ENDING],
    ['asked about, and permitted', [pays, asks, answer('accept')], doubt],
    ['asked about, and refused', [pays, asks, answer('reject')], ENDING],
    ['asked about, and out of time', [pays, asks, lapses], ENDING],
    [
      'asked about, while another question was answered',
      [pays, asks, answer('accept', 'int-2')],
      ENDING,
    ],
    [
      'beside a question about another call',
      [pays, { ...asks, payload: { ...asks.payload, callId: 'call-2' } }],
      doubt,
    ],
  ])('%s', (_, events, error) => {
    const [closing] = closingsOf(track(events), ENDING);
    expect(closing?.payload).toEqual({
      ...{ agentId: 'core.demo', toolName: 'core:clock', callId: 'call-1' },
      ...{ status: 'error', error },
    });
    expect(validate.payload('agent.toolReturned', closing?.payload)).toMatchObject({ ok: true });
  });
});

describe('closingsOf', () => {
  const open = track([node('a'), bracket('a'), call('a', 1), node('b'), call('a', 2)]);

  // [I12]
  test('architecture §3.1 closes calls before brackets before nodes, within a kind in the order opened', () => {
    expect(closingsOf(open, ENDING).map((closing) => closing.key)).toEqual([
      'agent.toolReturned|a/1/0/c1',
      'agent.toolReturned|a/1/0/c2',
      'agent.invocation.completed|a/1/0/i0',
      'node.cancelled|a/1/0/node',
      'node.cancelled|b/1/0/node',
    ]);
  });

  test('RFC 0002 §B a return is caused by its call', () => {
    const causes = closingsOf(open, ENDING).map((closing) => closing.causedBy);
    expect(causes).toEqual([
      'agent.toolCalled|a/1/0/c1',
      'agent.toolCalled|a/1/0/c2',
      undefined,
      undefined,
      undefined,
    ]);
  });

  test('every closing is valid against its schema', () => {
    for (const closing of closingsOf(open, ENDING)) {
      expect({
        type: closing.type,
        ...validate.payload(closing.type, closing.payload),
      }).toMatchObject({ ok: true });
    }
  });

  test('of reasoning that was cut off: agent.reasoned with the text, before anything else', () => {
    const base = { agentId: 'core.demo', verbosity: 'full' };
    const cut = cutOffItem('n/1/0/i0', {
      ...{ type: 'agent.reasoning.delta', nodeId: 'n' },
      ...{ base, text: 'I think' },
    });
    const open = [...track([node('n'), bracket('n')]), ...(cut ? [cut] : [])];
    const [first] = closingsOf(open, ENDING);
    expect(first).toMatchObject({
      type: 'agent.reasoned',
      nodeId: 'n',
      payload: { ...base, reasoning: 'I think' },
    });
    expect(validate.payload('agent.reasoned', first?.payload ?? {})).toMatchObject({ ok: true });
  });

  test("of a tool's progress nothing is open: how the call ended says its return", () => {
    expect(cutOffItem('c', { type: 'output.chunk', base: {}, text: 'x' })).toBeUndefined();
  });

  test('may be limited to one node, and leaves nothing of it open', () => {
    const closings = closingsOf(open, ENDING, 'a');
    expect(new Set(closings.map((closing) => closing.nodeId))).toEqual(new Set(['a']));
    const after = closings.reduce<readonly OpenItem[]>(trackOpen, open);
    expect(after.map((item) => item.nodeId)).toEqual(['b']);
  });
});
