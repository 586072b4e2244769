// The log that a fork goes by (replay.md §Modes) is there as a whole, or the fork is told that it is not: of rows that are
// missing nobody concludes that nobody answered, or called.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createActivities } from '../../activities/create-activities.ts';
import type { CallToolInput } from '../../activities/contract.ts';
import { recordedRows } from '../../activities/recorded-rows.ts';
import type { ForkOf } from '../../src/rules/run-input.ts';
import { openDatabase, storesOn, type OpenDatabase } from '../../src/adapters/postgres/index.ts';
import type { Stores } from '../../src/ports/stores.ts';
import { codeOf } from '../../src/rules/errors.ts';
import { end, member } from '../contract/retention.ts';
import { appendRows, newId } from '../contract/given.ts';
import { quietLogger } from '../support/quiet-logger.ts';
import { activityEnvironment, AGENT_ID, createRig, runActivity } from './rig.ts';
import { pgliteDatabase } from '../support/databases.ts';

let stores: Stores;
let opened: OpenDatabase;
beforeAll(async () => {
  const database = await pgliteDatabase();
  opened = await openDatabase(database, quietLogger);
  stores = await storesOn(opened, { database, logger: quietLogger });
});
afterAll(() => stores.close());

async function keys(runId: string, length: number): Promise<string[] | string | undefined> {
  const found: string[] = [];
  try {
    for await (const { key } of recordedRows({ stores }, 'default', { runId, length }))
      found.push(key);
    return found;
  } catch (error) {
    return codeOf(error);
  }
}

describe('recordedRows', () => {
  test('all that was recorded, and nothing behind it', async () => {
    const run = await member(stores, { open: true });
    await appendRows(stores, run.runId, ['four']);
    await end(stores, run);
    expect(await keys(run.runId, 3)).toEqual(['one', 'two', 'three']);
    expect(await keys(run.runId, 5)).toHaveLength(5);
  });

  test('fewer than there were: replay_source_missing, not an end', async () => {
    const run = await member(stores);
    expect(await keys(run.runId, 5)).toBe('replay_source_missing');
  });

  test('of a run that nobody knows, or that has expired, too: who began to read it reads to the end', async () => {
    expect(await keys(newId('run'), 1)).toBe('replay_source_missing');
    const run = await member(stores);
    await stores.retention.expire(run, { keptMs: 0, restMs: 0 });
    expect(await keys(run.runId, 4)).toHaveLength(4);
    while (!(await stores.retention.clean(run, 10)));
    expect(await keys(run.runId, 4)).toBe('replay_source_missing');
  });

  test('while its log is built anew: to be tried again', async () => {
    const { runId } = await member(stores);
    for (const table of ['run_events', 'run_heads'])
      await opened.db.query(`DELETE FROM ${table} WHERE run_id = $1`, [runId]);
    expect(await keys(runId, 4)).toBe('service_unavailable');
  });
});

test('while a record is read, the step that reads it gives signs of life', async () => {
  const source = await member(stores);
  const recordedBy = { runId: source.runId, length: 3 };
  const rig = await createRig(stores);
  const env = activityEnvironment(1);
  let beats = 0;
  env.on('heartbeat', () => void beats++);
  let atRead: number | undefined;
  const noted =
    <Args extends unknown[], Result>(read: (...args: Args) => Result) =>
    (...args: Args): Result => {
      atRead ??= beats;
      return read(...args);
    };
  const activities = createActivities({
    ...rig.ports,
    log: {
      ...rig.ports.log,
      recording: noted(() => new Promise<never>((_, fail) => fail(new Error('away')))),
    },
    stores: {
      ...stores,
      runs: stores.runs,
      log: { ...stores.log, read: noted((...asked) => stores.log.read(...asked)) },
    },
  });
  const { context } = rig;
  const call: CallToolInput = {
    ...{ context: { ...context, runId: source.runId }, agentId: AGENT_ID, tools: ['tests:pay'] },
    call: { callId: 'call-1', toolId: 'tests:pay', arguments: {}, argsHash: 'h', occurrence: 0 },
  };
  const fork: ForkOf = {
    ...{ sourceRunId: source.runId, fromSeq: 3, length: 3, mode: 'replay', generation: 1 },
    clocks: [{ recordEndsMs: 0, madeAtMs: 0 }],
  };
  const readers = {
    'recorded answers': () =>
      activities.recordedAnswers({
        ...{ context, recordedBy, askedKey: 'asked', interruptId: 'int-1' },
        question: { kind: 'approval', data: {}, resumeSchema: {} },
      }),
    'a call by recorded tools': () => activities.callTool({ ...call, recordedBy }),
    'a call of a branch that left its source in the visit': () =>
      activities.callTool({ ...call, sourceLength: 3 }),
    'a recording': () =>
      activities.readRecording({ tenant: context.tenant, runId: rig.runId, fork, page: 0 }),
  };
  for (const [who, reads] of Object.entries(readers)) {
    beats = 0;
    atRead = undefined;
    await env.run(reads).catch(() => undefined);
    expect([who, (atRead ?? 0) > 0]).toEqual([who, true]);
  }
});

test('a question whose record is gone is no question that nobody answered', async () => {
  const source = await member(stores);
  await stores.retention.expire(source, { keptMs: 0, restMs: 0 });
  while (!(await stores.retention.clean(source, 10)));
  const rig = await createRig(stores);
  const asked = runActivity(rig, 'recordedAnswers', {
    input: {
      context: rig.context,
      recordedBy: { runId: source.runId, length: 4 },
      ...{ askedKey: 'asked', interruptId: 'int-1' },
      question: { kind: 'approval', data: {}, resumeSchema: {} },
    },
  });
  await expect(asked).rejects.toMatchObject({ type: 'replay_source_missing', nonRetryable: true });
});
