// Rebuild of a run whose tool calls told their progress (architecture §3.5, §3.6): the log comes back byte for byte.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { recordDeltas } from '../../activities/recorded-deltas.ts';
import { deltaPayload, toolChannel, type DeltaForm } from '../../src/rules/deltas.ts';
import { deltaKey, eventIdOf } from '../../src/rules/ids.ts';
import type { RecordedDeltas } from '../../src/rules/journal.ts';
import { archiveClosed } from '../../src/log/archive.ts';
import type { Log } from '../../src/log/log.ts';
import type { Stores } from '../../src/ports/stores.ts';
import {
  admitted,
  complete,
  emitted,
  HistoryBuilder,
  memo,
  schedule,
} from '../support/histories.ts';
import {
  newLogRun,
  openAnyStores,
  type ScriptedHistory,
  silentLogger,
} from '../support/log-parts.ts';
import { runRef } from '../support/run-ref.ts';

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
  return () => log.close();
});

/** How often each activity has told something. */
const told = new Map<string, number>();

/** What a streaming activity appends: [channel, text], or text of a model. */
async function stream(activityId: string, pieces: readonly (readonly [string, string] | string)[]) {
  const first = told.get(`${runId} ${activityId}`) ?? 0;
  told.set(`${runId} ${activityId}`, first + pieces.length);
  const call = { nodeId: 'n', runId, isLast: false, callId: activityId, toolId: 'a/t' };
  const deltas = pieces.map((piece, index) => {
    const k = first + index;
    const key = deltaKey(activityId, k);
    const isModel = typeof piece === 'string';
    const form: DeltaForm = isModel ? { base: { agentId: 'a' } } : { base: call, field: 'chunk' };
    const said = isModel ? { text: piece } : { channel: toolChannel(piece[0]), text: piece[1] };
    const type = isModel ? 'agent.reasoning.delta' : 'output.chunk';
    const payload = deltaPayload(form, said, k);
    const row = { runId, eventId: eventIdOf(runId, key), key, type, nodeId: 'n', payload };
    return { k, row: { ...row, timestampMs: 1_025 + 3 * k } };
  });
  const outcome = await stores.log.appendDeltas(runRef(runId), activityId, 1, deltas);
  if (outcome.kind === 'refused') throw new Error(outcome.reason);
}

async function record(activityId: string): Promise<{ deltas: RecordedDeltas }> {
  const deltas = recordDeltas(activityId, await stores.log.closeBlock(runRef(runId), activityId));
  if (!deltas) throw new Error('nothing is recorded');
  return { deltas };
}

/** A model and two tool calls speak at once; one call returns, the other ends without a result and is sealed. */
async function play(): Promise<void> {
  const built = new HistoryBuilder();
  built.task(
    schedule('infer', built.carrier(emitted('run.started|r', 'run.started', { workflowId: 'w' }))),
    schedule('returns'),
    schedule('dies'),
  );
  history.add(segment, built);
  await log.catchUp(runRef(runId));
  await stream('returns', [
    ['stdout', 'one '],
    ['stderr', 'oh '],
  ]);
  await stream('infer', ['I ']);
  await stream('dies', [['status', 'begun\n']]);
  await stream('returns', [
    ['stdout', 'two \ud83d'],
    ['stdout', '\ude00'],
    ['partial_result', '{"n":1}\n'],
  ]);
  const returned = { type: 'agent.toolReturned', nodeId: 'n', payload: { callId: 'returns' } };
  built.completed('returns', { events: [returned], ...(await record('returns')) });
  built.task(memo(built.carrier(admitted('returns'))));
  await log.catchUp(runRef(runId));
  await stream('dies', [['stdout', 'lost ']]);
  await stream('infer', ['think']);
  built.failed('dies').task(schedule('dies.seal'));
  built.completed('dies.seal', await record('dies'));
  const reasoned = { type: 'agent.reasoned', nodeId: 'n', payload: { reasoning: 'I think' } };
  built.completed('infer', { events: [reasoned], ...(await record('infer')) });
  built.task(complete(built.carrier(admitted('infer'), emitted('terminal', 'run.completed', {}))));
  await log.catchUp(runRef(runId));
}

async function dump() {
  const rows = await stores.log.read(runRef(runId), { after: -1, limit: 1_000 });
  return { rows, head: await stores.log.head(runRef(runId)) };
}

describe('architecture §3.6: a run with tool progress', () => {
  it('chunks stand where they were told', async () => {
    await play();
    const { rows } = await dump();
    expect(rows.map(({ key }) => key)).toEqual([
      'run.started|r',
      ...['returns#d0', 'returns#d1', 'infer#d0', 'dies#d0'],
      ...['returns#d2', 'returns#d3', 'returns#d4', 'returns#0'],
      ...['dies#d1', 'infer#d1', 'infer#0', 'terminal'],
    ]);
  });

  it('is rebuilt byte for byte from history', async () => {
    await play();
    const before = await dump();
    await log.rebuild(runRef(runId));
    expect(JSON.stringify(await dump())).toBe(JSON.stringify(before));
  });

  it('is rebuilt byte for byte from the archive', async () => {
    await play();
    const { rows } = await dump();
    await archiveClosed({ stores, history, logger: silentLogger }, new AbortController().signal);
    history.forget(segment);
    await log.rebuild(runRef(runId));
    expect(JSON.stringify((await dump()).rows)).toBe(JSON.stringify(rows));
  });
});
