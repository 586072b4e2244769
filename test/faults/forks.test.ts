// Forks over deaths (architecture §6): whatever dies while one is accepted, reads its record, plays it or begins to live, the
// fork is made once, its log has no gap and one end, its effects are its own, and its source stays as it was. So do the
// comparison of two runs and their files.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from '@temporalio/client';
import { afterAll, describe, expect, it } from 'vitest';
import { connectTemporal } from '../../src/adapters/temporal/connection.ts';
import type { LogRow } from '../../src/ports/log.ts';
import type { JsonObject } from '../../src/rules/json.ts';
import { patientClient, type PatientClient } from '../support/faults/client.ts';
import { answerUntilEnd, playRound, type Plan } from '../support/faults/round.ts';
import { FAMILY, MARK, MEMBERS, PAY, SCENE } from '../support/faults/scene.ts';
import { crash, type FaultSystem, type Half, type Victim } from '../support/faults/system.ts';
import { withFaultSystem } from '../support/faults/with-system.ts';
import { TEST_API_KEY, until } from '../support/host.ts';
import { neverByChance } from '../support/broken.ts';
import { checkInvariants } from '../support/invariants.ts';
import { runRef } from '../support/run-ref.ts';
import { CACHE_DIR } from '../support/temporal.ts';
import { patient } from '../support/machine.ts';
import { takes } from '../support/waiting.ts';
import { ROOT } from '../support/root.ts';

const LIMIT_MS = patient(180_000);
const LABEL = 'forked';
const PLAN: Plan = { seed: 0, labels: [LABEL], crashes: [], doubt: 'look-it-up' };
/** Each moment with each kind of fork, as the campaign has it; else each moment once, in one death. */
const isWhole = process.env.OPENWOP_FORK_KILLS === 'whole';

let system: FaultSystem;
let halves: { worker: Half; facade: Half };
let client: PatientClient;
let temporal: { readonly client: Client; close(): Promise<void> };
let sourceRunId: string;
let source: readonly LogRow[];
let folder: string;
/** Forks, and the keys that they were made by. */
const made = new Map<string, string>();

const rowsOf = (runId: string) =>
  system.stores.log.read(runRef(runId), { after: -1, limit: 10_000 });
const parts = () => ({ client, effects: system.effects, crash: async () => undefined });

afterAll(async () => {
  if (folder) await rm(folder, { recursive: true, force: true });
});

withFaultSystem(async (started) => {
  folder = await mkdtemp(join(tmpdir(), 'openwop-fork-deaths-'));
  system = started;
  const [worker, facade] = await Promise.all([system.start('worker'), system.start('serve')]);
  halves = { worker, facade };
  client = patientClient(facade.url);
  const connection = connectTemporal(system.temporal);
  const { namespace } = system.temporal;
  temporal = { client: new Client({ connection, namespace }), close: () => connection.close() };
  const [run] = await playRound(PLAN, parts());
  sourceRunId = run?.runId ?? '';
  source = await rowsOf(sourceRunId);
}, LIMIT_MS);

afterAll(async () => {
  await temporal?.close();
}, LIMIT_MS);

type Mode = 'replay' | 'branch';

/** A branch pays again, by an identity of its own. */
const fromSeq = (mode: Mode) =>
  mode === 'replay' ? 0 : source.findIndex(({ type }) => type === 'agent.toolCalled');

async function post(mode: Mode, key: string): Promise<string> {
  const { status, body } = await client.ask<{ runId: string }>(`/v1/runs/${sourceRunId}:fork`, {
    body: { mode, fromSeq: fromSeq(mode) },
    headers: { 'idempotency-key': key },
  });
  expect([status, body]).toMatchObject([201, { sourceRunId }]);
  made.set(key, body.runId);
  return body.runId;
}

const kill = (...victims: Victim[]) => crash(system, halves, { victims, downMs: 50 });

interface StepsSoFar {
  readonly begun: readonly string[];
  readonly ended: number;
  /** Where their worker dies nobody waits for their whole time. */
  readonly areWatched: boolean;
}

