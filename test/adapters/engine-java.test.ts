// The engine port on the in-memory Java test server (architecture §7): what it says otherwise than Temporal means the
// same.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createRunEngine } from '../../src/adapters/temporal/engine.ts';
import { codeOf } from '../../src/rules/errors.ts';
import { MESSAGES, type RunMessage } from '../../src/rules/messages.ts';
import type { RunInput } from '../../src/rules/run-input.ts';
import type { RunEngine } from '../../src/ports/engine.ts';
import { startTemporalFixture, type TemporalFixture } from '../support/temporal-fixture.ts';
import { findTimeSkippingServer, startInMemoryTemporal } from '../support/time-skipping.ts';

const server = await findTimeSkippingServer();
const answer = { kind: 'resolve-interrupt', bodyDigest: 'sha256:yes', value: 'yes' } as RunMessage;
const cancellation: RunMessage = {
  kind: 'cancel',
  cancelledBy: 'tester',
  bodyDigest: 'sha256:cancel',
};
const inputOf = (runId: string) => ({ runId, limits: { maxRunDurationMs: 60_000 } }) as RunInput;

describe.skipIf(!server.available)(
  'architecture §4: the engine on the in-memory server (Java)',
  () => {
    let fixture: TemporalFixture;
    let engine: RunEngine;

    beforeAll(async () => {
      if (!server.available) return;
      fixture = await startTemporalFixture(`engine-${randomUUID()}`, {
        temporal: await startInMemoryTemporal(server),
      });
      const { connection, namespace, taskQueue } = fixture;
      engine = createRunEngine({ connection, namespace, taskQueue });
    });
    afterAll(() => fixture?.stop());

    test('it is there on 127.0.0.1 alone: it asks for no key', async () => {
      const [host = '', port = ''] = fixture.temporal.address.split(':');
      const reached = connect(Number(port), host);
      await once(reached, 'connect');
      reached.destroy();
      // What listens on every interface listens on every loopback address, too.
      await expect(once(connect(Number(port), '127.0.0.2'), 'connect')).rejects.toMatchObject({
        code: 'ECONNREFUSED',
      });
    });

    async function startWaiting(): Promise<string> {
      const runId = randomUUID();
      const { client, taskQueue } = fixture;
      await client.workflow.start('waiting', { workflowId: runId, taskQueue, args: [{}] });
      return runId;
    }

    test('a run is started once, and starting it again is success with the first segment', async () => {
      const runId = randomUUID();
      const first = await engine.start(inputOf(runId));
      expect(await engine.start(inputOf(runId))).toEqual(first);
    });

    test(`${MESSAGES['resolve-interrupt'].update} is answered; a new message after the end is run_state_conflict`, async () => {
      const runId = await startWaiting();
      const outcome = await engine.send(runId, 'u1', answer);
      expect(outcome.status).toBe('running');
      await fixture.client.workflow.getHandle(runId).result();
      expect(await engine.send(runId, 'u1', answer)).toEqual(outcome);
      expect(await engine.send(runId, 'u2', answer).catch(codeOf)).toBe('run_state_conflict');
    });

    test('a closed run that is cancelled stays as it is; an unknown run is service_unavailable', async () => {
      const runId = await startWaiting();
      await fixture.client.workflow.getHandle(runId).terminate('test');
      expect((await engine.send(runId, 'c1', cancellation)).status).toBe('unchanged');
      expect(await engine.send(randomUUID(), 'u1', answer).catch(codeOf)).toBe(
        'service_unavailable',
      );
    });
  },
);
