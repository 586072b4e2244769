// The agent journeys on one database: live runs side by side, then a secret, then segments, restarts and the loss of
// the log's tables, and at the end the invariants of every run there was (architecture §8).
import { afterAll, beforeAll, describe } from 'vitest';
import type { TestHostOptions } from '../support/host.ts';
import { Journey } from './journey.ts';
import { agentJourneys } from './suite-agents.ts';
import { deskJourneys } from './suite-desk.ts';
import { FORCED_AFTER, lastingJourneys } from './suite-lasting.ts';
import { secretJourneys } from './suite-secrets.ts';
import { troubleJourneys } from './suite-trouble.ts';

/** A worker that leaves in mid-sentence gives the sentence so long, in ms. */
const LEAVING_GRACE_MS = 1_000;

/** `options`: the database and whether payloads are encrypted. */
export function agentSuite(name: string, options: () => Promise<TestHostOptions>): void {
  describe(`agent runs on ${name}`, () => {
    const waits = { workerGraceMs: LEAVING_GRACE_MS };
    const journey = new Journey(async () => ({ ...(await options()), waits }));
    beforeAll(() => journey.begin());
    afterAll(() => journey.end());
    describe.concurrent('live', () => {
      deskJourneys(journey);
      agentJourneys(journey);
      secretJourneys(journey);
      troubleJourneys(journey);
    });
    lastingJourneys(journey, { workerLeaves: true });
  });
}

/** The secret, in runs over several segments, and all that outlives a host: what a database and a codec have a part in. */
export function lastingSuite(name: string, options: () => Promise<TestHostOptions>): void {
  describe(`what lasts of agent runs on ${name}`, () => {
    const facade = { forceContinueAsNewAfter: FORCED_AFTER };
    const journey = new Journey(async () => ({ ...(await options()), facade }));
    beforeAll(() => journey.begin());
    afterAll(() => journey.end());
    describe.concurrent('live', () => secretJourneys(journey));
    lastingJourneys(journey, { workerLeaves: false });
  });
}
