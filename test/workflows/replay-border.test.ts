// replay.md §Modes: what a replay performs behind its record is nothing, in its later segments too. In the model of
// Temporal and of time: nothing there performs a step unseen.
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { RecordingPage } from '../../src/rules/recording.ts';
import type { ForkOf } from '../../src/rules/run-input.ts';
import { agentNode, chain, node, pinned, runInput } from '../support/definitions.ts';
import { openAgenda } from '../support/model/agenda.ts';
import { ACTIVITY_NAMES, READ_RECORDING } from '../support/model/behaviours.ts';
import { startExecution, type ScheduledActivity, type World } from '../support/model/execution.ts';
import type { ActivityEnd } from '../support/model/outcomes.ts';
import { openIsolate, type Isolate } from '../support/model/isolate.ts';
import { journalOf } from '../support/run-workflow.ts';

const START_MS = 1_700_000_000_000;
const AGENT = 'local.test.pack.agent';
/** Of a source that was cancelled as it began. */
const PAGE: RecordingPage = {
  sourceRunId: 'run-source',
  batches: [{ atMs: START_MS, position: 0, stimuli: [{ kind: 'cancel-requested' }], began: [] }],
  entries: [],
  prefix: 0,
  isLast: true,
};

let isolate: Isolate;
beforeAll(async () => {
  isolate = await openIsolate(ACTIVITY_NAMES);
});
afterAll(() => isolate.close());

const fork: ForkOf = {
  ...{ sourceRunId: 'run-source', fromSeq: 0, length: 0, mode: 'replay' },
  ...{ clocks: [{ recordEndsMs: START_MS, madeAtMs: START_MS }], generation: 1 },
};

/** Where the record is read, and nothing else comes to an end. */
function worldOf(page: ActivityEnd, performed: string[]): World {
  return {
    begin({ activityId, type }: ScheduledActivity) {
      if (type !== READ_RECORDING) performed.push(activityId);
      return { afterMs: 1, end: page };
    },
    stop: () => undefined,
    task: () => ({ fate: 'done' as const, latencyMs: 0 }),
    answered: () => undefined,
    recorded: () => undefined,
  };
}

it.each([undefined, 5])('with a segment forced after %s events', async (forced) => {
  const agenda = openAgenda(START_MS);
  const performed: string[] = [];
  const result = { output: null, events: [], recording: PAGE };
  const world = worldOf({ kind: 'completed', result }, performed);
  const workflow = chain('border', [
    node('first', 'core.delay', { config: { ms: 1_000 } }),
    node('second', 'core.delay', { config: { ms: 1_000 } }),
    agentNode('think', AGENT),
  ]);
  let input: unknown = runInput(workflow, {
    ...{ runId: 'run-fork', fork, agentList: [pinned(AGENT)] },
    ...(forced === undefined ? {} : { forceContinueAsNewAfter: forced }),
  });
  const types: string[] = [];
  let segments = 0;
  for (let isOver = false; !isOver; segments++) {
    const place = { isolate, agenda, world, workflowId: 'run-fork', temporalRunId: `t${segments}` };
    const execution = startExecution({ ...place, input });
    while (!execution.end()) expect(await agenda.step()).toBe(true);
    await execution.dispose();
    for (const it of journalOf(execution.history, segments)) if ('type' in it) types.push(it.type);
    const end = execution.end();
    isOver = end?.kind !== 'continued';
    if (end?.kind === 'continued') ({ input } = end);
  }
  expect(performed).toEqual([]);
  expect(segments > 1).toBe(forced !== undefined);
  expect(types.slice(-2)).toEqual(['node.failed', 'run.failed']);
});

it('a record that cannot be read ends the fork by name, and the fork tells why', async () => {
  const agenda = openAgenda(START_MS);
  const performed: string[] = [];
  const world = worldOf({ kind: 'failed', code: 'history_missing', message: 'gone' }, performed);
  const input = runInput(chain('unread', [agentNode('think', AGENT)]), {
    ...{ runId: 'run-fork', fork, agentList: [pinned(AGENT)] },
  });
  const place = { isolate, agenda, world, workflowId: 'run-fork', temporalRunId: 't0' };
  const execution = startExecution({ ...place, input });
  while (!execution.end()) expect(await agenda.step()).toBe(true);
  await execution.dispose();
  expect(execution.end()).toEqual({ kind: 'failed' });
  expect(performed).toEqual([]);
  expect(journalOf(execution.history)).toMatchObject([
    {
      type: 'run.failed',
      payload: {
        error: {
          ...{ code: 'replay_source_missing' },
          details: { cause: 'history_missing', reason: 'gone' },
        },
      },
    },
  ]);
});
