// Why two runs went apart (RFC 0054): by the first difference of their logs, and by what they were made of.
import { describe, expect, it } from 'vitest';
import {
  causeOf,
  forkBetween,
  pinnedDifferences,
  pinnedOf,
  type DivergenceCause,
  type Pinned,
  type PinnedFact,
} from '../../src/rules/divergence.ts';
import { EVENT_TYPES, type EventPart } from '../../src/rules/events.ts';
import type { RunInput } from '../../src/rules/run-input.ts';
import { runRow } from '../support/log-parts.ts';

const { input } = runRow('run-a');
const changed = (more: Partial<RunInput>): RunInput => ({ ...input, ...more });
const facts = (other: RunInput, inputs = {}) =>
  pinnedDifferences(pinnedOf(input, {}), pinnedOf(other, inputs), 10).map(({ fact }) => fact);

describe('RFC 0054: what a run is fixed to', () => {
  const definition = { ...input.definition, version: '2' };
  const agent = {
    agentId: 'a',
    manifestHash: 'h',
    modelClass: 'general',
    toolAllowlist: [],
  } as const;
  const cases: readonly [PinnedFact, RunInput, object?][] = [
    ['definition', changed({ definition })],
    ['inputs', input, { amount: 6 }],
    ['inputs', changed({ message: { content: 'hello' } })],
    ['options', changed({ configurable: { model: 'm' } })],
    ['options', changed({ tags: ['t'] })],
    ['options', changed({ policy: { escalation: false, verbosity: 'summary' } })],
    ['agents', changed({ agents: { a: agent } })],
    ['code', changed({ revision: 2 })],
  ];
  it.each(cases)('%s', (fact, other, inputs = {}) => {
    expect(facts(other, inputs)).toEqual([fact]);
  });

  it('who a run is makes no difference', () => {
    expect(facts(changed({ runId: 'run-b', idSeed: 'run-b', tenant: 't' }))).toEqual([]);
  });

  it('what may not be shown is not told, though it is another', () => {
    const secret = changed({ variables: { ...input.variables, secret: 'another' } });
    expect(facts(secret)).toEqual([]);
  });
});

const typeOf = (part: EventPart): string =>
  Object.entries(EVENT_TYPES).find(([, row]) => row.part === part)?.[0] ?? '';
const event = (type: string) => ({ sequence: 3, eventId: 'e', key: 'k', type, payload: '{}' });
const pinned = (...given: PinnedFact[]) => given.map((fact) => ({ fact, differences: [] }));

interface Given {
  readonly pinned?: readonly PinnedFact[];
  readonly fork?: 'branch' | 'replay';
}

describe('RFC 0054: the cause of the first difference', () => {
  const byPart: readonly [EventPart, Given, DivergenceCause][] = [
    ['wait-ends', { pinned: ['definition'] }, 'answer'],
    ['turn', {}, 'message'],
    ['return', { pinned: ['agents'] }, 'tool-result'],
    ['child', {}, 'child'],
    ['run-moves', {}, 'intervention'],
    ['reasoning', {}, 'model'],
    ['call', { pinned: ['inputs', 'definition', 'code'] }, 'model'],
    ['decision', { pinned: ['agents'] }, 'agents'],
    ['decision', { pinned: ['inputs', 'options'] }, 'options'],
    ['run-starts', { pinned: ['inputs', 'definition'] }, 'inputs'],
    ['detail', { pinned: ['agents', 'definition'] }, 'agents'],
    ['node-starts', { pinned: ['definition', 'code'] }, 'definition'],
    ['node-ends', { pinned: ['code'] }, 'code'],
    ['node-ends', { pinned: ['code'], fork: 'replay' }, 'code'],
    ['node-ends', { fork: 'branch' }, 'branch'],
    ['note', { fork: 'replay' }, 'replay'],
    ['node-skipped', {}, 'unknown'],
  ];
  it.each(byPart)('%s, %o: %s', (part, { pinned: given = [], fork }, cause) => {
    const first = { seq: 3, a: event(typeOf(part)), b: event(typeOf(part)) };
    expect(causeOf({ first, pinned: pinned(...given), fork })).toBe(cause);
  });

  it('a run that was cancelled', () => {
    const first = { seq: 3, a: event('run.completed'), b: event('run.cancelled') };
    expect(causeOf({ first, pinned: pinned('definition') })).toBe('intervention');
  });

  it('how they are related', () => {
    const fork = { sourceRunId: 'run-a', fromSeq: 1, length: 2, mode: 'branch' } as const;
    const branch = changed({ runId: 'run-b', fork });
    expect(forkBetween(input, branch)).toBe('branch');
    expect(forkBetween(branch, input)).toBe('branch');
    expect(forkBetween(branch, changed({ runId: 'run-c' }))).toBeUndefined();
  });
});

it('each fact is asked for, in the order in which one explains the others', () => {
  const facts: Record<PinnedFact, true> = {
    ...{ inputs: true, agents: true, options: true, definition: true, code: true },
  };
  const of = (value: number) =>
    Object.fromEntries(Object.keys(facts).map((fact) => [fact, value])) as Pinned;
  expect(pinnedDifferences(of(1), of(2), 1).map(({ fact }) => fact)).toEqual(Object.keys(facts));
});
