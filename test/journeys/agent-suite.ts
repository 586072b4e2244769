// The agent journeys on one database: live runs side by side, then a secret, then segments, restarts and the loss of
// the log's tables, and at the end the invariants of every run there was (architecture §8).
import { afterAll, beforeAll, describe } from 'vitest';
import type { TestHostOptions } from '../support/host.ts';
import { Journey } from './journey.ts';
import { agentJourneys } from './suite-agents.ts';
import { deskJourneys } from './suite-desk.ts';
import { lastingJourneys } from './suite-lasting.ts';
import { secretJourneys } from './suite-secrets.ts';
import { troubleJourneys } from './suite-trouble.ts';

/** A worker that leaves in mid-sentence gives the sentence so long, in ms. */
const LEAVING_GRACE_MS = 1_000;

/** `options`: the database and whether payloads are encrypted. */
export function agentSuite(name: string, options: () => Promise<TestHostOptions>): void {
  describe(`agent runs on ${name}`, () => {
    const withRestart = name === 'PGlite';
    const journey = new Journey(withRestart ? () => leavingSoon(options) : options);
    beforeAll(() => journey.begin());
    afterAll(() => journey.end());
    describe.concurrent('live', () => {
      deskJourneys(journey);
      agentJourneys(journey);
      secretJourneys(journey);
      troubleJourneys(journey);
    });
    lastingJourneys(journey, withRestart);
  });
}

async function leavingSoon(options: () => Promise<TestHostOptions>): Promise<TestHostOptions> {
  return { ...(await options()), waits: { workerGraceMs: LEAVING_GRACE_MS } };
}
