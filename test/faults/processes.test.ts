// Two facades and two workers as processes of their own on one Temporal and one PostgreSQL (architecture §1, §3.3,
// §3.4, §7): any of them may die, the others go on, and clients that read over a death miss nothing.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { Client } from '@temporalio/client';
import { EventSource } from 'eventsource';
import { afterAll, describe, expect, it } from 'vitest';
import { connectTemporal } from '../../src/adapters/temporal/connection.ts';
import { EVENT_TYPES } from '../../src/rules/events.ts';
import { isTerminalEvent, type RunStatus } from '../../src/rules/status.ts';
import { readSse, type Frame } from '../facade/sse-client.ts';
import { patientClient, type PatientClient } from '../support/faults/client.ts';
import { GATE, SPEECH } from '../support/faults/scene.ts';
import { type FaultSystem, type Half } from '../support/faults/system.ts';
import { withFaultSystem } from '../support/faults/with-system.ts';
import { apiClient, TEST_API_KEY, until, type ApiClient } from '../support/host.ts';
import { checkInvariants } from '../support/invariants.ts';
import { runRef } from '../support/run-ref.ts';
import { patient } from '../support/machine.ts';

const run = promisify(execFile);
const TEST_LIMIT_MS = patient(90_000);
/** A frame of a speech in the middle: there is more to come for seconds. */
const MIDDLE = 20;
const authorization = `Bearer ${TEST_API_KEY}`;

let system: FaultSystem;
let facades: { a: Half; b: Half };
let workers: readonly [Half, Half];
/** The worker that was killed, until it is wanted again. */
let absent: Half | undefined;
/** What has ended here: looked at when all is quiet. */
const runs: string[] = [];
/** At facade A, which stays up except where a test says otherwise. */
let client: PatientClient;
let api: ApiClient['api'];
let temporal: Client;

withFaultSystem(async (started) => {
  system = started;
  const [a, b, first, second] = await Promise.all([
    system.start('serve'),
    system.start('serve'),
    system.start('worker'),
    system.start('worker'),
  ]);
  facades = { a, b };
  workers = [first, second];
  client = patientClient(a.url);
  const plain = apiClient(a.url, TEST_API_KEY, { isPatient: false });
  api = (path, request) => plain.api(path, request);
  temporal = new Client({ connection: connectTemporal(system.temporal) });
});

afterAll(async () => {
  await temporal?.connection.close();
});

/** Answers the gate at the end of every run here, and waits for the run's end. */
async function finish(runId: string): Promise<void> {
  await reached(runId, 'waiting-approval');
  await client.answer(runId, 'ask', { value: { action: 'accept' }, key: `finish-${runId}` });
  await reached(runId, 'completed');
}

async function reached(runId: string, status: RunStatus): Promise<void> {
  await until(
    async () => (await client.snapshot(runId)).status === status,
    `run ${runId} is ${status}`,
  );
}

/** The events of the whole log, each as the bytes between the JSON read's commas. */
async function wholeLog(runId: string): Promise<string> {
  const told = await client.ask(`/v1/runs/${runId}/events`, {
    headers: { accept: 'application/json' },
  });
  expect(told.headers.get('openwop-log-stale')).toBeNull();
  return told.text;
}

const asRead = (data: readonly string[]): string =>
  `{"events":[${data.join(',')}],"isComplete":true}`;
const eventsUrl = (facade: Half, runId: string): string =>
  `${facade.url}/v1/runs/${runId}/events?streamMode=debug`;

/** The worker whose process performs the run's pending activity now. */
async function workerAt(runId: string): Promise<Half> {
  let found: Half | undefined;
  await until(async () => {
    const { raw } = await temporal.workflow.getHandle(runId).describe();
    const identity = raw.pendingActivities?.[0]?.lastWorkerIdentity ?? '';
    found = workers.find((worker) => identity.startsWith(`${worker.process().pid}@`));
    return found !== undefined;
  }, 'an activity runs');
  return found as Half;
}