/** Activities of a run that its history has as begun, and as ended. */
async function stepsOf(runId: string): Promise<StepsSoFar> {
  const history = await temporal.client.workflow
    .getHandle(runId)
    .fetchHistory()
    .catch(() => undefined);
  const events = history?.events ?? [];
  return {
    begun: events.flatMap(
      ({ activityTaskScheduledEventAttributes: it }) => it?.activityType?.name ?? [],
    ),
    ended: events.filter((it) => it.activityTaskCompletedEventAttributes).length,
    areWatched: events.every(({ activityTaskScheduledEventAttributes: it }) => {
      const isLong = Number(it?.startToCloseTimeout?.seconds ?? 0) > 30;
      return !isLong || Number(it?.heartbeatTimeout?.seconds ?? 0) > 0;
    }),
  };
}

interface Moment {
  readonly name: string;
  readonly is: (steps: StepsSoFar) => boolean;
}

const MOMENTS: readonly Moment[] = [
  { name: 'while its record is loaded', is: ({ begun }) => begun.includes('readRecording') },
  { name: 'while its record is played', is: ({ ended }) => ended > 0 },
  { name: 'as it begins to live', is: ({ begun }) => begun.some((it) => it !== 'readRecording') },
];

interface ForkAt {
  readonly moment: Moment;
  readonly mode: Mode;
}

const EACH_ALONE = MOMENTS.flatMap((moment) =>
  (['replay', 'branch'] as const).map(
    (mode) => [`${moment.name} (${mode})`, [{ moment, mode }]] as [string, ForkAt[]],
  ),
);
/** One death for a fork at each moment; a branch stays where it lives, because it asks its human. */
const AT_ONCE: [string, ForkAt[]] = [
  'as one begins to live, one is played, one is loaded and one makes its children',
  MOMENTS.map(
    (moment, index) => ({ moment, mode: index === 0 ? 'replay' : 'branch' }) as const,
  ).reverse(),
];

/** A replay never lives: what has ended is late enough. */
async function at({ is }: Moment, runId: string): Promise<void> {
  for (const limit = Date.now() + patient(60_000); Date.now() < limit; await takes(5)) {
    if (is(await stepsOf(runId))) return;
    const { status } = await client.snapshot(runId);
    if (status === 'completed' || status === 'failed') return;
  }
  assert.fail('the moment did not come');
}

async function checkFork(runId: string, mode: Mode): Promise<void> {
  const { ended } = await answerUntilEnd({
    ...{ plan: PLAN, parts: parts(), label: LABEL, runId },
    happen: () => undefined,
  });
  expect(ended.status).toBe('completed');
  const rows = await rowsOf(runId);
  const told = ({ type, nodeId, payload, timestampMs }: LogRow) =>
    JSON.stringify({
      ...{ type, nodeId, timestampMs },
      payload: payload.replaceAll(runId, sourceRunId),
    });
  const prefix = fromSeq(mode);
  expect(rows.slice(0, prefix).map(told)).toEqual(source.slice(0, prefix).map(told));
  expect(rows.filter(({ type }) => type === 'replay.diverged')).toEqual([]);
  expect((await stepsOf(runId)).areWatched).toBe(true);
}

/** By what the logs say, and by what was counted outside. */
async function checkEffects(): Promise<void> {
  const { effects } = system;
  for (const tool of [MARK, PAY] as const) {
    const performed = effects.requests(tool, LABEL).filter((it) => it.performed);
    expect(new Set(performed.map(({ key }) => key)).size).toBe(performed.length);
    let returned = 0;
    for (const runId of [sourceRunId, ...made.values()]) {
      const own = (await system.stores.runs.find('default', runId))?.input.fork;
      const rows = (await rowsOf(runId)).slice(
        own ? (own.mode === 'replay' ? Infinity : own.fromSeq) : 0,
      );
      returned += rows.filter(({ type, payload }) => {
        const { toolName, status } = JSON.parse(payload) as JsonObject;
        return type === 'agent.toolReturned' && toolName === tool && status === 'ok';
      }).length;
    }
    expect(performed.length).toBe(returned);
  }
}

