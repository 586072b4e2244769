// The same bare workflows on a dev server that has Temporal's default settings: how much those of ours are worth.
import { CASES } from './cases.ts';
import { measureOverhead, type OverheadRow } from './overhead.ts';
import type { Parts } from './parts.ts';
import { startDefaultServer } from './servers.ts';
import { rounded } from './statistics.ts';
import { startPair } from './workers.ts';

export interface DefaultServerRow extends OverheadRow {
  /** Bare workflow there over a run here. */
  readonly slowerThanRun: number;
}

export async function measureDefaultServer(parts: Parts): Promise<DefaultServerRow[]> {
  const ours = await parts.overhead();
  const { server, closing, sizes } = parts;
  const target = await startDefaultServer(server);
  const pair = await startPair({ target, bundles: await parts.bundles(), cases: CASES, closing });
  const rows = await measureOverhead(pair, sizes.defaultServerRounds);
  await pair.stop();
  await target.stop();
  return rows.map((row) => {
    const here = ours.find(({ name }) => name === row.name)?.run.wallMs ?? NaN;
    return { ...row, slowerThanRun: rounded(row.bare.wallMs / here, 2) };
  });
}
