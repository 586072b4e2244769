// The whole bench at its smallest: everything that it promises is measured, and what does not depend on the machine is as
// it must be. Run by `npm run campaign -- bench`.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runBench } from '../../bench/bench.ts';
import { CASES } from '../../bench/cases.ts';
import { Closing } from '../../bench/closing.ts';
import { tableOf, type BenchReport } from '../../bench/report.ts';
import { SECTION_NAMES, USUAL_SECTIONS } from '../../bench/sections.ts';
import { FULL, QUICK, SMALLEST } from '../../bench/sizes.ts';
import { MAX_CHILD_DEPTH } from '../../src/rules/children.ts';
import { MAX_INFLIGHT_REQUESTS } from '../../src/opensentience/messages.ts';
import { patient } from '../support/machine.ts';
import { CACHE_DIR } from '../support/temporal.ts';

const LIMIT_MS = patient(600_000);
const closing = new Closing();
let report: Required<BenchReport>;

beforeAll(async () => {
  report = (await runBench({
    sizes: SMALLEST,
    closing,
    progress: () => {},
    cacheDir: CACHE_DIR,
  })) as Required<BenchReport>;
}, LIMIT_MS);

afterAll(() => closing.close(), LIMIT_MS);

/** Paths of all numbers in a report that are not finite. */
function holes(value: unknown, path = ''): string[] {
  if (typeof value === 'number') return Number.isFinite(value) ? [] : [path];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, item]) => holes(item, `${path}/${name}`));
}

