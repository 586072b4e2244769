// What history costs per agent turn (architecture §2.6: linear, since no conversation passes through it), and how fast
// translate and rebuild read it. Real activities, a scripted model that calls a tool in every turn but the last.
import proto from '@temporalio/proto';
import type { AgentScriptTurn } from '../schemas/types.generated.ts';
import { historyEventIdOf, translate, type HistoryEvent } from '../src/translate/translate.ts';
import { agentNode, between, runInputOf, ONE } from './cases.ts';
import { startRealWorker, type BenchHost } from './bench-host.ts';
import { rounded } from './statistics.ts';
import type { RunInput } from '../src/rules/run-input.ts';
import type { Pair } from './workers.ts';
import { atOnce } from './throughput.ts';
import { runRef } from '../test/support/run-ref.ts';

const EventProto = proto.temporal.api.history.v1.HistoryEvent;
/** Turns at each end that are compared. */
const EDGE_TURNS = 10;
const IN_FLIGHT = 8;
const REASONING =
  'I read the next field of the order, because the decision has to name it and the policy asks for it. So far nothing ' +
  'contradicts what the customer wrote, and the amounts match the invoice that was sent with the parcel. ';

export interface HistoryReport {
  readonly turns: number;
  /** Encoded history bytes of one turn: a model call and a tool call with all their events. */
  readonly bytesPerTurn: number;
  readonly firstTurnsBytes: number;
  readonly lastTurnsBytes: number;
  /** Last over first: 1 is linear. */
  readonly growth: number;
  readonly eventsPerTurn: number;
}

export interface TranslateReport {
  /** History events that translate reads per second, and entries that it gives, of one run of many turns. */
  readonly historyEventsPerSecond: number;
  readonly entriesPerSecond: number;
  /** Rows that rebuild reads from Temporal and stores per second: short runs, and one run of many turns. */
  readonly rebuiltRowsPerSecond: number;
  readonly rebuiltRunsPerSecond: number;
  readonly rebuiltLongRunRowsPerSecond: number;
}

export interface LongRun {
  readonly input: RunInput;
  readonly events: readonly HistoryEvent[];
}

function scriptOf(turns: number): [AgentScriptTurn, ...AgentScriptTurn[]] {
  const document = { order: { id: 'A-1007', item: 'kettle', totalCents: 4900, customer: 'C-77' } };
  const calling = (index: number): AgentScriptTurn => ({
    chunks: [REASONING],
    calls: [{ toolId: 'core:json.query', arguments: { document, pointer: `/order/${index}` } }],
  });
  const middle = Array.from({ length: turns - 2 }, (_, index) => calling(index + 1));
  const last = { chunks: [REASONING], final: { decision: 'done', confidence: 1 } };
  return [calling(0), ...middle, last];
}

/** One run of one agent with that many turns, ended and in the log. */
export async function playLongRun(bench: BenchHost, turns: number): Promise<LongRun> {
  bench.hint = (...hint) => bench.host.projector.hint(...hint);
  const worker = await startRealWorker(bench, { turns: scriptOf(turns) });
  const input = worker.input({ definition: between('turns', [agentNode('agent')]) });
  await bench.start(input, worker.taskQueue);
  const handle = bench.client.workflow.getHandle(input.runId);
  await handle.result();
  await worker.stop();
  await bench.host.log.catchUp(runRef(input.runId));
  const { events } = await handle.fetchHistory();
  return { input, events: events ?? [] };
}

/** Bytes and events from one model call's scheduling to the next one's. */
function turnsOf(events: readonly HistoryEvent[]): { bytes: number; events: number }[] {
  const turns: { bytes: number; events: number }[] = [];
  for (const event of events) {
    const scheduled = event.activityTaskScheduledEventAttributes;
    if (scheduled?.activityType?.name === 'inferTurn') turns.push({ bytes: 0, events: 0 });
    const turn = turns.at(-1);
    if (!turn) continue;
    turn.bytes += EventProto.encode(event).finish().length;
    turn.events++;
  }
  // The last turn decides and ends the run: it is of another kind.
  return turns.slice(0, -1);
}

const meanBytes = (turns: readonly { bytes: number }[]) =>
  turns.reduce((sum, { bytes }) => sum + bytes, 0) / turns.length;

export function measureHistory({ events }: LongRun): HistoryReport {
  const turns = turnsOf(events);
  const edge = Math.min(EDGE_TURNS, Math.floor(turns.length / 2));
  const first = meanBytes(turns.slice(0, edge));
  const last = meanBytes(turns.slice(-edge));
  return {
    turns: turns.length + 1,
    bytesPerTurn: rounded(meanBytes(turns), 0),
    firstTurnsBytes: rounded(first, 0),
    lastTurnsBytes: rounded(last, 0),
    growth: rounded(last / first, 3),
    eventsPerTurn: rounded(turns.reduce((sum, turn) => sum + turn.events, 0) / turns.length, 1),
  };
}

function translateRate({ input, events }: LongRun, forMs: number) {
  const { runId, translateVersion } = input;
  const read = events.filter((event) => historyEventIdOf(event) > 0);
  const startedMs = performance.now();
  let times = 0;
  let entries = 0;
  do {
    entries += translate(read, null, { runId, translateVersion }).entries.length;
    times++;
  } while (performance.now() - startedMs < forMs);
  const seconds = (performance.now() - startedMs) / 1_000;
  return {
    historyEventsPerSecond: rounded((times * read.length) / seconds, 0),
    entriesPerSecond: rounded(entries / seconds, 0),
  };
}

async function rebuildRate(bench: BenchHost, runIds: readonly string[]) {
  const { log } = bench.host;
  let rows = 0;
  const startedMs = performance.now();
  for (const runId of runIds) rows += (await log.rebuild(runRef(runId))).rows.length;
  const seconds = (performance.now() - startedMs) / 1_000;
  return { rows: rounded(rows / seconds, 0), runs: rounded(runIds.length / seconds, 1) };
}

export async function measureTranslate(
  bench: BenchHost,
  pair: Pair,
  work: { longRun: LongRun; forMs: number; runs: number },
): Promise<TranslateReport> {
  const { longRun, forMs, runs } = work;
  const inputs = Array.from({ length: runs }, () => runInputOf(ONE.definition));
  await atOnce(runs, IN_FLIGHT, async (index) => {
    const input = inputs[index] as RunInput;
    await bench.accept(input);
    const handle = await pair.startRun(input);
    await bench.host.stores.runs.markStarted(runRef(input.runId), handle.firstExecutionRunId);
    await handle.result();
    await bench.host.log.catchUp(runRef(input.runId));
  });
  const short = await rebuildRate(
    bench,
    inputs.map(({ runId }) => runId),
  );
  const long = await rebuildRate(bench, [longRun.input.runId]);
  return {
    ...translateRate(longRun, forMs),
    rebuiltRowsPerSecond: short.rows,
    rebuiltRunsPerSecond: short.runs,
    rebuiltLongRunRowsPerSecond: long.rows,
  };
}