const childrenOf = async (runId: string) => {
  const { runs } = await system.stores.families.children(runRef(runId), { limit: 100 });
  return runs.map(({ run }) => run.runId);
};
const plain = async (runId: string, parentRunId: string) =>
  (await rowsOf(runId)).map(({ type, nodeId, payload }) =>
    [type, nodeId, payload.replaceAll(runId, 'it').replaceAll(parentRunId, 'parent')].join(' '),
  );
const isAsking = async (runId: string) =>
  (await client.snapshot(runId)).status === 'waiting-approval';

/** A fork of a run with children, so many of which are made. */
async function forkFamily(count: number): Promise<{ check(): Promise<void> }> {
  const parent = await client.start(FAMILY, {});
  await until(() => isAsking(parent), 'the source asks');
  const before = await rowsOf(parent);
  const { status, body } = await client.ask<{ runId: string }>(`/v1/runs/${parent}:fork`, {
    body: { mode: 'branch', fromSeq: before.length },
    headers: { 'idempotency-key': `family ${count}` },
  });
  expect(status).toBe(201);
  const { runId } = body;
  const isMade = async () => (await childrenOf(runId)).length >= count;
  await until(
    async () => (await stepsOf(runId)).begun.includes('forkChildren') && (await isMade()),
    'its children are being made',
  );
  return {
    async check() {
      await until(() => isAsking(runId), 'the fork asks');
      const [of, own] = [await childrenOf(parent), await childrenOf(runId)];
      expect([of.length, own.length]).toEqual([MEMBERS, MEMBERS]);
      const logs = (runIds: readonly string[], above: string) =>
        Promise.all(runIds.map((child) => plain(child, above)));
      await until(async () => {
        const all = await system.stores.families.descendants('default', runId, 100);
        return all.every(({ closed }) => closed);
      }, 'its children end');
      expect((await logs(own, runId)).sort()).toEqual((await logs(of, parent)).sort());
      for (const each of [runId, parent]) {
        const value = { action: 'accept' };
        expect(await client.answer(each, 'ask', { value, key: `answer ${each}` })).toBe(200);
        await until(async () => (await client.snapshot(each)).status === 'completed', 'it ends');
      }
      await checkInvariants(system, [...own, runId, parent]);
      expect((await rowsOf(parent)).slice(0, before.length)).toEqual(before);
    },
  };
}

describe('architecture §6: a fork over a SIGKILL', { timeout: LIMIT_MS }, () => {
  it.each(isWhole ? EACH_ALONE : [AT_ONCE])('of the worker: %s', async (_name, forks) => {
    const runIds: string[] = [];
    for (const { moment, mode } of forks) {
      const runId = await post(mode, `${moment.name} ${mode}`);
      await at(moment, runId);
      runIds.push(runId);
    }
    const family = isWhole ? undefined : await forkFamily(1);
    await kill('worker');
    for (const [index, { mode }] of forks.entries()) await checkFork(runIds[index] ?? '', mode);
    await family?.check();
  });

  it.each(isWhole ? [0, 1, 4] : [])('of the worker, %d of its children made', async (count) => {
    const family = await forkFamily(count);
    await kill('worker');
    await family.check();
  });

  it.each(isWhole ? [0, 15, 40] : [])('of the facade, %d ms behind the request', async (ms) => {
    const key = `accepted-${ms}`;
    const asking = post('replay', key);
    await takes(ms);
    await kill('facade');
    const runId = await asking;
    expect(await post('replay', key)).toBe(runId);
    await checkFork(runId, 'replay');
  });

  it('of the database and of Temporal, while its record is loaded', async () => {
    const runId = await post('branch', 'both');
    await at(MOMENTS[0] as Moment, runId);
    await kill('postgres', 'temporal');
    await checkFork(runId, 'branch');
  });

  it('of the facade, between its acceptance and the start of its workflow: the retry, or the reaper, starts it; who compares asks again', async () => {
    const [forkRunId = ''] = made.values();
    const path = `/v1/runs/${sourceRunId}:diff?against=${forkRunId}`;
    const before = await client.ask(path);
    // Nobody can be asked to start it.
    await system.killTemporal();
    const [asking, comparing] = [post('replay', 'unstarted'), client.ask(path)];
    const unstarted = async () => {
      const rows = await system.stores.runs.unstarted(0, 100);
      return rows.map(({ runId }) => runId);
    };
    await until(async () => (await unstarted()).length > 0, 'the fork is accepted');
    const [accepted] = await unstarted();
    await halves.facade.kill();
    expect(await unstarted()).toEqual([accepted]);
    await halves.facade.restart();
    await system.temporalBack();
    expect([(await comparing).body, before.status]).toEqual([before.body, 200]);
    const runId = await asking;
    expect(runId).toBe(accepted);
    expect(await post('replay', 'unstarted')).toBe(runId);
    await checkFork(runId, 'replay');
  });

  it('each key made one fork; the effects are those that the logs tell; the source is as it was', async () => {
    const path = `/v1/runs?limit=200&workflowId=${SCENE}`;
    const { body } = await client.ask<{ runs: { runId: string }[] }>(path);
    const forks = body.runs.map(({ runId }) => runId).filter((runId) => runId !== sourceRunId);
    expect(forks.sort()).toEqual([...made.values()].sort());
    await neverByChance(checkEffects);
    expect(await rowsOf(sourceRunId)).toEqual(source);
    await checkInvariants(system, [sourceRunId, ...made.values()]);
  });
});

