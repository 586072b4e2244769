// From the emission in workflow code to the committed row and to the byte at an SSE client in another process, and from
// the model's token to that byte. The moment of an emission is the call of the journal's sink.
import type { RunInput } from '../src/rules/run-input.ts';
import { historyEventIdOf, translate, type HistoryEvent } from '../src/translate/translate.ts';
import { agentNode, between, createDoubles, CASES, runInputOf, TWENTY } from './cases.ts';
import { startRealWorker, type BenchHost, type Token } from './bench-host.ts';
import { startReader, type ReaderProcess } from './reader-process.ts';
import type { ReadFrame } from './sse-reader.ts';
import type { Sizes } from './sizes.ts';
import { latencyOf, nowMs, type Latency } from './statistics.ts';
import { startWorker } from './workers.ts';

/** Pause between two tokens of the scripted model, in ms: fifty a second. */
const TOKEN_PACE_MS = 20;
const DELTA = 'agent.reasoning.delta';
/** On a busy machine a run may be over before its reader is there: it is measured again, so many in all for each. */
const TRIES = 10;

export interface LatencyReport {
  readonly emissionToRow: Latency;
  readonly emissionToSseByte: Latency;
  readonly tokenToSseByte: Latency;
  /** Of so many runs that speak at once, each read by a stream of its own. */
  readonly tokensOfMany: readonly { readonly streams: number; readonly latency: Latency }[];
}

interface Emission {
  readonly historyLength: number;
  readonly atMs: number;
}

interface Commit {
  readonly nextSequence: number;
  readonly atMs: number;
}

/** Notes hints and commits of one run at a time, while it is measured. */
class Witness {
  emissions: Emission[] = [];
  commits: Commit[] = [];

  constructor(bench: BenchHost, watched: () => string) {
    const { projector, stores } = bench.host;
    bench.hint = (run, temporalRunId, historyLength, terminal) => {
      if (run.runId === watched()) this.emissions.push({ historyLength, atMs: nowMs() });
      projector.hint(run, temporalRunId, historyLength, terminal);
    };
    stores.log.onChange(({ runId, nextSequence }) => {
      if (runId === watched()) this.commits.push({ nextSequence, atMs: nowMs() });
    });
  }

  clear(): void {
    this.emissions = [];
    this.commits = [];
  }
}

/** The last sequence that the log has once an emission of `historyLength` is in it; undefined for none. */
function sequenceBehind(
  events: readonly HistoryEvent[],
  { runId, translateVersion }: RunInput,
  { historyLength }: Emission,
): number | undefined {
  const taskCompleted = historyLength + 1;
  const upTo = events.filter((event) => {
    const id = historyEventIdOf(event);
    return id <= taskCompleted || causeOf(event) === taskCompleted;
  });
  const { entries } = translate(upTo, null, { runId, translateVersion });
  return entries.length === 0 ? undefined : entries.length - 1;
}

/** The workflow task that wrote the event, or 0. */
function causeOf(event: HistoryEvent): number {
  const attributes = Object.values(event).find(
    (value): value is { workflowTaskCompletedEventId: unknown } =>
      typeof value === 'object' && value !== null && 'workflowTaskCompletedEventId' in value,
  );
  return Number(attributes?.workflowTaskCompletedEventId ?? 0);
}

async function followed(
  bench: BenchHost,
  reader: ReaderProcess,
  run: { input: RunInput; taskQueue: string },
): Promise<readonly ReadFrame[]> {
  const { host } = bench;
  await bench.start(run.input, run.taskQueue);
  return reader.read({
    url: `${host.url}/v1/runs/${run.input.runId}/events?streamMode=debug`,
    apiKey: host.apiKey,
  });
}

/** Times of a run from each emission that the client was there for. */
async function emissionTimes(
  bench: BenchHost,
  witness: Witness,
  run: { input: RunInput; frames: readonly ReadFrame[] },
): Promise<{ row: number[]; byte: number[] }> {
  const { input, frames } = run;
  const thereMs = frames[0]?.atMs ?? Infinity;
  const { events } = await bench.client.workflow.getHandle(input.runId).fetchHistory();
  const times: { row: number[]; byte: number[] } = { row: [], byte: [] };
  for (const emission of witness.emissions) {
    const sequence = sequenceBehind(events ?? [], input, emission);
    if (sequence === undefined || emission.atMs <= thereMs) continue;
    const row = witness.commits.find(({ nextSequence }) => nextSequence > sequence);
    const frame = frames.find(({ id }) => id === sequence);
    if (!row || !frame) throw new Error(`event ${sequence} of ${input.runId} did not arrive`);
    times.row.push(row.atMs - emission.atMs);
    times.byte.push(frame.atMs - emission.atMs);
  }
  return times;
}

