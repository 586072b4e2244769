// The operator's keys are rotated process by process (architecture §10.2), with agents at work in runs with a subject and without
// one: no worker ends for it, and no run fails.
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { expect, it } from 'vitest';
import { patientClient, type PatientClient } from '../support/faults/client.ts';
import { sayYesToEnd } from '../support/faults/say-yes.ts';
import { ANNOUNCED_VARIABLE, SCENE, SPEECH } from '../support/faults/scene.ts';
import { type FaultSystem, type Half } from '../support/faults/system.ts';
import { withFaultSystem } from '../support/faults/with-system.ts';
import { checkInvariants } from '../support/invariants.ts';
import { paced, patient } from '../support/machine.ts';

const LIMIT_MS = patient(180_000);
const RECOVERY_MS = patient(120_000);
const ANNOUNCED_MS = paced(2_000);
const [OLD, NEW] = ['old', 'new'].map((id) => `${id}:${randomBytes(32).toString('base64')}`) as [
  string,
  string,
];
const keys = (...list: readonly string[]) => ({ OPENWOP_ENCRYPTION_KEYS: list.join(',') });
/** What the SDK's worker ended with, or a run's log stopped for. */
const FAULTS = /the worker stopped and starts again|the projection of a run stopped/;

let system: FaultSystem;
let client: PatientClient;
let halves: readonly Half[];
const made: string[] = [];

withFaultSystem(async (started) => {
  system = started;
  const env = { ...keys(OLD), [ANNOUNCED_VARIABLE]: String(ANNOUNCED_MS) };
  halves = await Promise.all([system.start('serve', env), system.start('worker', env)]);
  client = patientClient(halves[0]?.url ?? '');
}, LIMIT_MS);

/** Of a subject and of none. */
async function atWork(label: string): Promise<readonly string[]> {
  const anna = { dataSubject: `anna ${label}` };
  const runIds = await Promise.all([
    client.start(SCENE, { label }),
    client.start(SPEECH),
    client.start(SCENE, { label: `${label} of anna` }, anna),
    client.start(SPEECH, {}, anna),
  ]);
  made.push(...runIds.slice(0, 2));
  return runIds;
}

/** Runs end as `completed`: `sayYesToEnd` throws else. */
async function allEnd(runIds: readonly string[]): Promise<void> {
  await Promise.all(runIds.map((runId) => sayYesToEnd(client, runId, RECOVERY_MS)));
}

const saidBy = (half: Half) =>
  half
    .process()
    .output()
    .split('\n')
    .filter((line) => FAULTS.test(line));

async function rows(sql: string): Promise<unknown[]> {
  const db = new pg.Client({ connectionString: system.databaseUrl });
  await db.connect();
  const found = await db.query<unknown[]>({ text: sql, rowMode: 'array' });
  await db.end();
  return found.rows.flat();
}

it(
  'keys are rotated process by process: no worker ends, no run fails, and the new key is used when all know it [I100]',
  { timeout: LIMIT_MS + RECOVERY_MS },
  async () => {
    const runIds: string[] = [];
    for (const half of halves) {
      runIds.push(...(await atWork(`rotation ${runIds.length}`)));
      expect(await rows("SELECT uses FROM process_keys WHERE uses NOT LIKE 'old=%'")).toEqual([]);
      await half.kill('SIGTERM');
      await half.restart(keys(NEW, OLD));
    }
    await expect
      .poll(() => rows("SELECT DISTINCT split_part(uses, '=', 1) FROM process_keys"), {
        timeout: RECOVERY_MS,
      })
      .toEqual(['new']);
    await expect
      .poll(() => rows("SELECT key_id FROM subject_keys WHERE wrapped NOT LIKE 'new:%'"), {
        timeout: RECOVERY_MS,
      })
      .toEqual([]);
    runIds.push(...(await atWork('rotated')));
    await allEnd(runIds);
    expect(halves.flatMap(saidBy)).toEqual([]);
    expect(halves.flatMap(({ deaths }) => deaths)).toEqual([]);
  },
);

it('the invariants hold of every run without a subject', { timeout: LIMIT_MS }, async () => {
  await checkInvariants({ ...system, env: keys(NEW, OLD) }, made);
});
