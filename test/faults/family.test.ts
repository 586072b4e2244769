// A supervisor and ten workers in two batches, on a real server with PostgreSQL, while both halves of the host die by
// SIGKILL: each worker starts and ends once, the loser of the first batch is cancelled, a question of the second waits
// for its human, what models cost is told once, and the stream of the session is the merge of all logs (seed 003 §3.3).
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import type { RunEventDoc, WorkflowDefinition } from '../../schemas/types.generated.ts';
import { expectLawful } from '../facade/suite-parts.ts';
import { readSse, type Frame } from '../facade/sse-client.ts';
import { payloadsIn } from '../support/children.ts';
import { chain, definition, edge, node } from '../support/definitions.ts';
import { patientClient, type PatientClient } from '../support/faults/client.ts';
import { eventsOf } from '../support/faults/lanes.ts';
import { type FaultSystem, type Half } from '../support/faults/system.ts';
import { withFaultSystem } from '../support/faults/with-system.ts';
import { TEST_API_KEY, until } from '../support/host.ts';
import { checkInvariants } from '../support/invariants.ts';
import { writeCaller, writeDefinition } from '../support/opensentience/agent-folders.ts';
import { patient } from '../support/machine.ts';
import { takes } from '../support/waiting.ts';

const START_LIMIT_MS = patient(120_000);
const TEST_LIMIT_MS = patient(240_000);
/** Pause before a reader that was cut off asks again. */
const RETRY_MS = 100;
const [BOSS, CLERK] = ['local.faults.family.boss', 'local.faults.family.clerk'];
/** Of each batch, beside one that is something else. */
const CLERKS = Array.from({ length: 4 }, () => `agent:${CLERK}`);
const CHILDREN = 2 * (CLERKS.length + 1);
const orders = (last: string) => ({ kind: 'next-worker', nextWorkerIds: [...CLERKS, last] });
const SESSION = 'session-of-the-family';

const boss = (id: string, step: number) =>
  node(id, 'core.orchestrator.supervisor', {
    agent: { agentId: BOSS },
    inputs: { step: { type: 'static', value: step } },
  });
const batch = (id: string, joinPolicy: object) =>
  node(id, 'core.dispatch', { config: { fanOutPolicy: 'parallel', joinPolicy } });

const DEFINITIONS: readonly WorkflowDefinition[] = [
  definition(
    'family',
    [
      ...[boss('first', 1), batch('quorum', { mode: 'quorum', quorum: CLERKS.length })],
      ...[boss('second', 2), batch('all', { mode: 'wait-all' })],
      ...[boss('third', 3), node('end', 'core.dispatch')],
    ],
    ['first', 'quorum', 'second', 'all', 'third', 'end']
      .slice(1)
      .map((id, at, ids) => edge(ids[at - 1] ?? 'first', id)),
  ),
  chain('slow', [node('delay', 'core.delay', { config: { ms: 600_000 } })]),
  chain('asks', [node('gate', 'core.approvalGate', { config: { title: 'Shall it?' } })]),
];

let system: FaultSystem;
let folder: string;
let worker: Half;
let facade: Half;
let client: PatientClient;

afterAll(async () => {
  if (folder) await rm(folder, { recursive: true, force: true });
});

withFaultSystem(async (started) => {
  system = started;
  folder = await mkdtemp(join(tmpdir(), 'openwop-family-'));
  const [agents, definitions] = [join(folder, 'agents'), join(folder, 'definitions')];
  const decides = (decision: object) => ({ final: { decision, confidence: 1 } });
  const at = (step: number, decision: object) => ({
    ...{ path: 'task.step', equals: step, turn: decides(decision) },
  });
  await writeCaller(agents, {
    ...{ agentId: BOSS, toolAllowlist: [] },
    turns: [
      {
        cases: [at(1, orders('slow')), at(2, orders('asks'))],
        ...decides({ kind: 'terminate', reason: 'all is done' }),
      },
    ],
  });
  await writeCaller(agents, {
    ...{ agentId: CLERK, toolAllowlist: [] },
    // Long enough for a death in the middle of it.
    turns: [{ chunks: ['I ', 'look ', 'at ', 'it.'], delayMsPerChunk: 250, ...decides({}) }],
  });
  for (const each of DEFINITIONS) await writeDefinition(definitions, each);
  const env = { OPENWOP_AGENTS_DIR: agents, OPENWOP_FIXTURES_DIR: definitions };
  [worker, facade] = await Promise.all([system.start('worker', env), system.start('serve', env)]);
  client = patientClient(facade.url);
});

interface SessionPage {
  readonly runs: readonly { runId: string; workflowId: string; status: string }[];
}
async function runsOf(): Promise<SessionPage['runs']> {
  const path = `/v1/host/openwop-temporal/sessions/${SESSION}?limit=100`;
  return (await client.ask<SessionPage>(path)).body.runs;
}