/** Times from each token to the arrival of the frame that holds its last character. */
export function tokenTimes(
  tokens: readonly { text: string; atMs: number }[],
  frames: readonly ReadFrame[],
): number[] {
  const deltas = frames.filter(({ event }) => event === DELTA);
  const times: number[] = [];
  let said = 0;
  let shown = 0;
  let next = 0;
  let arrivedMs = 0;
  for (const { text, atMs } of tokens) {
    said += text.length;
    while (shown < said && next < deltas.length) {
      const delta = deltas[next++];
      shown += delta?.delta?.length ?? 0;
      arrivedMs = delta?.atMs ?? 0;
    }
    if (shown >= said) times.push(arrivedMs - atMs);
  }
  return times;
}

async function measureEmissions(bench: BenchHost, reader: ReaderProcess, runs: number) {
  const { target, bundles, closing } = bench;
  let watched = '';
  const witness = new Witness(bench, () => watched);
  const worker = await startWorker(closing, {
    target,
    bundle: bundles.journal,
    activities: createDoubles(CASES),
    hint: (...hint) => bench.hint(...hint),
  });
  const row: number[] = [];
  const byte: number[] = [];
  // The first run warms everything up and is not counted.
  for (let run = 0, left = runs; left >= 0 && run <= runs * TRIES; run++) {
    witness.clear();
    const input = runInputOf(TWENTY.definition);
    watched = input.runId;
    const frames = await followed(bench, reader, { input, taskQueue: worker.taskQueue });
    const times = await emissionTimes(bench, witness, { input, frames });
    if (run > 0 && times.row.length === 0) continue;
    left -= 1;
    if (run === 0) continue;
    row.push(...times.row);
    byte.push(...times.byte);
  }
  await worker.stop();
  return { emissionToRow: latencyOf(row), emissionToSseByte: latencyOf(byte) };
}

interface Speech {
  /** Runs one behind the other; in each round so many speak at once. */
  readonly rounds: number;
  readonly streams: number;
  readonly tokens: number;
}

async function measureTokens(
  bench: BenchHost,
  reader: ReaderProcess,
  { rounds, streams, tokens }: Speech,
): Promise<Latency> {
  const said = new Map<string, Token[]>();
  const chunks = Array.from({ length: tokens }, (_, index) => `word ${index}, `);
  const worker = await startRealWorker(
    bench,
    {
      turns: [
        { chunks, delayMsPerChunk: TOKEN_PACE_MS, final: { decision: 'done', confidence: 1 } },
      ],
    },
    { onToken: (token) => void said.get(token.runId)?.push(token) },
  );
  const { taskQueue } = worker;
  const definition = between('tokens', [agentNode('agent')]);
  const spoken = async (): Promise<number[]> => {
    const input = worker.input({ definition });
    const ofRun: Token[] = [];
    said.set(input.runId, ofRun);
    return tokenTimes(ofRun, await followed(bench, reader, { input, taskQueue }));
  };
  const times: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const all = await Promise.all(Array.from({ length: streams }, spoken));
    times.push(...all.flat());
    said.clear();
  }
  await worker.stop();
  return latencyOf(times);
}

export async function measureLatency(
  bench: BenchHost,
  sizes: Pick<Sizes, 'latencyRuns' | 'tokenRuns' | 'tokensPerRun' | 'tokenStreams'>,
): Promise<LatencyReport> {
  const reader = startReader(bench.closing);
  const emissions = await measureEmissions(bench, reader, sizes.latencyRuns);
  const { tokenRuns, tokensPerRun: tokens, tokenStreams } = sizes;
  const tokenToSseByte = await measureTokens(bench, reader, {
    ...{ rounds: tokenRuns, streams: 1, tokens },
  });
  const tokensOfMany: { streams: number; latency: Latency }[] = [];
  for (const streams of tokenStreams) {
    const latency = await measureTokens(bench, reader, { rounds: 1, streams, tokens });
    tokensOfMany.push({ streams, latency });
  }
  await reader.stop();
  return { ...emissions, tokenToSseByte, tokensOfMany };
}
