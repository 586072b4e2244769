// A wrong payload does not compile: whoever states an event is held to the schema of its type. What must not compile
// is marked so; the compiler refuses a mark that nothing stands behind.
import { expect, test } from 'vitest';
import type { EventType, PayloadOf } from '../../src/rules/events.ts';
import type { ActivityEvent } from '../../src/rules/journal.ts';
import type { emitFact } from '../../workflows/context.ts';
import type { emit } from '../../workflows/journal.ts';

const stated: string[] = [];
/** Only its type is the workflow's: this process is no sandbox. */
const state: typeof emit = (type) => void stated.push(type);
const stateFact: typeof emitFact = (_visit, type) => String(stated.push(type));
const visit = {} as Parameters<typeof emitFact>[0];

test('emit takes a payload of its type alone', () => {
  const key = 'k';
  state('node.skipped', { nodeId: 'n' }, { key });
  state('node.skipped', { nodeId: 'n', reason: 'edge-not-taken' }, { key });
  // @ts-expect-error without its node
  state('node.skipped', {}, { key });
  // @ts-expect-error a number is no reason
  state('node.skipped', { nodeId: 'n', reason: 7 }, { key });
  // @ts-expect-error a type that no schema names
  state('node.forgotten', { nodeId: 'n' }, { key });
  // @ts-expect-error a cap of no known kind
  state('cap.breached', { kind: 'patience', limit: 1, observed: 2 }, { key });
  // @ts-expect-error undefined is not JSON
  state('run.completed', { outputs: { a: undefined } }, { key });
  expect(stated.splice(0)).toHaveLength(7);
});

test('emitFact takes a payload of its type alone', () => {
  const step = 's';
  stateFact(visit, 'node.resumed', { step, payload: { nodeId: 'n', resumeValue: [1, { a: 2 }] } });
  // @ts-expect-error the payload of another type
  stateFact(visit, 'node.resumed', { step, payload: { name: 'x', next: 1 } });
  // @ts-expect-error an outcome that RFC 0077 does not know
  stateFact(visit, 'agent.invocation.completed', { step, payload: { ...BRACKET, outcome: 'ok' } });
  expect(stated.splice(0)).toHaveLength(3);
});

const BRACKET = { invocationId: 'i', agentId: 'a.b' };

test("an activity's event has the payload of its type", () => {
  const right: ActivityEvent = {
    type: 'agent.toolReturned',
    payload: { agentId: 'a.b', toolName: 't', callId: 'c', status: 'ok', outcome: [1] },
  };
  // @ts-expect-error a status that the schema does not know
  const wrong: ActivityEvent = {
    type: 'agent.toolReturned',
    payload: { agentId: 'a.b', toolName: 't', callId: 'c', status: 'fine' },
  };
  expect([right, wrong].map(({ type }) => type)).toHaveLength(2);
});

test('what a schema leaves open is JSON', () => {
  const outputs: PayloadOf<'node.completed'>['outputs'] = { a: [null, 1, { b: 'c' }] };
  // @ts-expect-error a date is not JSON
  const later: PayloadOf<'node.completed'>['outputs'] = { at: new Date(0) };
  const types: EventType[] = ['node.completed'];
  expect([outputs, later, types]).toHaveLength(3);
});
