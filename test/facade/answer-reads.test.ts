// What an answer costs (architecture §3.3, §4): reads of history from the request to its end, by the API and by the
// page.
import { subjectOf } from '../../src/rules/subject.ts';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { HostError } from '../../src/rules/errors.ts';
import { createLog, type Log } from '../../src/log/log.ts';
import type { Stores } from '../../src/ports/stores.ts';
import { emitted, HistoryBuilder, memo } from '../support/histories.ts';
import { openAnyStores, registerRun, ScriptedHistory, silentLogger } from '../support/log-parts.ts';
import { startFaultHost, waitingHistory, type FaultHost } from './fault-host.ts';
import { runRef } from '../support/run-ref.ts';

const history = new ScriptedHistory();
let stores: Stores;
let log: Log;
let host: FaultHost;
let count = 0;
let runId: string;

beforeAll(async () => {
  stores = await openAnyStores();
  log = createLog({ stores, history, logger: silentLogger, processId: 'reads' });
  host = await startFaultHost({}, () => ({ log }), stores);
});
afterAll(async () => {
  log.close();
  await host.stop();
});

beforeEach(async () => {
  runId = `run-${(count += 1)}`;
  await registerRun(stores, runId);
  history.add(`${runId}-t1`, waitingHistory());
  await log.catchUp(runRef(runId));
  history.reads = 0;
});

const answer = () =>
  host.api<{ status?: string; error?: string }>(`/v1/runs/${runId}/interrupts/gate`, {
    body: { resumeValue: { action: 'accept' } },
  });

describe('architecture §3.3 an answer reads history once', () => {
  it('POST /v1/runs/{runId}/interrupts/{nodeId}', async () => {
    const { status, body } = await answer();
    expect([status, body.status]).toEqual([200, 'resolved']);
    expect(history.reads).toBe(1);
  });

  it("the form of the run's page", async () => {
    const path = `/v1/host/openwop-temporal/runs/${runId}/page-link`;
    const link = await host.api<{ url: string }>(path, { method: 'POST' });
    const opened = await fetch(link.body.url, { method: 'POST', redirect: 'manual' });
    const headers = { cookie: opened.headers.getSetCookie()[0]?.split(';')[0] ?? '' };
    const page = `${host.url}/pages/runs/${runId}`;
    const html = await (await fetch(page, { headers })).text();
    const csrf = /name="csrf" value="([^"]+)"/.exec(html)?.[1] ?? '';
    history.reads = 0;
    const taken = await fetch(`${page}/interrupts/gate`, {
      method: 'POST',
      redirect: 'manual',
      headers,
      body: new URLSearchParams({ csrf, interruptId: 'int-1', action: 'accept' }),
    });
    expect([taken.status, taken.headers.get('location')]).toEqual([
      303,
      `/pages/runs/${runId}?notice=answered`,
    ]);
    expect(history.reads).toBe(1);
  });

  it('and once more where the workflow refused it: what became of the question is in the log', async () => {
    const { engine } = host.deps;
    const send = engine.send.bind(engine);
    engine.send = async () => {
      throw new HostError('interrupt_already_resolved');
    };
    const { status, body } = await answer();
    engine.send = send;
    expect([status, body.error]).toEqual([410, 'interrupt_gone']);
    expect(history.reads).toBe(2);
  });

  it('what history held before the request is seen by it, however late it is read', async () => {
    const segment = history.segments.get(`${runId}-t1`);
    const resolved = {
      nodeId: 'gate',
      interruptId: 'int-1',
      resolvedBy: subjectOf('session', 'default', 'ada'),
      resumeValue: {},
    };
    const told = new HistoryBuilder();
    const entry = emitted('resolved', 'interrupt.resolved', resolved, { nodeId: 'gate' });
    const events = waitingHistory()
      .task(memo(told.carrier(entry)))
      .batches.slice(segment?.batches.length);
    segment?.batches.push(...events);
    const { status, body } = await answer();
    expect([status, body.error]).toEqual([409, 'interrupt_already_resolved']);
  });
});
