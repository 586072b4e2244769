// Lists of runs with what each waits for (architecture §3.3): from summaries that every append keeps. A
// head that a rebuild left has none; it is made here, once, and kept.
import type { OverviewQuery, OverviewRow, RunRef, RunSummary } from '../ports/runs.ts';
import type { Stores } from '../ports/stores.ts';
import { stillAsked, summaryOf } from './fold.ts';

/** Summaries made in one go, and how often before a list: a bound on what the first list after a rebuild does. */
const MADE_AT_ONCE = 50;
const MAX_ROUNDS = 400;

export interface WaitingQuery extends Pick<OverviewQuery, 'cursor' | 'limit'> {
  readonly countTo: number;
}

type OverviewStores = Pick<Stores, 'runs' | 'log'>;

export interface OverviewParts extends OverviewStores {
  /** `sumUp`, shared by those who ask at the same time. Default: each does it alone. */
  readonly summed?: (tenant: string) => Promise<void>;
}

export interface Overview extends Omit<OverviewRow, 'run'> {
  /** With what can be answered now. */
  readonly summary: RunSummary;
}

interface OverviewPage {
  readonly runs: readonly Overview[];
  readonly nextCursor?: string;
}

/** As it is stored, without a look into history. Throws validation_error of a cursor that this host did not give. */
export async function overview(
  { summed, ...stores }: OverviewParts,
  tenant: string,
  query: OverviewQuery,
): Promise<OverviewPage> {
  if (query.waiting && query.cursor === undefined)
    await (summed?.(tenant) ?? sumUp(stores, tenant));
  return pageOf(stores, tenant, query);
}

/** Runs that wait for a person, and how many there are, counted no further than `countTo`. */
export async function waitingRuns(
  { summed, ...stores }: OverviewParts,
  tenant: string,
  { countTo, ...query }: WaitingQuery,
): Promise<OverviewPage & { readonly count: number }> {
  await (summed?.(tenant) ?? sumUp(stores, tenant));
  const page = await pageOf(stores, tenant, { ...query, waiting: true });
  return { ...page, count: await stores.runs.countWaiting(tenant, countTo, Date.now()) };
}

async function pageOf(
  stores: OverviewStores,
  tenant: string,
  query: OverviewQuery,
): Promise<OverviewPage> {
  const nowMs = Date.now();
  const page = await stores.runs.overview(tenant, query, nowMs);
  const runs: Overview[] = [];
  for (const { run, summary = await made(stores, run), ...row } of page.runs)
    runs.push({
      ...row,
      summary: { ...summary, waits: stillAsked(summary.waits, row.status, nowMs) },
    });
  return { ...page, runs };
}

/** Nobody is missing in the order of deadlines: it is made of summaries alone. */
export async function sumUp(stores: OverviewStores, tenant: string): Promise<void> {
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const runs = await stores.runs.unsummed(tenant, MADE_AT_ONCE);
    for (const run of runs) await made(stores, run);
    if (runs.length < MADE_AT_ONCE) return;
  }
}

/** Of a run that is gone meanwhile there is nothing to tell. */
async function made(stores: OverviewStores, run: RunRef): Promise<RunSummary> {
  const [row, head] = await Promise.all([
    stores.runs.find(run.tenant, run.runId),
    stores.log.head(run),
  ]);
  if (!row || !head) return { waits: [] };
  const summary = summaryOf(head.snapshot, row);
  await stores.log.summarize(run, head, summary);
  return summary;
}
