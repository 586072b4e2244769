// A stream that was given up and sealed, and whose activity comes to an end all the same (architecture §3.5): whatever
// lies between the seal and the task that admits it, the log tells the stream once, and a rebuild tells the same.
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { deltaPayload } from '../../src/rules/deltas.ts';
import { deltaKey, eventIdOf } from '../../src/rules/ids.ts';
import type { RecordedDeltas } from '../../src/rules/journal.ts';
import type { Log } from '../../src/log/log.ts';
import type { Stores } from '../../src/ports/stores.ts';
import {
  admitted,
  emitted,
  HistoryBuilder,
  memo,
  schedule,
  terminate,
} from '../support/histories.ts';
import type { ScriptedHistory } from '../support/log-parts.ts';
import { newLogRun, openAnyStores } from '../support/log-parts.ts';
import { runRef } from '../support/run-ref.ts';

const BASE = { agentId: 'core.a' };
const TEXT = 'Hm';
const SAID = { type: 'agent.reasoned', nodeId: 'n', payload: { ...BASE, reasoning: TEXT } };

let stores: Stores;
let history: ScriptedHistory;
let log: Log;
let runId: string;

beforeAll(async () => {
  stores = await openAnyStores();
});
afterAll(() => stores.close());

beforeEach(async () => {
  ({ runId, history, log } = await newLogRun(stores));
  return () => log.close();
});

/** As an activity streams it, and as its end or its seal records it. */
async function streamed(activityId: string): Promise<RecordedDeltas> {
  const key = deltaKey(activityId, 0);
  const type = 'agent.reasoning.delta';
  const payload = deltaPayload({ base: BASE }, { text: TEXT }, 0);
  const eventId = eventIdOf(runId, key);
  const row = { runId, eventId, key, type, nodeId: 'n', payload, timestampMs: 1_025 };
  await stores.log.appendDeltas(runRef(runId), activityId, 1, [{ k: 0, row }]);
  const [stored] = await stores.log.closeBlock(runRef(runId), activityId);
  const { sequence = 0, timestampMs = 0 } = stored ?? {};
  const places = { sequences: [[sequence, 1]] as const, times: [timestampMs] };
  return { activityId, type, nodeId: 'n', base: BASE, text: TEXT, cuts: [2], ...places };
}

/** 'a' has streamed and is sealed; `then` is what follows before the run is terminated. */
async function sealed(then: (built: HistoryBuilder, deltas: RecordedDeltas) => unknown) {
  const built = new HistoryBuilder();
  const node = emitted('n', 'node.started', { nodeId: 'n' });
  built.task(schedule('a', built.carrier(emitted('run.started|r', 'run.started'), node)));
  history.add(`${runId}-t1`, built);
  await log.catchUp(runRef(runId));
  const deltas = await streamed('a');
  built.task(schedule('a.seal'));
  built.completed('a.seal', { events: [SAID], deltas });
  then(built, deltas);
  built.lone(terminate[0], terminate[1]);
}

const dump = async () =>
  JSON.stringify([
    await stores.log.head(runRef(runId)),
    await stores.log.read(runRef(runId), { after: -1, limit: 100 }),
  ]);
const said = async () =>
  (await stores.log.read(runRef(runId), { after: -1, limit: 100 }))
    .filter(({ type }) => type === SAID.type)
    .map(({ payload }) => (JSON.parse(payload) as { reasoning: string }).reasoning);
const admit = (built: HistoryBuilder) => built.task(memo(built.carrier(admitted('a.seal'))));

const CASES: Record<string, Parameters<typeof sealed>[0]> = {
  'its activity fails before the seal is admitted': (built) => admit(built.failed('a')),
  'its activity fails after that': (built) => admit(built).failed('a'),
  'its own result comes and the seal is not admitted any more': (built, deltas) =>
    built.completed('a', { events: [SAID], deltas }),
  'its own result comes before the seal is admitted': (built, deltas) =>
    admit(built.completed('a', { events: [SAID], deltas })),
  'its own result comes after that': (built, deltas) =>
    admit(built).completed('a', { events: [SAID], deltas }),
};

it.each(
  Object.entries(CASES).flatMap(([name, then]) => [
    { name, then, pageBatches: Infinity },
    { name, then, pageBatches: 1 },
  ]),
)('is told once: $name (pages of $pageBatches batches)', async ({ then, pageBatches }) => {
  await sealed(then);
  history.pageBatches = pageBatches;
  await log.catchUp(runRef(runId));
  expect(await said()).toEqual([TEXT]);
  const before = await dump();
  history.pageBatches = Infinity;
  await log.rebuild(runRef(runId));
  expect(await dump()).toBe(before);
});
