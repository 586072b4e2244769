// A failover of PostgreSQL to a server that lacks what was confirmed last (architecture §4.1): the runs that it knows go on and come
// to their ends, their logs come back from history, and no process ends for it. What only the lost server had is lost.
import { expect, it } from 'vitest';
import { patientClient, type PatientClient } from '../support/faults/client.ts';
import { eventsOf } from '../support/faults/lanes.ts';
import { sayYesToEnd } from '../support/faults/say-yes.ts';
import { FAMILY, GATE, PAY, SCENE, SPEECH, SPEECHES } from '../support/faults/scene.ts';
import type { FaultSystem, Half } from '../support/faults/system.ts';
import { withFaultSystem } from '../support/faults/with-system.ts';
import { neverByChance } from '../support/broken.ts';
import { until } from '../support/host.ts';
import { checkInvariants } from '../support/invariants.ts';
import { patient } from '../support/machine.ts';

const START_LIMIT_MS = patient(120_000);
/** For all to end after the failover: a step that met it rests for half a minute at most. */
const RECOVERY_MS = patient(120_000);

let system: FaultSystem;
let client: PatientClient;
let halves: readonly Half[];

withFaultSystem(async (started) => {
  system = started;
  const [worker, facade] = await Promise.all([system.start('worker'), system.start('serve')]);
  halves = [worker, facade];
  client = patientClient(facade.url);
}, START_LIMIT_MS);

const begin = (workflowId: string, label = workflowId) =>
  client.start(workflowId, workflowId === SCENE ? { label } : {});
const yes = (runId: string) =>
  client.answer(runId, 'ask', { value: { action: 'accept' }, key: `yes ${runId}` });
const logOf = (runId: string) => eventsOf(client, runId);

async function untilItAsks(runId: string): Promise<void> {
  const asks = async () => (await client.snapshot(runId)).interrupt !== undefined;
  await until(asks, `${runId} asks`, { limitMs: RECOVERY_MS });
}

async function untilItHas(runId: string, type: string, times = 1): Promise<void> {
  const has = async () =>
    (await logOf(runId)).filter((event) => event.type === type).length >= times;
  await until(has, `${runId} has ${type}`, { limitMs: RECOVERY_MS });
}

it(
  'of the last seconds: [I118] logs come back from history, runs that are known end, [I99] and nothing is paid twice',
  { timeout: START_LIMIT_MS + 2 * RECOVERY_MS },
  async () => {
    const [answered, waiting] = await Promise.all([begin(GATE), begin(GATE)]);
    await Promise.all([answered, waiting].map(untilItAsks));
    const known = [
      answered,
      waiting,
      ...(await Promise.all([begin(SCENE, 'paid'), begin(FAMILY)])),
    ];
    await system.postgres.copy();

    // What the lost server alone has: rows of logs, an answer, payments, a run.
    const [, , paid = '', family = ''] = known;
    const speaking = await begin(SPEECH);
    await Promise.all([paid, family].map(untilItAsks));
    await yes(answered);
    await until(
      async () => (await client.snapshot(answered)).status === 'completed',
      'the run that was answered has ended',
      { limitMs: RECOVERY_MS },
    );
    await untilItHas(speaking, 'agent.reasoning.delta');
    await untilItHas(paid, 'agent.invocation.completed', 2);
    const before = await Promise.all(known.map(logOf));
    await system.postgres.failOver();

    await Promise.all(known.slice(1).map((runId) => sayYesToEnd(client, runId, RECOVERY_MS)));
    const after = await Promise.all(known.map(logOf));
    const missing = await client.ask(`/v1/runs/${speaking}`);
    await neverByChance(() => {
      after.forEach((events, at) =>
        expect(events.slice(0, before[at]?.length)).toEqual(before[at]),
      );
      expect(system.effects.requests(PAY, 'paid')).toHaveLength(1);
      expect(missing).toMatchObject({ status: 404, body: { error: 'run_not_found' } });
      expect(halves.flatMap(({ deaths }) => deaths)).toEqual([]);
    });
    await checkInvariants(system, known);
  },
);

it(
  'while text is streamed: [I118] the log holds each event once, and history tells the same',
  { timeout: START_LIMIT_MS + 2 * RECOVERY_MS },
  async () => {
    const runs = await Promise.all([begin(SPEECHES), begin(SPEECHES), begin(SPEECHES)]);
    await Promise.all(runs.map(untilItAsks));
    await system.postgres.copy();
    await Promise.all(runs.map(yes));
    // One of its streams is recorded, and the other under way.
    await Promise.all(runs.map((runId) => untilItHas(runId, 'agent.reasoned')));
    await system.postgres.failOver();
    await Promise.all(runs.map((runId) => sayYesToEnd(client, runId, RECOVERY_MS)));
    await neverByChance(() => expect(halves.flatMap(({ deaths }) => deaths)).toEqual([]));
    await checkInvariants(system, runs);
  },
);
