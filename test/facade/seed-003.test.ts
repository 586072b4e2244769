// The seed of sessions and ids, scenario by scenario and check by check (seed 003 §2.3, §6), on the stream of a session.
// Runs and rows are put into the stores as workflow code and the acceptance of children leave them.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventIdOf } from '../../src/rules/ids.ts';
import type { RunHeader } from '../../src/rules/run-input.ts';
import type { JsonObject } from '../../src/rules/json.ts';
import { batchAfter, entry, headOf, newId, newRun, startedRun } from '../contract/given.ts';
import { KEY, startFaultHost, type FaultHost } from './fault-host.ts';
import { readSse, type Frame } from './sse-client.ts';

interface Told {
  readonly event_id: string;
  readonly event_type: string;
  readonly seq: number;
  readonly run_id: string;
  readonly parent_run_id: string | null;
  readonly agent_level: string;
  readonly correlation_id: string;
  readonly causation_id: string | null;
  readonly payload: JsonObject;
}

const BATCHES = { 'call-iter-3': ['sub-1', 'sub-2'], 'call-iter-5': ['sub-3', 'sub-4'] } as const;
const sessionId = newId('session');
let host: FaultHost;
let core = '';
let total = 0;
const runs: Record<string, string> = {};

async function runWith(header: Partial<RunHeader>): Promise<string> {
  const run = newRun();
  const whole = { ...run.input.header, correlationId: run.runId, sessionId, ...header };
  return startedRun(host.stores, { ...run, input: { ...run.input, header: whole } });
}

interface Written {
  readonly type: string;
  readonly payload?: JsonObject;
  readonly causationId?: string;
}

async function write(runId: string, key: string, row: Written): Promise<void> {
  const { payload = {}, ...rest } = row;
  const rows = [entry(runId, key, { ...rest, payload: JSON.stringify(payload) })];
  await host.stores.log.append(batchAfter(await headOf(host.stores, runId), rows));
  total += 1;
}

const call = (callId: string, more: JsonObject = {}): JsonObject => ({
  ...{ agentId: 'core', toolName: 'agent:sub', callId },
  ...more,
});

async function spawn(callId: string, name: string): Promise<void> {
  const header = { parentRunId: core, correlationId: core, causationId: callId };
  const runId = await runWith(header);
  runs[name] = runId;
  await write(runId, 'run.started', {
    ...{ type: 'run.started', causationId: eventIdOf(core, callId) },
  });
}

/** Two batches of one parent, whose children work at the same time, the later batch's first. */
beforeAll(async () => {
  host = await startFaultHost();
  core = await runWith({});
  await write(core, 'run.started', { type: 'run.started' });
  for (const [callId, names] of Object.entries(BATCHES)) {
    await write(core, `reasoned-${callId}`, {
      ...{ type: 'agent.reasoned', causationId: eventIdOf(core, 'run.started') },
    });
    await write(core, callId, {
      ...{ type: 'agent.toolCalled', payload: call(callId, { inputs: {} }) },
      causationId: eventIdOf(core, `reasoned-${callId}`),
    });
    for (const name of names) await spawn(callId, name);
  }
  for (const name of ['sub-4', 'sub-1', 'sub-3', 'sub-2']) {
    const runId = runs[name] ?? '';
    await write(runId, 'tool', {
      ...{ type: 'agent.toolCalled', payload: call('inner') },
      causationId: eventIdOf(runId, 'run.started'),
    });
    await write(runId, 'error', {
      ...{ type: 'agent.toolReturned', payload: call('inner', { status: 'error' }) },
      causationId: eventIdOf(runId, 'tool'),
    });
  }
  for (const callId of Object.keys(BATCHES))
    await write(core, `returned-${callId}`, {
      ...{ type: 'agent.toolReturned', payload: call(callId, { status: 'ok', outcome: 'x' }) },
      causationId: eventIdOf(core, callId),
    });
});
afterAll(() => host.stop());

async function frames(count = total, lastId?: string): Promise<readonly Frame[]> {
  let seen = 0;
  const url = `${host.url}/v1/host/openwop-temporal/sessions/${sessionId}/events`;
  const resume: Record<string, string> = lastId === undefined ? {} : { 'last-event-id': lastId };
  const headers = { authorization: `Bearer ${KEY}`, ...resume };
  return (await readSse({ url, headers, until: () => ++seen === count })).frames;
}
const all = async (): Promise<Told[]> =>
  (await frames()).map(({ data }) => JSON.parse(data) as Told);

describe('seed 003 §2.3', () => {
  it('scenario 1: same parent, multiple subagent batches', async () => {
    const events = await all();
    const threads = new Map<string, Set<string>>();
    for (const { causation_id: by, run_id: runId } of events)
      if (by !== null) threads.set(by, (threads.get(by) ?? new Set()).add(runId));
    expect([...threads].map(([by, members]) => [by, [...members].sort()])).toEqual(
      Object.entries(BATCHES).map(([by, names]) => [by, names.map((name) => runs[name]).sort()]),
    );
    // Each thread has its anchor: the parent's event with the same call id.
    for (const by of threads.keys()) {
      const anchors = events.filter(
        ({ run_id: of, payload }) => of === core && payload.call_id === by,
      );
      expect(anchors.map(({ event_type: type }) => type)).toEqual([
        ...['agent.toolCalled', 'workflow.tool.completed'],
      ]);
    }
  });

  it('scenario 2: event replay ordering', async () => {
    const whole = await frames();
    for (const at of [0, 7, total - 2]) {
      const rest = await frames(total - at - 1, whole[at]?.id);
      expect([...whole.slice(0, at + 1), ...rest]).toEqual(whole);
    }
  });

  it('scenario 3: debug tracing', async () => {
    const failed = runs['sub-3'] ?? '';
    const at = `/v1/host/openwop-temporal/runs/${failed}/events/${eventIdOf(failed, 'error')}/causes`;
    const { body } = await host.api<{ causes: { runId: string; type: string }[] }>(at);
    // tool error → subagent invocation → parent tool call that spawned it → parent LLM decision
    expect(body.causes.map(({ runId, type }) => [runId, type])).toEqual([
      ...[
        [failed, 'agent.toolCalled'],
        [failed, 'run.started'],
      ],
      ...[
        [core, 'agent.toolCalled'],
        [core, 'agent.reasoned'],
        [core, 'run.started'],
      ],
    ]);
  });
});

describe('seed 003 §6', () => {
  it('event_id is unique across all events in a session, and is the id of its frame', async () => {
    const ids = (await all()).map(({ event_id: id }) => id);
    expect(new Set(ids).size).toBe(total);
    expect((await frames()).map(({ id }) => id)).toEqual(ids);
    for (const id of ids) expect(id).toMatch(/^evt-[0-9A-Za-z]{27}$/);
  });

  it('seq is strictly monotonic within a run', async () => {
    const last = new Map<string, number>();
    for (const { run_id: runId, seq } of await all()) {
      expect(seq).toBeGreaterThan(last.get(runId) ?? -1);
      last.set(runId, seq);
    }
    expect(last.size).toBe(5);
  });

  it('subagent events carry run, parent, root and the call that spawned them; nothing is named by task', async () => {
    for (const told of await all()) {
      const isCore = told.run_id === core;
      expect(told).toMatchObject({
        ...{ parent_run_id: isCore ? null : core, agent_level: isCore ? 'core' : 'subagent' },
        correlation_id: core,
      });
      expect(told.causation_id === null).toBe(isCore);
      expect(JSON.stringify(told)).not.toMatch(/task_?id/i);
    }
  });
});