describe('bench', () => {
  it('measures everything: every number is there', () => {
    expect(holes(JSON.parse(JSON.stringify(report)))).toEqual([]);
    expect(JSON.stringify(report)).not.toContain('null');
    const { emissionToRow, emissionToSseByte, tokenToSseByte, tokensOfMany } = report.latency;
    expect(emissionToRow.samples).toBeGreaterThan(0);
    expect(emissionToSseByte.samples).toBe(emissionToRow.samples);
    expect(tokenToSseByte.samples).toBe(SMALLEST.tokensPerRun * SMALLEST.tokenRuns);
    expect(tokensOfMany.map(({ streams, latency }) => [streams, latency.samples])).toEqual(
      SMALLEST.tokenStreams.map((streams) => [streams, SMALLEST.tokensPerRun * streams]),
    );
    expect(report.memory.idleByProcess).toHaveProperty('node');
    // The server's process is called as the way that it was obtained by calls it (README: Temporal's server).
    expect(Object.keys(report.memory.idleByProcess).join()).toMatch(/temporal|dev-server/);
  });

  it('architecture §2.3: a sequential run has exactly the history events of the bare workflow', () => {
    const sequential = report.overhead.filter(({ parallel }) => !parallel);
    expect(sequential.map(({ activities }) => activities)).toEqual([1, 5, 20]);
    for (const row of sequential) expect(row).toMatchObject({ historyEventsRatio: 1 });
  });

  it('architecture §2.3: a run whose tool is an agent has the history events of one whose tool is the host', () => {
    const { runs } = report.agents;
    expect(runs).toMatchObject({ calls: SMALLEST.callsPerAgentRun, historyEventsRatio: 1 });
    expect(runs.historyEvents.agent).toBe(runs.historyEvents.inProcess);
  });

  it('seed 004: agents are called one by one, with a full connection, and when many are connected', () => {
    const { alone, many, inFlight } = report.agents;
    expect(inFlight.full).toBe(MAX_INFLIGHT_REQUESTS + 100);
    expect(SMALLEST.agentCallsPerRound).toBeGreaterThan(inFlight.full);
    expect([alone.agents, many.agents]).toEqual([1, SMALLEST.connectedAgents]);
    for (const { inProcess, agent, callsPerSecond } of [alone, many]) {
      expect([inProcess.samples, agent.samples]).toEqual(Array(2).fill(SMALLEST.agentCalls));
      expect(Math.min(callsPerSecond.some, callsPerSecond.full)).toBeGreaterThan(0);
    }
    for (const { connectedAgents } of [FULL, QUICK]) expect(connectedAgents).toBe(50);
  });

  it('seed 003 §3.4: a run has children, deep and wide, within the bounds', () => {
    const { families } = report;
    const [wide, chains] = [SMALLEST.wideChildren, SMALLEST.chainsOfChildren];
    expect(families).toMatchObject({ direct: wide + chains, generations: MAX_CHILD_DEPTH });
    expect(families.below).toBe(wide + chains * MAX_CHILD_DEPTH);
    expect(FULL.wideChildren + FULL.chainsOfChildren * MAX_CHILD_DEPTH).toBe(200);
    expect(families.historyBytesPerChild).toBeGreaterThan(0);
  });

  it('a long run is replayed, branched, compared, exported and imported', () => {
    const { events, bundle, replay } = report.forks;
    expect(events).toBeGreaterThan(SMALLEST.forkedAgentNodes * 10);
    expect(bundle.differs).toBe(false);
    // What it is made from is in its own history.
    expect(replay.historyBytesPerEvent).toBeGreaterThan(100);
  });

  it('what somebody waits for over HTTP, many subscribers, disk, and a host that dies', () => {
    const { turnaround, recovery } = report;
    for (const one of [turnaround.startToEnd, turnaround.answerToEnd, turnaround.bareStartToEnd])
      expect(one.samples).toBe(SMALLEST.turnaroundRounds);
    expect(turnaround.fanOut.subscribers).toBe(SMALLEST.subscribers);
    expect(turnaround.disk.runs).toBe(SMALLEST.diskRuns);
    expect(recovery.kills).toBe(SMALLEST.kills);
    expect(recovery.killToEvent.samples).toBe(SMALLEST.kills * SMALLEST.runsPerKill);
    expect(report['first-event'].toFirstEvent.samples).toBe(SMALLEST.demoStarts);
    expect([FULL.subscribers, FULL.kills]).toEqual([500, 20]);
  });

  it('reads and answers among many runs that have ended, where there is PostgreSQL', ({ skip }) => {
    const { scale } = report;
    skip(scale.missing !== undefined, scale.missing);
    expect(scale).toMatchObject({ ended: SMALLEST.endedRuns, waiting: SMALLEST.waitingBesides });
    for (const { p50Ms } of [scale.listPage, scale.snapshot, scale.eventsPage, scale.answerToEnd])
      expect(p50Ms).toBeGreaterThan(0);
    expect(scale.kBPerWaitingRun).toBeGreaterThan(0);
    expect([FULL.endedRuns, FULL.waitingBesides]).toEqual([100_000, 10_000]);
  });

  it('full load that goes on, which is measured when it is named', () => {
    const { soak } = report;
    expect(soak.runs).toBeGreaterThan(0);
    expect(soak.samples).toBeGreaterThan(2);
    expect(USUAL_SECTIONS).toEqual(SECTION_NAMES.filter((name) => name !== 'soak'));
    expect(FULL.soakMs).toBe(30 * 60_000);
  });

  it('both servers ran every case', () => {
    const names = CASES.map(({ name }) => name);
    expect(report.overhead.map(({ name }) => name)).toEqual(names);
    expect(report.defaultServer.map(({ name }) => name)).toEqual(names);
  });

  it('architecture §2.6: history grows linearly with turns', () => {
    expect(report.history.growth).toBeGreaterThan(0.9);
    expect(report.history.growth).toBeLessThan(1.1);
  });

  it('the table has three columns and names the machine by cores and memory alone', () => {
    const [machine, , ...rows] = tableOf(report).trimEnd().split('\n');
    expect(machine).toMatch(/^Medians of one run on \d+ cores and \d+ GiB of memory\.$/);
    for (const row of rows) expect(row.split('|')).toHaveLength(5);
  });
});