describe('architecture §1 two facades and two workers', () => {
  it('a run made at one facade is followed at the other, also over the death of its worker', async () => {
    const runId = await client.start(SPEECH, {});
    let killed: Promise<Half> | undefined;
    let answered: Promise<void> | undefined;
    const { frames } = await readSse({
      url: eventsUrl(facades.b, runId),
      headers: { authorization },
      until({ id, event }) {
        if (Number(id) === MIDDLE) {
          killed = workerAt(runId).then(async (worker) => {
            await worker.kill();
            return worker;
          });
        }
        if (event === 'interrupt.requested') answered = finish(runId);
        return false;
      },
    });
    const dead = await killed;
    await answered;
    expect(asRead(frames.map(({ data }) => data))).toBe(await wholeLog(runId));
    expect(dead).toBeDefined();
    absent = dead;
    runs.push(runId);
  });
});

/** Collects the data of every frame until the ending, as any client of the EventSource standard would. */
function followByLibrary(url: string): { data: string[]; done: Promise<void> } {
  const source = new EventSource(url, {
    fetch: (input, init) => fetch(input, { ...init, headers: { ...init.headers, authorization } }),
  });
  const data: string[] = [];
  const done = new Promise<void>((resolve, reject) => {
    for (const type of Object.keys(EVENT_TYPES)) {
      source.addEventListener(type, (event) => {
        data.push(String(event.data));
        if (!isTerminalEvent(type)) return;
        source.close();
        resolve();
      });
    }
    source.addEventListener('error', ({ code, message }) => {
      // Without a code the connection broke, and the library comes back by itself.
      if (code === undefined) return;
      source.close();
      reject(new Error(`the stream was refused: ${code} ${message ?? ''}`));
    });
  });
  return { data, done };
}

/** What curl -N printed until the server closed or died. */
async function curl(url: string, lastEventId?: string): Promise<Frame[]> {
  const headers = [`authorization: ${authorization}`, 'accept: text/event-stream'];
  if (lastEventId !== undefined) headers.push(`last-event-id: ${lastEventId}`);
  const args = ['-sN', ...headers.flatMap((header) => ['-H', header]), url];
  const stdout = await run('curl', args, { timeout: TEST_LIMIT_MS }).then(
    (done) => done.stdout,
    (error: unknown) => (error as { stdout: string }).stdout,
  );
  return stdout
    .split('\n\n')
    .slice(0, -1)
    .flatMap((block) => {
      const told = /^id: (.*)\nevent: (.*)\ndata: (.*)$/.exec(block);
      return told ? [{ id: told[1], event: told[2], data: told[3] ?? '' }] : [];
    });
}

/** As a user at a terminal: whenever curl ends early, again with the last id that was printed. */
async function followByCurl(url: string): Promise<{ data: string[]; calls: number }> {
  const frames: Frame[] = [];
  let calls = 0;
  await until(async () => {
    calls++;
    frames.push(...(await curl(url, frames.at(-1)?.id)));
    return isTerminalEvent(frames.at(-1)?.event ?? '');
  }, 'curl has seen the ending');
  return { data: frames.map(({ data }) => data), calls };
}

describe('stream-modes.md: streams over the death of their facade', () => {
  it('an SSE library and curl end with exactly the bytes of the JSON read', async () => {
    const { b } = facades;
    const runId = await client.start(SPEECH, {});
    const library = followByLibrary(eventsUrl(b, runId));
    const curled = followByCurl(eventsUrl(b, runId));
    await until(() => library.data.length >= MIDDLE, 'the speech is in its middle');
    await b.kill();
    const before = library.data.length;
    await b.restart();
    await finish(runId);
    const [{ data, calls }] = await Promise.all([curled, library.done]);
    const whole = await wholeLog(runId);
    expect(before).toBeLessThan(library.data.length);
    expect(calls).toBeGreaterThan(1);
    expect(asRead(library.data)).toBe(whole);
    expect(asRead(data)).toBe(whole);
  });
});