/** Follows the session as a careful client does: from the last event that it has, over every break. */
function followSession(): { readonly frames: readonly Frame[]; stop(): Promise<void> } {
  const frames: Frame[] = [];
  let isStopped = false;
  const url = `${facade.url}/v1/host/openwop-temporal/sessions/${SESSION}/events`;
  const following = (async () => {
    while (!isStopped) {
      const last = frames.at(-1)?.id;
      const headers = {
        authorization: `Bearer ${TEST_API_KEY}`,
        ...(last === undefined ? {} : { 'last-event-id': last }),
      };
      await readSse({
        ...{ url, headers },
        until: (frame) => {
          frames.push(frame);
          return isStopped;
        },
      }).catch(() => undefined);
      await takes(RETRY_MS);
    }
  })();
  return {
    frames,
    async stop() {
      isStopped = true;
      // It may wait for an event that never comes.
      await Promise.race([following, takes(1_000)]);
    },
  };
}

const told = ({ data }: Frame) => JSON.parse(data) as { run_id: string; seq: number };

it(
  'ten workers in two batches, through a death of the worker, and one of the facade',
  { timeout: TEST_LIMIT_MS },
  async () => {
    const headers = { 'idempotency-key': 'family' };
    const { body } = await client.ask<{ runId: string }>('/v1/runs', {
      ...{ headers, body: { workflowId: 'family', sessionId: SESSION } },
    });
    const { runId } = body;
    const session = followSession();
    const dispatched = async () =>
      payloadsIn(await eventsOf(client, runId), 'node.dispatched').length;
    await until(async () => (await dispatched()) > 0, 'the first batch is under way');
    await worker.kill();
    await worker.restart();
    const waiting = async () =>
      (await runsOf()).find(
        ({ workflowId, status }) => workflowId === 'asks' && status === 'waiting-approval',
      );
    await until(async () => (await waiting()) !== undefined, 'a worker asks', {
      limitMs: START_LIMIT_MS,
    });
    await facade.kill();
    await facade.restart();
    const asking = (await waiting())?.runId ?? '';
    const answer = { value: { action: 'accept' }, key: 'family-answer' };
    expect(await client.answer(asking, 'gate', answer)).toBe(200);
    const isEnded = async () => (await client.snapshot(runId)).status === 'completed';
    await until(isEnded, 'the supervisor ends the run', { limitMs: START_LIMIT_MS });

    const runs = await runsOf();
    expect(runs).toHaveLength(CHILDREN + 1);
    const logs = new Map<string, readonly RunEventDoc[]>();
    for (const run of runs) logs.set(run.runId, await eventsOf(client, run.runId));
    for (const log of logs.values()) expectLawful(log);
    await checkInvariants(system, [...logs.keys()]);
    const ends = runs.map(({ workflowId, status }) => `${workflowId} ${status}`);
    const count = (end: string) => ends.filter((one) => one === end).length;
    expect([count('slow cancelled'), count('asks completed'), count('family completed')]).toEqual([
      ...[1, 1, 1],
    ]);

    const own = logs.get(runId) ?? [];
    const joins = payloadsIn(own, 'core.dispatch.join');
    expect(joins).toMatchObject([
      { joinOutcome: 'satisfied', completedCount: CLERKS.length, cancelledCount: 1 },
      { joinOutcome: 'satisfied', completedCount: CLERKS.length + 1, cancelledCount: 0 },
    ]);
    const children = payloadsIn(own, 'node.dispatched').map(({ childRunId }) => childRunId);
    expect(new Set(children).size).toBe(CHILDREN);
    const ended = payloadsIn(own, 'core.workflowChain.event')
      .filter(({ phase }) => String(phase).startsWith('child.'))
      .map(({ childRunId }) => childRunId);
    expect([...ended].sort()).toEqual([...children].sort());
    // What it cost: three turns of the supervisor, one of each clerk, each told once.
    const usage = [...logs.values()].flatMap((log) => payloadsIn(log, 'provider.usage'));
    expect(usage).toHaveLength(3 + 2 * CLERKS.length);

    const all = [...logs.values()].reduce((sum, log) => sum + log.length, 0);
    await until(() => session.frames.length >= all, 'the session is read to its end');
    await session.stop();
    expect(session.frames).toHaveLength(all);
    expect(new Set(session.frames.map(({ id }) => id)).size).toBe(all);
    for (const [id, log] of logs) {
      const seen = session.frames.map(told).filter(({ run_id }) => run_id === id);
      expect(seen.map(({ seq }) => seq)).toEqual(log.map(({ sequence }) => sequence));
    }
    expect([...worker.deaths, ...facade.deaths]).toEqual([]);
  },
);
