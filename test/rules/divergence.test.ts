// Why two runs went apart (RFC 0054): by the first difference of their logs, and by what they were made of.
import { describe, expect, it } from 'vitest';
import {
  causeOf,
  forkBetween,
  overlaidBy,
  pinnedDifferences,
  pinnedOf,
  type DivergenceCause,
  type Pinned,
  type PinnedFact,
} from '../../src/rules/divergence.ts';
import type { ForkBuild } from '../../src/rules/builds.ts';
import { EVENT_TYPES, type EventPart } from '../../src/rules/events.ts';
import type { Overlay } from '../../src/rules/overlay.ts';
import type { ForkOf, RunInput } from '../../src/rules/run-input.ts';
import { runRow } from '../support/log-parts.ts';

const { input } = runRow('run-a');
const changed = (more: Partial<RunInput>): RunInput => ({ ...input, ...more });
const FORK: ForkOf = {
  ...{ sourceRunId: 'run-a', fromSeq: 3, length: 5, clocks: [], generation: 1 },
  mode: 'branch',
};
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
  it('defaults of what is sensitive are not shown', () => {
    const [variable] = input.definition.variables.filter(({ sensitive }) => sensitive);
    const variables = [{ ...variable, name: 'secret', type: 'string', defaultValue: 'hunter2' }];
    const channels = { door: { reducer: 'replace', sensitive: true, default: 'hunter2' } };
    const sensitive = { ...input.definition, variables, channels } as RunInput['definition'];
    const shown = JSON.stringify(pinnedOf(changed({ definition: sensitive }), {}));
    expect(shown).not.toContain('hunter2');
    expect(shown).toContain('"defaultValue":"[sensitive]"');
    expect(shown).toContain('"default":"[sensitive]"');
  });

  const cases: readonly [PinnedFact, RunInput, object?][] = [
    ['definition', changed({ definition })],
    ['inputs', input, { amount: 6 }],
    ['inputs', changed({ message: { content: 'hello' } })],
    ['options', changed({ configurable: { model: 'm' } })],
    ['options', changed({ tags: ['t'] })],
    ['options', changed({ policy: { escalation: false, verbosity: 'summary' } })],
    ['agents', changed({ agents: { a: agent } })],
    ['code', changed({ translateVersion: 0 })],
  ];
  it.each(cases)('%s', (fact, other, inputs = {}) => {
    expect(facts(other, inputs)).toEqual([fact]);
  });

  it('of a branch, what its overlay makes of it', () => {
    const of = (overlay: Overlay) => facts(changed({ fork: { ...FORK, overlay } }));
    expect(of({ configurable: { model: 'm' } })).toEqual(['options']);
    const models = { general: { provider: 'p', model: 'm' } };
    expect(of({ configurable: {}, models })).toEqual(['options']);
    // Nobody asked for another model: where it is one, the steps say so.
    expect(of({ agents: { a: agent }, models })).toEqual(['agents']);
    expect(of({ agents: { a: agent } })).toEqual(['agents']);
    expect(of({})).toEqual([]);
    const inherited = { configurable: { model: 'm' } };
    expect(facts(changed({ fork: { ...FORK, inherited } }))).toEqual(['options']);
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
    const mode = fork && { mode: fork };
    expect(causeOf({ first, pinned: pinned(...given), fork: mode })).toBe(cause);
  });

  it.each<[string, ForkBuild, DivergenceCause]>([
    ['another build than its source had', { buildId: 'two', sourceBuildId: 'one' }, 'code'],
    ['a build, of a source of which nobody knows it', { buildId: 'two' }, 'code'],
    ['the build of its source', { buildId: 'two', sourceBuildId: 'two' }, 'replay'],
  ])('a replay by %s', (_what, build, cause) => {
    const first = { seq: 3, a: event(typeOf('node-ends')), b: event('replay.diverged') };
    expect(causeOf({ first, pinned: [], fork: { mode: 'replay', build } })).toBe(cause);
  });

  it('a replay by another build was given what came from outside as it was', () => {
    const first = { seq: 3, a: event(typeOf('wait-ends')), b: event('replay.diverged') };
    const fork = { mode: 'replay', build: { buildId: 'two' } } as const;
    expect(causeOf({ first, pinned: [], fork })).toBe('code');
  });

  it('a run that was cancelled', () => {
    const first = { seq: 3, a: event('run.completed'), b: event('run.cancelled') };
    expect(causeOf({ first, pinned: pinned('definition') })).toBe('intervention');
  });

  it('the part of an overlay by which it is so, an answer at its event alone', () => {
    const asked = { answer: { seq: 3, value: 1 }, agents: {} };
    const by = (cause: DivergenceCause, seq: number) =>
      overlaidBy(cause, { seq }, { ...FORK, asked });
    for (const cause of ['answer', 'tool-result', 'model'] as const)
      expect([by(cause, 3), by(cause, 4)]).toEqual(['answer', undefined]);
    expect([by('agents', 9), by('inputs', 0), by('code', 3)]).toEqual([
      ...['agents', undefined, undefined],
    ]);
    expect(overlaidBy('agents', { seq: 3 }, undefined)).toBeUndefined();
  });

  it('how they are related', () => {
    const branch = changed({ runId: 'run-b', fork: FORK });
    expect(forkBetween(input, branch)).toBe(FORK);
    expect(forkBetween(branch, input)).toBe(FORK);
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
