// What the journal costs (architecture §2.3): runs against bare workflows with the same activities on the same server,
// in interleaved rounds. Ratios are medians of each round's own ratio, so that a machine that slows down hits both
// alike.
import type { WorkflowHandle } from '@temporalio/client';
import { CASES, runInputOf, type BenchCase } from './cases.ts';
import { median, rounded } from './statistics.ts';
import type { Pair } from './workers.ts';
import type { BarePlan } from './workflows/bare.ts';

export interface OverheadRow {
  readonly name: string;
  readonly activities: number;
  readonly parallel: boolean;
  readonly historyEventsRatio: number;
  readonly wallRatio: number;
  readonly historyBytesRatio: number;
  /** Medians. Times from the start call to the result. */
  readonly bare: Measured;
  readonly run: Measured;
  readonly rounds: number;
}

export interface Measured {
  readonly wallMs: number;
  readonly historyEvents: number;
  readonly historyBytes: number;
}

interface Round {
  readonly bare: Measured;
  readonly run: Measured;
}

/** From the start to the result. */
export async function measured(start: () => Promise<WorkflowHandle>): Promise<Measured> {
  const startedMs = performance.now();
  const handle = await start();
  await handle.result();
  const wallMs = performance.now() - startedMs;
  const { raw } = await handle.describe();
  const info = raw.workflowExecutionInfo;
  return {
    wallMs,
    historyEvents: Number(info?.historyLength ?? 0),
    historyBytes: Number(info?.historySizeBytes ?? 0),
  };
}

/** The first run of each is not counted. Bare and run take turns in being first. */
export async function measureOverhead(pair: Pair, rounds: number): Promise<OverheadRow[]> {
  const plans = new Map<BenchCase, BarePlan>();
  for (const one of CASES) {
    const plan = await pair.planOf(one);
    plans.set(one, plan);
    await (await pair.startBare(plan)).result();
  }
  const results = new Map<BenchCase, Round[]>(CASES.map((one) => [one, []]));
  for (let round = 0; round < rounds; round++) {
    for (const [one, plan] of plans) {
      const bare = () => measured(() => pair.startBare(plan));
      const run = () => measured(() => pair.startRun(runInputOf(one.definition)));
      const bareFirst = round % 2 === 0;
      const first = await (bareFirst ? bare() : run());
      const second = await (bareFirst ? run() : bare());
      const both = bareFirst ? { bare: first, run: second } : { bare: second, run: first };
      results.get(one)?.push(both);
    }
  }
  return [...results].map(([one, all]) => rowOf(one, all));
}

function rowOf({ name, activities, parallel }: BenchCase, rounds: readonly Round[]): OverheadRow {
  const ratio = (of: (it: Measured) => number) =>
    rounded(median(rounds.map(({ bare, run }) => of(run) / of(bare))), 3);
  return {
    name,
    activities,
    parallel,
    historyEventsRatio: ratio((it) => it.historyEvents),
    wallRatio: ratio((it) => it.wallMs),
    historyBytesRatio: ratio((it) => it.historyBytes),
    bare: medians(rounds.map(({ bare }) => bare)),
    run: medians(rounds.map(({ run }) => run)),
    rounds: rounds.length,
  };
}

function medians(all: readonly Measured[]): Measured {
  return {
    wallMs: rounded(median(all.map(({ wallMs }) => wallMs)), 1),
    historyEvents: median(all.map(({ historyEvents }) => historyEvents)),
    historyBytes: median(all.map(({ historyBytes }) => historyBytes)),
  };
}
