// The HTTP suite (architecture §8): what a client can observe, on a real Temporal server. Run by
// http.test.ts, and under encryption by encrypted.test.ts.
import { afterAll, beforeAll, describe } from 'vitest';
import type { TestHost } from '../support/host.ts';
import { readSse } from './sse-client.ts';
import { interruptTests } from './suite-interrupts.ts';
import { pageTests } from './suite-pages.ts';
import { readLog, type Envelope, type Suite } from './suite-parts.ts';
import {
  agentTests,
  cancelTests,
  discoveryTests,
  lifecycleTests,
  overviewTests,
} from './suite-runs.ts';
import { signInTests } from './suite-sign-in.ts';
import { startTests } from './suite-start.ts';
import { pollTests, streamTests } from './suite-streams.ts';

/** `start` gives a ready host with the workflows of suite-workflows.ts. */
export function httpSuite(name: string, start: () => Promise<TestHost>): void {
  describe(`HTTP on ${name}`, () => {
    let host: TestHost;
    beforeAll(async () => {
      host = await start();
    });
    afterAll(async () => {
      await host.stop();
    });
    const suite: Suite = {
      host: () => host,
      auth: () => ({ authorization: `Bearer ${host.apiKey}` }),
      log: async (runId) => (await readLog(host, runId)).events,
      stream: (runId, query = '', headers = {}) =>
        readSse({
          url: `${host.url}/v1/runs/${runId}/events${query}`,
          headers: { authorization: `Bearer ${host.apiKey}`, ...headers },
        }),
      resolve: (runId, nodeId, resumeValue, key) =>
        host.api<Envelope & { status: string }>(`/v1/runs/${runId}/interrupts/${nodeId}`, {
          body: { resumeValue },
          headers: key === undefined ? {} : { 'idempotency-key': key },
        }),
    };
    discoveryTests(suite);
    lifecycleTests(suite);
    overviewTests(suite);
    streamTests(suite);
    pollTests(suite);
    cancelTests(suite);
    interruptTests(suite);
    agentTests(suite);
    pageTests(suite);
    signInTests(suite);
    startTests(suite);
  });
}
