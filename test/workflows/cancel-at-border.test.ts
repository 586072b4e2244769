// A cancel that waits when a segment begins is taken before any node of it runs (architecture §4): the children that the
// segment before was waiting for are told by the run itself, before its own end. In the model of Temporal and of time:
// on a server nobody can choose that moment.
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { StartChildrenInput } from '../../activities/contract.ts';
import { MESSAGES } from '../../src/rules/messages.ts';
import { chain, node, runInput } from '../support/definitions.ts';
import { openAgenda } from '../support/model/agenda.ts';
import { ACTIVITY_NAMES } from '../support/model/behaviours.ts';
import {
  startExecution,
  type Execution,
  type ScheduledActivity,
  type Update,
} from '../support/model/execution.ts';
import { openIsolate, type Isolate } from '../support/model/isolate.ts';
import { journalOf } from '../support/run-workflow.ts';

let isolate: Isolate;
beforeAll(async () => {
  isolate = await openIsolate(ACTIVITY_NAMES);
});
afterAll(() => isolate.close());

const CANCEL: Update = {
  id: 'cancel',
  name: MESSAGES.cancel.update,
  message: { kind: 'cancel', cancelledBy: 'tester', bodyDigest: '' },
};

/** Every child is started; told to end, it is found as `found`. */
function outputOf({ type, input }: ScheduledActivity, found: string): unknown {
  if (type === 'cancelChild') return { found };
  const { requests } = input as StartChildrenInput;
  return { starts: requests.map(() => ({ kind: 'started', workflowId: 'child' })) };
}

/** Waits for its child in one segment, and finds the cancel in the next. */
async function cancelledAtBorder(config: object) {
  const agenda = openAgenda(1_700_000_000_000);
  const performed: ScheduledActivity[] = [];
  const world = {
    begin(activity: ScheduledActivity) {
      performed.push(activity);
      const result = { output: outputOf(activity, 'ended'), events: [] };
      return { afterMs: 1, end: { kind: 'completed' as const, result } };
    },
    stop: () => undefined,
    task: () => ({ fate: 'done' as const, latencyMs: 0 }),
    answered: () => undefined,
    recorded: () => undefined,
  };
  const play = async (input: unknown, updates: readonly Update[]): Promise<Execution> => {
    const place = { isolate, agenda, world, workflowId: 'run-border', temporalRunId: 'run-border' };
    const execution = startExecution({ ...place, input, updates });
    while (!execution.end()) expect(await agenda.step()).toBe(true);
    await execution.dispose();
    await execution.replay();
    return execution;
  };
  const workflow = chain('border', [
    node('sub', 'core.subWorkflow', { config: { workflowId: 'child', ...config } }),
  ]);
  const first = await play(
    runInput(workflow, { runId: 'run-border', forceContinueAsNewAfter: 5 }),
    [],
  );
  const end = first.end();
  if (end?.kind !== 'continued') throw new Error(`the first segment is ${end?.kind}`);
  const second = await play(end.input, [CANCEL]);
  const told = journalOf(second.history, 1).flatMap((it) =>
    it.kind === 'status' ? [] : [it.type],
  );
  return { performed: performed.map(({ type }) => type), told, end: second.end()?.kind };
}

it('RFC 0007 §D: the child is told before the end of the run', async () => {
  expect(await cancelledAtBorder({})).toEqual({
    performed: ['startChildren', 'cancelChild'],
    told: ['node.cancelled', 'run.cancelled'],
    end: 'cancelled',
  });
});

it('one that outlives the wait for it is not told', async () => {
  const { performed, end } = await cancelledAtBorder({ propagateCancellation: false });
  expect([performed, end]).toEqual([['startChildren'], 'cancelled']);
});
