// Lists of runs with what each waits for (architecture §3.3): from summaries that every append keeps.
import type { OverviewQuery, OverviewRow, RunStore } from '../ports/runs.ts';
import { stillAsked } from './fold.ts';

export interface WaitingQuery extends Pick<OverviewQuery, 'cursor' | 'limit'> {
  readonly countTo: number;
}

/** Its summary has what can be answered now. */
export type Overview = Omit<OverviewRow, 'run'>;

interface OverviewPage {
  readonly runs: readonly Overview[];
  readonly nextCursor?: string;
}

/** As it is stored, without a look into history. Throws validation_error of a cursor that this host did not give. */
export async function overview(
  runs: Pick<RunStore, 'overview'>,
  tenant: string,
  query: OverviewQuery,
): Promise<OverviewPage> {
  const nowMs = Date.now();
  const page = await runs.overview(tenant, query, nowMs);
  return {
    ...page,
    runs: page.runs.map(({ run: _, summary, ...row }) => ({
      ...row,
      summary: { ...summary, waits: stillAsked(summary.waits, row.status, nowMs) },
    })),
  };
}

/** Runs that wait for a person, and how many there are, counted no further than `countTo`. */
export async function waitingRuns(
  runs: Pick<RunStore, 'overview' | 'countWaiting'>,
  tenant: string,
  { countTo, ...query }: WaitingQuery,
): Promise<OverviewPage & { readonly count: number }> {
  const page = await overview(runs, tenant, { ...query, waiting: true });
  return { ...page, count: await runs.countWaiting(tenant, countTo, Date.now()) };
}
