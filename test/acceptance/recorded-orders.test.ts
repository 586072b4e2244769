// Children of a branch by recorded tools end in the order in which the record has their ends (architecture §6), in one history
// and over many: the first that ends may decide.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { WorkflowDefinition } from '../../schemas/types.generated.ts';
import type { LogRow } from '../../src/ports/log.ts';
import { ended } from '../facade/suite-parts.ts';
import { chain, definition, edge, node } from '../support/definitions.ts';
import { startTestHost, type TestHost } from '../support/host.ts';
import { runRef } from '../support/run-ref.ts';

const variables = [{ name: 'got', type: 'string' }] as WorkflowDefinition['variables'];
const SLOW = 'delays-a-little';
const FAST = 'delays-less';

const DEFINITIONS = [
  definition(
    'conformance-races',
    [
      node('lead', 'core.orchestrator.supervisor', {
        config: {
          mockDispatchPlan: [
            { kind: 'next-worker', nextWorkerIds: [SLOW, FAST] },
            { kind: 'terminate' },
          ],
        },
      }),
      node('work', 'core.dispatch', {
        config: {
          fanOutPolicy: 'parallel',
          joinPolicy: { mode: 'first' },
          outputMapping: { got: 'got' },
        },
      }),
    ],
    [edge('lead', 'work')],
    { variables },
  ),
  chain(SLOW, [node('delay', 'core.delay', { config: { ms: 4_000 } })]),
  chain(
    FAST,
    [
      node('delay', 'core.delay', { config: { ms: 800 } }),
      node('set', 'core.setVariable', { config: { variableName: 'got', value: 'of the child' } }),
    ],
    { variables },
  ),
];

/** Without what names runs. A child that is told of again goes by another name. */
const plain = (rows: readonly LogRow[]): string[] =>
  rows
    .filter(({ type }) => type !== 'node.dispatched')
    .map(({ type, nodeId, payload }) =>
      JSON.stringify([type, nodeId, payload.replaceAll(/run-[0-9A-Za-z]{27}/g, 'a run')]),
    )
    .sort();

/** In the campaign each; else the first, behind the start of each child, and where the first end has decided. */
function placesOf(rows: readonly LogRow[]): readonly number[] {
  if (process.env.OPENWOP_FORKED_TREES === 'whole') return [...rows.keys()];
  const started = rows.flatMap(({ type }, at) => (type === 'node.dispatched' ? [at + 1] : []));
  const joined = rows.findIndex(({ type }) => type === 'core.dispatch.join');
  return [0, ...started, joined];
}

describe.each([
  ['in one history', {}],
  ['in many', { facade: { forceContinueAsNewAfter: 5 } }],
])('a branch by recorded tools, %s', (_, options) => {
  let host: TestHost;
  beforeAll(async () => {
    host = await startTestHost({ ...options, builtIn: { definitions: DEFINITIONS } });
  });
  afterAll(() => host?.stop());

  const rowsOf = (runId: string) =>
    host.stores.log.read(runRef(runId), { after: -1, limit: 10_000 });

  it('what was the first to end there is the first to end here', async () => {
    const source = await host.startRun({ workflowId: 'conformance-races' });
    await host.waitFor(source, ended);
    const rows = await rowsOf(source);
    expect(rows.filter(({ type }) => type === 'core.dispatch.join')).toHaveLength(1);
    for (const fromSeq of placesOf(rows)) {
      const runOptionsOverlay = { tools: 'recorded' };
      const { body } = await host.api<{ runId: string }>(`/v1/runs/${source}:fork`, {
        body: { mode: 'branch', fromSeq, runOptionsOverlay },
      });
      const { status, error } = await host.waitFor(body.runId, ended);
      expect([fromSeq, status, error]).toEqual([fromSeq, 'completed', undefined]);
      expect([fromSeq, plain(await rowsOf(body.runId))]).toEqual([fromSeq, plain(rows)]);
    }
  });
});
