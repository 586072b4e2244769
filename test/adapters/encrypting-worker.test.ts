// A real worker under payload encryption while the database of keys is away (architecture §10.2): nothing of it ends the worker,
// and no step is lost for it.
import { randomBytes, randomUUID } from 'node:crypto';
import { Context } from '@temporalio/activity';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Db } from '../../src/adapters/postgres/db.ts';
import {
  createSubjectKeys,
  placeOfKey,
  wrapped,
} from '../../src/adapters/postgres/subject-keys.ts';
import { dataConverter } from '../../src/adapters/temporal/codec.ts';
import { HostError } from '../../src/rules/errors.ts';
import { ringOf } from '../../src/rules/key-ring.ts';
import { newSecret } from '../../src/system/sealing.ts';
import { patient } from '../support/machine.ts';
import { startTemporalFixture, type TemporalFixture } from '../support/temporal-fixture.ts';
import { quietFor } from '../support/waiting.ts';

const KEY = { id: 'k', key: new Uint8Array(randomBytes(32)) };
const SECRET = wrapped(KEY, placeOfKey('sk'), newSecret());
const ANNAS = 'of anna';
const SOON = { timeout: patient(20_000) };
/** Long enough for a heartbeat to go, in ms. */
const BEAT_MS = 700;

/** Questions that get no answer; Infinity: none does. */
let away = 0;
let asked = 0;
/** The process holds the key no more, as one that has never met it. */
let forget: (keyId: string) => void;
const db = {
  async query(text: string, values: readonly unknown[]) {
    asked++;
    if (away-- > 0) throw new HostError('service_unavailable');
    away = 0;
    if (text.includes('FROM runs'))
      return [{ subject_key: String(values[0]).startsWith(ANNAS) ? 'sk' : null }];
    return [{ key_id: 'sk', wrapped: SECRET, destroyed_at_ms: null }];
  },
  listen: async (_channel: string, callback: (keyId: string) => void) => void (forget = callback),
  onReconnect: () => () => undefined,
} as unknown as Db;

let fixture: TemporalFixture;
beforeAll(async () => {
  // Nothing is opened with a key without a question.
  const subjects = await createSubjectKeys(db, [KEY], 0);
  const converter = dataConverter({ ring: ringOf([KEY]), subjects });
  fixture = await startTemporalFixture(`keys-${randomUUID()}`, { dataConverter: converter });
});
afterAll(() => fixture.stop());
beforeEach(() => {
  away = 0;
});

async function result(runId: string, scripted: () => Promise<unknown>): Promise<unknown> {
  const run = { runId, workflowType: 'trying', input: 'i', activities: { scripted } };
  expect((await fixture.runner.run(run)).status).toBe('completed');
  return fixture.client.workflow.getHandle(runId).result();
}

describe('a worker whose keys cannot be asked for', () => {
  // [I101]
  it('says that it cannot read a step, and is given it again', async () => {
    let tries = 0;
    const runId = `${ANNAS} ${randomUUID()}`;
    expect(
      await result(runId, async () => {
        tries++;
        // There is no key for what it says, and none to read the next try, or for what is said of that.
        if (tries === 1) {
          forget('sk');
          away = 6;
          throw new Error('first');
        }
        return 'read';
      }),
    ).toBe('read');
    expect(tries).toBe(2);
  });

  // [I101]
  it.each([ANNAS, 'of nobody'])(
    'tells heartbeats, failures and results of a run %s all the same',
    async (whose) => {
      const said: unknown[] = [];
      let tries = 0;
      const runId = `${whose} ${randomUUID()}`;
      const done = result(runId, async () => {
        const { cancellationSignal, info } = Context.current();
        said.push(info.heartbeatDetails);
        tries++;
        away = Infinity;
        asked = 0;
        Context.current().heartbeat(`try ${tries}`);
        await quietFor(BEAT_MS);
        said.push(cancellationSignal.aborted, asked);
        if (tries === 1) throw new Error('first');
        return 'told';
      });
      // What it told is read again when the database is there.
      await expect.poll(() => tries, SOON).toBe(1);
      await quietFor(2 * BEAT_MS);
      away = 0;
      await expect.poll(() => tries, SOON).toBe(2);
      await quietFor(2 * BEAT_MS);
      away = 0;
      expect(await done).toBe('told');
      expect(said).toEqual([undefined, false, 0, 'try 1', false, 0]);
    },
  );
});
