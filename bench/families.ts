// A run with children, deep and wide: a root starts runs that each wait for a human, and chains of runs that start each
// other down to the last generation there may be. What a child costs its parent's history, and what all of them cost in
// memory while they wait.
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from '@temporalio/client';
import { MAX_CHILD_DEPTH } from '../src/rules/children.ts';
import type { WorkflowDefinition, WorkflowNode } from '../schemas/types.generated.ts';
import { between, humanGate } from './cases.ts';
import {
  startHost,
  untilStatus,
  type StartedHost,
  type StartedHostOptions,
} from './started-host.ts';
import { rounded } from './statistics.ts';
import { atOnce } from './throughput.ts';
import { connect } from './workers.ts';

const ROOT = 'bench-family';
const LEAF = 'bench-leaf';
const NAMESPACE = 'default';
const LIMIT_MS = 180_000;
const PROBE_MS = 250;
const IN_FLIGHT = 16;
const PAGE = 100;

export interface FamiliesReport {
  /** Runs below the root; `direct`: of them those that it started itself. */
  readonly below: number;
  readonly direct: number;
  readonly generations: number;
  /** Of the root's whole history, for each child that it started and saw end. */
  readonly historyBytesPerChild: number;
  readonly historyEventsPerChild: number;
  /** All processes, before the family and while all of it waits. */
  readonly idleMiB: number;
  readonly waitingMiB: number;
  readonly addedKiBPerRun: number;
  readonly settled: boolean;
}

export interface FamiliesOptions extends Pick<
  StartedHostOptions,
  'folder' | 'cacheDir' | 'closing'
> {
  /** Children that wait for a human themselves, and chains. */
  readonly wide: number;
  readonly chains: number;
  readonly settleMs: number;
}

const starts = (id: string, workflowId: string): WorkflowNode => ({
  ...{ id, name: id, typeId: 'core.subWorkflow', position: { x: 0, y: 0 } },
  ...{ config: { workflowId }, inputs: {} },
});
const generation = (below: number) => (below === 0 ? LEAF : `bench-chain-${below}`);

function definitionsOf({ wide, chains }: FamiliesOptions): WorkflowDefinition[] {
  const links = Array.from({ length: MAX_CHILD_DEPTH - 1 }, (_, index) =>
    between(generation(index + 1), [starts('next', generation(index))]),
  );
  const children = [
    ...Array.from({ length: wide }, (_, index) => starts(`wide-${index}`, LEAF)),
    ...Array.from({ length: chains }, (_, index) =>
      starts(`chain-${index}`, generation(MAX_CHILD_DEPTH - 1)),
    ),
  ];
  return [between(LEAF, [humanGate('gate')]), ...links, between(ROOT, children)];
}

/** Runs that wait for a human; throws when there are never so many. */
async function waitingRuns({ api }: StartedHost, count: number): Promise<string[]> {
  const limit = performance.now() + LIMIT_MS;
  for (;;) {
    const ids: string[] = [];
    let cursor = '';
    do {
      const page = await api<{ runs: { runId: string }[]; nextCursor?: string }>(
        `/v1/host/openwop-temporal/runs?waiting=true&workflowId=${LEAF}&limit=${PAGE}${cursor}`,
      );
      ids.push(...page.runs.map(({ runId }) => runId));
      cursor = page.nextCursor === undefined ? '' : `&cursor=${page.nextCursor}`;
    } while (cursor !== '');
    if (ids.length === count) return ids;
    if (performance.now() > limit) throw new Error(`${ids.length} runs wait, and not ${count}`);
    await sleep(PROBE_MS);
  }
}

export async function measureFamilies(options: FamiliesOptions): Promise<FamiliesReport> {
  const { wide, chains, settleMs, closing } = options;
  const definitions = definitionsOf(options);
  const host = await startHost({ ...options, name: 'families', definitions });
  const idle = await host.atRest(settleMs);
  const { runId } = await host.api<{ runId: string }>('/v1/runs', { workflowId: ROOT });
  const asking = await waitingRuns(host, wide + chains);
  const waiting = await host.atRest(settleMs);
  await atOnce(asking.length, IN_FLIGHT, async (index) => {
    await host.api(`/v1/runs/${asking[index]}/interrupts/gate`, {
      resumeValue: { action: 'accept' },
    });
  });
  await untilStatus(host, runId, { status: 'completed', limitMs: LIMIT_MS });
  const target = { address: host.temporalAddress, namespace: NAMESPACE };
  const client = new Client({ connection: connect(closing, target), namespace: NAMESPACE });
  const { raw } = await client.workflow.getHandle(runId).describe();
  await host.stop();
  const { historySizeBytes = 0, historyLength = 0 } = raw.workflowExecutionInfo ?? {};
  const direct = wide + chains;
  const below = wide + chains * MAX_CHILD_DEPTH;
  return {
    ...{ below, direct, generations: MAX_CHILD_DEPTH },
    historyBytesPerChild: rounded(Number(historySizeBytes) / direct, 0),
    historyEventsPerChild: rounded(Number(historyLength) / direct, 1),
    idleMiB: idle.totalMiB,
    waitingMiB: waiting.totalMiB,
    addedKiBPerRun: rounded(((waiting.totalMiB - idle.totalMiB) * 1_024) / (below + 1), 0),
    settled: idle.settled && waiting.settled,
  };
}
