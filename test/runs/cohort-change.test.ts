// Where a cohort forks a run (architecture §6): a change of agents where one of them is asked first, so that what lies before
// it costs nothing.
import { describe, expect, it } from 'vitest';
import type { CohortChange } from '../../src/rules/cohort.ts';
import type { PinnedAgent, RunInput } from '../../src/rules/run-input.ts';
import { forkFor } from '../../src/runs/cohort-change.ts';
import { agentNode, chain, node, runInput } from '../support/definitions.ts';

const TRIAGE = 'local.desk.triage';
const JUDGE = 'local.desk.judge';
const pinned = (agentId: string): PinnedAgent => ({
  ...{ agentId, manifestHash: 'sha256:0', toolAllowlist: [] },
  modelClass: 'general',
});
const input: RunInput = {
  ...runInput(
    chain('desk', [
      agentNode('sort', TRIAGE),
      node('wait', 'core.noop'),
      agentNode('judge', JUDGE),
    ]),
  ),
  agents: { [TRIAGE]: pinned(TRIAGE), [JUDGE]: pinned(JUDGE) },
};

const row = (type: string, nodeId?: string, payload: object = {}) => ({
  ...{ runId: 'run-1', key: type, type, payload: JSON.stringify(payload) },
  ...(nodeId === undefined ? {} : { nodeId }),
});
const visit = (nodeId: string, agentId?: string) => [
  row('node.started', nodeId),
  ...(agentId === undefined ? [] : [row('agent.invocation.started', nodeId, { agentId })]),
  row('node.completed', nodeId),
];
/** 0; 1-3, 4-5, 6-8: a second time round, 9-11. */
const rows = [
  row('run.started'),
  ...[
    ...visit('sort', TRIAGE),
    ...visit('wait'),
    ...visit('judge', JUDGE),
    ...visit('judge', JUDGE),
  ],
];
const pagesOf = async function* <Row>(rows: readonly Row[]) {
  for (const row of rows) yield [row];
};
const fork = (change: CohortChange) => forkFor({ change, input, pages: pagesOf(rows) });
const prompt = { systemPrompt: 'Be strict.' };

describe('forkFor', () => {
  // [I97]
  it.each(['{', 'null', ''])(
    'an entry of the source that is damaged is named, and needs no second try: %j',
    async (payload) => {
      const damaged = [...rows.slice(0, 2), { ...row('node.failed', 'sort'), payload }];
      const change = { agents: { judge: prompt } };
      await expect(forkFor({ change, input, pages: pagesOf(damaged) })).rejects.toMatchObject({
        code: 'history_undecodable',
        details: { reason: 'What stands at payload run-1 node.failed is damaged.' },
      });
    },
  );

  it.each<[string, CohortChange, number]>([
    ['the first agent', { agents: { triage: prompt } }, 1],
    ['a later one, by its first visit', { agents: { judge: prompt } }, 6],
    ['one by its id', { agents: { [JUDGE]: prompt } }, 6],
    ['several, by the first of them', { agents: { judge: prompt, triage: prompt } }, 1],
    ['a configuration, which counts from the start', { configurable: { a: 1 } }, 0],
    ['both', { agents: { judge: prompt }, configurable: { a: 1 } }, 0],
  ])('%s', async (_what, change, fromSeq) => {
    expect(await fork(change)).toMatchObject({
      ...{ mode: 'branch', fromSeq },
      runOptionsOverlay: { tools: 'recorded', answers: 'recorded' },
    });
  });

  it('behind the last event where none of them was asked', async () => {
    const change = { agents: { judge: prompt } };
    const before = rows.slice(0, 6);
    const asked = await forkFor({ change, input, pages: pagesOf(before) });
    expect(asked).toMatchObject({ fromSeq: before.length });
  });

  it('an agent that is asked without a visit of its own, where it is asked', async () => {
    const asked = [
      row('run.started'),
      row('agent.invocation.started', undefined, { agentId: JUDGE }),
    ];
    const change = { agents: { judge: prompt } };
    const found = await forkFor({ change, input, pages: pagesOf(asked) });
    expect(found).toMatchObject({ fromSeq: 1 });
  });

  it('no change is a replay, from the first event on, as is another build', async () => {
    for (const change of [{}, { agents: {} }, { configurable: {} }, { build: 'two' }])
      expect(await fork(change)).toEqual({ mode: 'replay', fromSeq: 0 });
  });

  it('of the log no more is read than it depends on', async () => {
    let read = 0;
    const counted = async function* () {
      for (const each of rows) {
        read++;
        yield [each];
      }
    };
    await forkFor({ change: { agents: { triage: prompt } }, input, pages: counted() });
    const asked = read;
    for (const change of [{}, { configurable: { a: 1 } }])
      await forkFor({ change, input, pages: counted() });
    expect([asked, read]).toEqual([3, 3]);
  });
});
