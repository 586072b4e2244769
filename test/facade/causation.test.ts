// Where runs and events come from, by HTTP: ancestry (RFC 0040), causes and effects (seed 003 §2.3 scenario 3).
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventIdOf } from '../../src/rules/ids.ts';
import type { RunHeader } from '../../src/rules/run-input.ts';
import { batchAfter, entry, headOf, newRun, startedRun } from '../contract/given.ts';
import { definition } from '../support/definitions.ts';
import { refusals, startFaultHost, type FaultHost } from './fault-host.ts';

let host: FaultHost;
const refused = refusals(() => host);
let parent = '';
let child = '';
let nested = '';

const runWith = (header: Partial<RunHeader>): Promise<string> => {
  const run = newRun();
  const whole = { ...run.input.header, sessionId: 'talk', ...header };
  const workflow = definition(run.workflowId, []);
  const input = { ...run.input, header: whole, definition: workflow };
  return startedRun(host.stores, { ...run, input });
};
const write = async (
  runId: string,
  key: string,
  causationId?: string,
  more: { readonly timestampMs?: number } = {},
): Promise<void> => {
  const row = entry(runId, key, { type: `x.${key}`, nodeId: 'n', causationId, ...more });
  await host.stores.log.append(batchAfter(await headOf(host.stores, runId), [row]));
};

beforeAll(async () => {
  host = await startFaultHost();
  parent = await runWith({});
  child = await runWith({ parentRunId: parent, correlationId: parent, causationId: 'call-1' });
  nested = await runWith({ parentRunId: child, correlationId: parent });
  await write(parent, 'called');
  await write(child, 'started', eventIdOf(parent, 'called'));
});
afterAll(() => host.stop());

describe('seed 003 §3.4 where a run comes from', () => {
  it('ancestry is one hop up: closed, null for a root', async () => {
    const ancestry = async (runId: string) =>
      (await host.api<object>(`/v1/runs/${runId}/ancestry`)).body;
    const hostId = 'openwop-temporal';
    expect(await ancestry(parent)).toEqual({ runId: parent, hostId, parent: null });
    const called = { runId: parent, hostId, cause: 'core.subWorkflow' };
    expect(await ancestry(child)).toEqual({ runId: child, hostId, parent: called });
    const below = { runId: child, hostId, cause: 'core.subWorkflow' };
    expect(await ancestry(nested)).toEqual({ runId: nested, hostId, parent: below });
    await refused('/v1/runs/none/ancestry', {}, { status: 404, code: 'run_not_found' });
  });

  it('causes and effects of an event, over runs', async () => {
    const [called, started] = [eventIdOf(parent, 'called'), eventIdOf(child, 'started')];
    const at = (runId: string, eventId: string, what: string) =>
      `/v1/host/openwop-temporal/runs/${runId}/events/${eventId}/${what}`;
    const shown = (runId: string, eventId: string, type: string) => ({
      ...{ eventId, runId, sequence: 0, type, nodeId: 'n', timestamp: '1970-01-01T00:00:01.000Z' },
    });
    const [cause, effect] = [
      shown(parent, called, 'x.called'),
      { ...shown(child, started, 'x.started'), causationId: called },
    ];
    const up = await host.api<object>(at(child, started, 'causes'));
    expect(up.body).toEqual({ event: effect, causes: [cause] });
    const down = await host.api<object>(at(parent, called, 'effects'));
    expect(down.body).toEqual({ event: cause, effects: [{ ...effect, depth: 1 }] });
    const missing = { status: 404, code: 'not_found' };
    for (const eventId of [started, 'evt-x', 'a%00b', 'x'.repeat(200)])
      for (const what of ['causes', 'effects'])
        await refused(at(parent, eventId, what), {}, missing);
  });

  // [I97]
  it('an event with a damaged time is told in its place, with the others', async () => {
    const runId = await runWith({});
    const first = eventIdOf(runId, 'one');
    await write(runId, 'one');
    await write(runId, 'two', first);
    await write(runId, 'three', first, { timestampMs: 9e15 });
    const unreadable = { code: 'history_undecodable', message: 'A time that is stored is none.' };
    const types = [{ type: 'x.one' }, { type: 'x.two' }, { type: 'x.three', unreadable }];
    const log = await host.api<object>(`/v1/runs/${runId}/events/poll?lastSequence=-1`);
    expect(log.body).toMatchObject({ events: types });
    const at = await host.api<object>(`/v1/host/openwop-temporal/runs/${runId}/at/2`);
    expect(at.body).toMatchObject({ type: 'x.three', unreadable });
    const of = `/v1/host/openwop-temporal/runs/${runId}/events/${first}`;
    const { body } = await host.api<{ effects: object[] }>(`${of}/effects`);
    expect(body.effects).toEqual(
      expect.arrayContaining(types.slice(1).map((each) => expect.objectContaining(each) as object)),
    );
  });
});
