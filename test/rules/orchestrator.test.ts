// Orchestrators (RFC 0006): one form of decisions for models, humans and the wire.
import { expect, test } from 'vitest';
import { MAX_FAN_OUT } from '../../src/rules/children.ts';
import {
  decisionSchema,
  invokesAgent,
  isPlanned,
  wireDecisionSchema,
} from '../../src/rules/orchestrator.ts';
import { schemaDocument } from '../../src/wire/validators.ts';
import { compileUserSchema } from '../../src/wire/user-schema.ts';
import { node } from '../support/definitions.ts';

test('orchestrator-decision.schema.json: what a model is asked for is what the wire has', () => {
  const { $defs } = schemaDocument('run-event-payloads') as {
    $defs: Record<string, { anyOf?: unknown }>;
  };
  expect(wireDecisionSchema().anyOf).toEqual($defs.OrchestratorDecision?.anyOf);
  expect(decisionSchema().anyOf).toEqual(wireDecisionSchema().anyOf);
});

test('whom an orchestrator may name is held where it is said', () => {
  const accepts = (workerIds: string[] | undefined, ...named: string[]) => {
    const compiled = compileUserSchema(decisionSchema(workerIds));
    return compiled.ok && compiled.value.validate({ kind: 'next-worker', nextWorkerIds: named }).ok;
  };
  expect(accepts(undefined, 'anyone')).toBe(true);
  expect(accepts(['a', 'b'], 'b', 'a')).toBe(true);
  expect(accepts(['a', 'b'], 'a', 'c')).toBe(false);
  const many = Array.from({ length: MAX_FAN_OUT }, () => 'a');
  for (const workerIds of [['a'], undefined])
    expect([accepts(workerIds, ...many), accepts(workerIds, ...many, 'a')]).toEqual([true, false]);
});

test('a plan stands for an agent in definitions made for tests alone', () => {
  const supervisor = (more: object) => node('s', 'core.orchestrator.supervisor', more);
  const agent = { agentId: 'local.a.b' };
  const tested = { definition: { id: 'conformance-x' }, testHooks: true };
  const of = (more: object, id = 'conformance-x') =>
    isPlanned(supervisor(more), { ...tested, definition: { id } });
  expect(of({})).toBe(true);
  expect(of({ agent })).toBe(false);
  expect(of({ agent, config: { mockConfidence: 0.1 } })).toBe(true);
  expect(of({ config: { mockDecisions: [] } }, 'refunds')).toBe(false);
  expect(isPlanned(node('s', 'core.agent'), tested)).toBe(false);
  expect(isPlanned(supervisor({}), { ...tested, testHooks: false })).toBe(false);
});

test.each([
  ['core.agent', true],
  ['core.orchestrator.supervisor', true],
  ['core.identity', false],
])('a node of type %s invokes its agent: %s', (typeId, invokes) => {
  expect(invokesAgent({ typeId })).toBe(invokes);
});
