// What a newcomer waits for: from the start of the process that `npm start` runs, in folders of its own and with binaries
// cached, to the first event of the demo run in the terminal. npm's own time is not part of it.
import { startHost, type StartedHostOptions } from './started-host.ts';
import { latencyOf, nowMs, type Latency } from './statistics.ts';

const FIRST_EVENT = /run\.started/;

export interface FirstEventReport {
  readonly toFirstEvent: Latency;
}

export interface FirstEventOptions extends Pick<
  StartedHostOptions,
  'folder' | 'cacheDir' | 'closing'
> {
  readonly starts: number;
}

/** The first start of several is not counted: it may fill the cache. */
export async function measureFirstEvent(options: FirstEventOptions): Promise<FirstEventReport> {
  const times: number[] = [];
  const uncounted = options.starts > 1 ? 1 : 0;
  for (let start = 0; start < options.starts + uncounted; start++) {
    const sinceMs = nowMs();
    const host = await startHost({ ...options, name: `first-event-${start}`, definitions: [] });
    const atMs = await host.shown(FIRST_EVENT);
    if (start >= uncounted) times.push(atMs - sinceMs);
    await host.stop();
  }
  return { toFirstEvent: latencyOf(times, 0) };
}