/** The command in a process of its own, which asks the facade unless told otherwise. */
function openwop(args: readonly string[], url = halves.facade.url) {
  const program = [join(ROOT, 'src/app/launch.js'), 'openwop', ...args];
  const env = {
    ...{ PATH: process.env.PATH, HOME: process.env.HOME, OPENWOP_CACHE_DIR: CACHE_DIR },
    ...{ OPENWOP_URL: url, OPENWOP_API_KEY: TEST_API_KEY },
  };
  let settle: (code: number | string | null) => void = () => undefined;
  const ended = new Promise<number | string | null>((resolve) => (settle = resolve));
  const child = execFile(process.execPath, program, { cwd: ROOT, env });
  child.once('close', (code, signal) => settle(signal ?? code));
  return { ended, kill: () => child.kill('SIGKILL') };
}

/** A host that gives half of the facade's answer and no more; `asked` is what it gave it to. */
async function halfAnswering() {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    void (async () => {
      const { authorization = '' } = request.headers;
      const answer = await fetch(`${halves.facade.url}${request.url}`, {
        headers: { authorization },
      });
      const text = await answer.text();
      response.writeHead(answer.status, { 'content-type': 'application/json' });
      response.write(text.slice(0, text.length / 2), () => asked.push(request.url ?? ''));
    })();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const stop = () => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${port}`, asked, stop };
}

describe('what files runs, over a SIGKILL', { timeout: LIMIT_MS }, () => {
  it('an export that is ended is whole under its name, or not there; the next one writes it', async () => {
    const path = join(folder, 'run.json');
    const args = ['export', sourceRunId, path, '--force'];
    const half = await halfAnswering();
    try {
      const exporting = openwop(args, half.url);
      await until(() => half.asked.some((it) => it.endsWith('/bundle')), 'the run is on its way');
      exporting.kill();
      expect(await exporting.ended).toBe('SIGKILL');
      expect(await readdir(folder)).toEqual([]);
    } finally {
      half.stop();
    }
    for (const ms of isWhole ? [300, 900, 1_500, 2_500] : []) {
      const exporting = openwop(args);
      await takes(ms);
      exporting.kill();
      await exporting.ended;
      const names = await readdir(folder);
      if (names.includes('run.json')) JSON.parse(await readFile(path, 'utf8'));
    }
    expect(await openwop(args).ended).toBe(0);
  });

  it('an import that is ended leaves nothing, and works the next time', async () => {
    const before = await readdir(folder);
    for (const ms of isWhole ? [300, 1_500, 3_000] : [1_500]) {
      const importing = openwop(['import', join(folder, 'run.json')]);
      await takes(ms);
      importing.kill();
      await importing.ended;
    }
    expect(await openwop(['import', join(folder, 'run.json')]).ended).toBe(0);
    expect(await readdir(folder)).toEqual(before);
    expect(await rowsOf(sourceRunId)).toEqual(source);
  });
});
