// How often a catch-up asks Temporal for a run's history (architecture §3.2, §3.3), with played histories.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Log } from '../../src/log/log.ts';
import type { Stores } from '../../src/ports/stores.ts';
import { complete, emitted, HistoryBuilder, memo } from '../support/histories.ts';
import { newLogRun, openAnyStores, type ScriptedHistory } from '../support/log-parts.ts';
import { runRef } from '../support/run-ref.ts';

/** Batches of the run that its first workflow task ends with. */
const FIRST_TASK = 3;
let stores: Stores;
let history: ScriptedHistory;
let log: Log;
let runId: string;
let segment: string;

beforeAll(async () => {
  stores = await openAnyStores();
});
afterAll(() => stores.close());

beforeEach(async () => {
  ({ runId, segment, history, log } = await newLogRun(stores));
  history.add(segment, twoTasks(), FIRST_TASK);
  await log.catchUp(runRef(runId));
  history.reads = 0;
  return () => log.close();
});

function twoTasks(): HistoryBuilder {
  const built = new HistoryBuilder();
  const started = emitted('run.started|r', 'run.started', { workflowId: 'w' });
  return built
    .task(memo(built.carrier(started)))
    .task(complete(built.carrier(emitted('terminal', 'run.completed', {}))));
}

describe('architecture §3.2: a catch-up', () => {
  it('costs one read of history where nothing is new', async () => {
    await log.catchUp(runRef(runId));
    expect(history.reads).toBe(1);
  });

  it('goes on behind a page of known events: it is not the tail', async () => {
    history.show(segment);
    // As when the server refuses the token: from the start again, and all of the first page is known.
    history.pageBatches = 1;
    history.refusesNextToken = true;
    expect(await log.catchUp(runRef(runId))).toMatchObject({ closed: true });
  });
});
