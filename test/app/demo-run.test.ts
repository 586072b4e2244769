// What the terminal of `npm start` says about the run that it starts, before it follows it.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { showDemoRun, type DemoParts } from '../../src/app/demo-run.ts';
import { demoRunRequest } from '../../src/demo/index.ts';
import { quietLogger } from '../support/quiet-logger.ts';

const asked: unknown[] = [];
const api = createServer((request, response) => {
  let body = '';
  request.setEncoding('utf8').on('data', (text: string) => (body += text));
  request.on('end', () => {
    asked.push([request.url, JSON.parse(body)]);
    const warnings = ['Nothing reads "x".', 'Nothing reads "y".'].map((message) => ({ message }));
    response.end(JSON.stringify({ runId: 'run-1', status: 'pending', warnings }));
  });
});
afterEach(() => void api.close());

it('each warning of the answer that accepts the run is a line of its own', async () => {
  await new Promise<void>((resolve) => api.listen(0, '127.0.0.1', resolve));
  const lines: string[] = [];
  const host = {
    url: `http://127.0.0.1:${(api.address() as AddressInfo).port}`,
    apiKey: 'key',
    temporal: { traits: { keepsRuns: true } },
    // The run is not there: nothing is followed.
    stores: { runs: { ref: (tenant: string, runId: string) => ({ tenant, runId }) } },
    log: { head: async () => undefined },
  };
  const parts = {
    ...{ host, folder: { read: () => undefined, write: () => undefined } },
    ...{ shownKey: undefined, logger: quietLogger, signal: AbortSignal.timeout(10_000) },
    say: (line: string) => lines.push(line),
  } as unknown as DemoParts;
  await showDemoRun(parts);
  expect(asked).toEqual([['/v1/runs', demoRunRequest]]);
  expect(lines.slice(0, 2)).toEqual(['Warning: Nothing reads "x".', 'Warning: Nothing reads "y".']);
});
