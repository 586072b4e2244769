// The rules that generated runs are held to (test/support/model/legality.ts): each refuses what breaks it.
import { expect, test } from 'vitest';
import type { JsonObject } from '../../src/rules/json.ts';
import { openLegality, type LegalEntry } from '../support/model/legality.ts';

/** `type`, or `type node`; the key is the type with its node unless it is given. */
function entry(said: string, payload: JsonObject = {}, more: Partial<LegalEntry> = {}): LegalEntry {
  const [type = '', nodeId] = said.split(' ');
  return { key: said, type, ...(nodeId ? { nodeId } : {}), payload, ...more };
}

const STARTED = entry('run.started');
const NODE = entry('node.started a', { attempt: 0 });
const BRACKET = entry('agent.invocation.started a', { invocationId: 'i', agentId: 'x' });
const CALLED = entry('agent.toolCalled a', { agentId: 'x', callId: 'c' });
const RETURNED = entry(
  'agent.toolReturned a',
  { agentId: 'x', callId: 'c' },
  { causedBy: CALLED.key },
);
const DECIDED = entry('agent.decided a', { agentId: 'x' });
const CLOSED = entry('agent.invocation.completed a', {
  invocationId: 'i',
  agentId: 'x',
  outcome: 'completed',
});
const HANDED = entry('agent.handoff a', { fromAgentId: 'x', toAgentId: 'y' });
const PASSED = 'who hands over closes its bracket as handed off, and nobody else does';
const ASKED = entry('node.suspended a', { interruptId: 'q' });
const ANSWERED = entry('interrupt.resolved a', { interruptId: 'q', resolvedBy: 'h' });
const RESUMED = entry('node.resumed a', { interruptId: 'q' });
const COMPLETED = entry('node.completed a');
const PAUSED = entry('run.paused');
const END = entry('run.completed', {}, { key: 'terminal' });

const again = (of: LegalEntry): LegalEntry => ({ ...of, key: `${of.key} again` });

function take(entries: readonly LegalEntry[]): () => void {
  return () => {
    const legality = openLegality();
    for (const each of entries) legality.take(each);
  };
}

test('a whole story is legal, and closed by its end', () => {
  const legality = openLegality();
  const story = [
    STARTED,
    NODE,
    BRACKET,
    CALLED,
    RETURNED,
    ASKED,
    ANSWERED,
    RESUMED,
    DECIDED,
    CLOSED,
    COMPLETED,
    END,
  ];
  for (const each of story) {
    expect(legality.isClosed()).toBe(false);
    legality.take(each);
  }
  expect(legality.isClosed()).toBe(true);
});

const ILLEGAL: readonly [string, readonly LegalEntry[]][] = [
  ['nothing follows the end', [STARTED, END, entry('run.paused')]],
  ['a key names one fact', [STARTED, PAUSED, { ...entry('run.resumed'), key: PAUSED.key }]],
  ['run.started is first, and once', [NODE]],
  ['run.started is first, and once', [STARTED, again(STARTED)]],
  ['a cause stands before its effect', [STARTED, { ...NODE, causedBy: 'later' }]],
  ['nothing begins in a paused run', [STARTED, PAUSED, NODE]],
  ['it is paused', [STARTED, PAUSED, again(PAUSED)]],
  ['it is not paused', [STARTED, entry('run.resumed')]],
  ['attempt 0 of it is under way', [STARTED, NODE, again(NODE)]],
  ['attempt 1 comes next', [STARTED, NODE, COMPLETED, { ...again(NODE), payload: { attempt: 2 } }]],
  ['no attempt of it is under way', [STARTED, COMPLETED]],
  ['the next attempt is the next number', [STARTED, NODE, entry('node.retried a', { attempt: 2 })]],
  ['it runs', [STARTED, NODE, entry('node.skipped a')]],
  ['its node does not run', [STARTED, BRACKET]],
  ['the bracket before it is open', [STARTED, NODE, BRACKET, again(BRACKET)]],
  ['the bracket of its agent is not open', [STARTED, NODE, DECIDED]],
  [
    'it is of another agent than its bracket',
    [STARTED, NODE, BRACKET, { ...DECIDED, payload: { agentId: 'y' } }],
  ],
  ['its agent has decided', [STARTED, NODE, BRACKET, DECIDED, CALLED]],
  ['a call before it has not returned', [STARTED, NODE, BRACKET, CALLED, DECIDED]],
  ['its callId was used', [STARTED, NODE, BRACKET, CALLED, RETURNED, again(CALLED)]],
  ['it was not called', [STARTED, NODE, BRACKET, { ...RETURNED, causedBy: undefined }]],
  ['it has returned', [STARTED, NODE, BRACKET, CALLED, RETURNED, again(RETURNED)]],
  ['its call is its cause', [STARTED, NODE, BRACKET, CALLED, { ...RETURNED, causedBy: NODE.key }]],
  ['it closes no open bracket', [STARTED, NODE, CLOSED]],
  ['a call in it has not returned', [STARTED, NODE, BRACKET, CALLED, CLOSED]],
  ['nothing was decided', [STARTED, NODE, BRACKET, CLOSED]],
  ['nothing was decided', [STARTED, NODE, BRACKET, HANDED]],
  ['its node does not run', [STARTED, HANDED]],
  ['it has handed over', [STARTED, NODE, BRACKET, DECIDED, HANDED, again(HANDED)]],
  [PASSED, [STARTED, NODE, BRACKET, DECIDED, HANDED, CLOSED]],
  [
    PASSED,
    [
      STARTED,
      NODE,
      BRACKET,
      DECIDED,
      { ...CLOSED, payload: { ...CLOSED.payload, outcome: 'handed-off' } },
    ],
  ],
  ['a call of it has not returned', [STARTED, NODE, BRACKET, CALLED, COMPLETED]],
  ['a bracket of it is open', [STARTED, NODE, BRACKET, COMPLETED]],
  ['a question of it is open', [STARTED, NODE, ASKED, COMPLETED]],
  ['it was asked before', [STARTED, NODE, ASKED, ANSWERED, again(ASKED)]],
  ['its node does not run', [STARTED, ASKED]],
  ['it was never asked', [STARTED, ANSWERED]],
  ['it is closed', [STARTED, NODE, ASKED, ANSWERED, again(ANSWERED)]],
  ['nobody answered', [STARTED, NODE, ASKED, RESUMED]],
  ['it is resumed already', [STARTED, NODE, ASKED, ANSWERED, RESUMED, again(RESUMED)]],
  ['the end has its key', [STARTED, entry('run.completed')]],
  ['a runs', [STARTED, NODE, END]],
];

test.each(ILLEGAL)('“%s” is a rule', (rule, entries) => {
  expect(take(entries.slice(0, -1))).not.toThrow();
  expect(take(entries)).toThrow(`may not stand here: ${rule}`);
});