const answerAtOnce = (runId: string) =>
  api(`/v1/runs/${runId}/interrupts/ask`, {
    body: { resumeValue: { action: 'accept' } },
    headers: { 'idempotency-key': `once-${runId}` },
  });

// Temporal away: test/app/host.test.ts.
describe('architecture §3.3 parts away', () => {
  it('PostgreSQL away: everything is 503; it comes back without a restart', async () => {
    const runId = await client.start(GATE, {});
    await reached(runId, 'waiting-approval');
    const halves = [facades.a, facades.b, ...workers].filter((half) => half !== absent);
    const pids = halves.map((half) => half.process().pid);
    await system.postgres.kill();
    const answers = await Promise.all([
      api(`/v1/runs/${runId}`),
      api('/v1/runs'),
      answerAtOnce(runId),
      api('/v1/runs', { body: { workflowId: GATE } }),
      api('/readyz'),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([503, 503, 503, 503, 503]);
    for (const told of answers.slice(0, 4)) expect(told.headers.has('retry-after')).toBe(true);
    expect((await api('/healthz')).status).toBe(200);
    await system.postgres.restart();
    await finish(runId);
    await until(async () => (await api('/readyz')).status === 200, 'the facade is ready again');
    for (const pid of pids) expect(process.kill(pid, 0)).toBe(true);
    runs.push(runId);
  });
});

describe('architecture §7 an orderly end', () => {
  it('a facade ends its streams in order, a worker hands its work on; both exit with 0', async () => {
    await absent?.restart();
    const runId = await client.start(SPEECH, {});
    let seen = 0;
    const stream = readSse({
      url: eventsUrl(facades.b, runId),
      headers: { authorization },
      until({ id }) {
        seen = Number(id);
        return false;
      },
    });
    await until(() => seen >= MIDDLE, 'the speech is in its middle');
    const worker = await workerAt(runId);
    expect(await Promise.all([facades.b.kill('SIGTERM'), worker.kill('SIGTERM')])).toEqual([0, 0]);
    const { frames } = await stream;
    absent = worker;
    await finish(runId);
    const whole = await wholeLog(runId);
    expect(frames.length).toBeGreaterThan(0);
    expect(whole).toContain(`{"events":[${frames.map(({ data }) => data).join(',')}`);
    runs.push(runId);
  });
});

/** Resolves when history holds the workflow task that raised the interrupt. */
async function interruptRaised(runId: string): Promise<void> {
  const request = { namespace: 'default', execution: { workflowId: runId } };
  await until(async () => {
    const { history } = await temporal.workflowService.getWorkflowExecutionHistory(request);
    return (history?.events ?? []).some((event) => event.workflowTaskCompletedEventAttributes);
  }, 'the first workflow task is done');
}

async function listed(status: RunStatus): Promise<string[]> {
  const { body } = await api<{ runs: { runId: string }[] }>(`/v1/runs?status=${status}`);
  return body.runs.map(({ runId }) => runId);
}

describe('architecture §3.4 leases', () => {
  it('an open run is found after its worker died right behind the task that raised the interrupt', async () => {
    const worker = workers.find((one) => one !== absent) as Half;
    let runId = '';
    // The worker's projector rests 250 ms before it looks at a run that nobody watches: the kill comes first, and where
    // a busy machine lets it come second another run is tried.
    await until(async () => {
      runId = await client.start(GATE, {});
      await interruptRaised(runId);
      await worker.kill();
      const head = await system.stores.log.head(runRef(runId));
      if (head?.status !== 'waiting-approval') return true;
      await worker.restart();
      return false;
    }, 'a worker died before its projector told of the interrupt');
    // Only a facade lives, and nobody reads the run itself.
    await until(
      async () => (await listed('waiting-approval')).includes(runId),
      'the run is listed as waiting',
    );
    await checkInvariants(system, [...runs, runId]);
  });
});
