// What cannot be read, as HTTP tells it: in the place of what stands there, beside the rest (architecture §10.1, §11, I97).
import { afterAll, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import type { FamilyMember } from '../../src/ports/families.ts';
import { startFaultHost, type FaultHost } from './fault-host.ts';

const HOST = '/v1/host/openwop-temporal';
const unreadable = { code: 'history_undecodable', message: 'No such key.' } as const;

let host: FaultHost;
let runId = '';
beforeAll(async () => {
  host = await startFaultHost();
  const { body } = await host.api<{ runId: string }>('/v1/runs', {
    body: { workflowId: 'noop', sessionId: 'talk' },
  });
  ({ runId } = body);
});
afterAll(() => host.stop());
beforeEach(() => vi.restoreAllMocks());

type Rows = readonly object[];
const first = async (path: string, name: string): Promise<unknown> => {
  const { status, body } = await host.api<Record<string, Rows>>(path);
  expect(status).toBe(200);
  return body[name]?.[0];
};

// [I97]
it('by lists of runs', async () => {
  const { runs } = host.stores;
  const [list, overview] = [runs.list.bind(runs), runs.overview.bind(runs)];
  const marked = <Row extends object>(rows: readonly Row[]) =>
    rows.map((row) => ({ ...row, tags: [], unreadable }));
  vi.spyOn(runs, 'list').mockImplementation(async (...asked) => {
    const page = await list(...asked);
    return { ...page, runs: marked(page.runs) };
  });
  vi.spyOn(runs, 'overview').mockImplementation(async (...asked) => {
    const page = await overview(...asked);
    return { ...page, runs: marked(page.runs) };
  });
  for (const path of ['/v1/runs', `${HOST}/runs`])
    expect(await first(path, 'runs')).toMatchObject({ runId, unreadable });
});

// [I97]
it('by sessions, their runs, and what was said there', async () => {
  const { sessions } = host.stores;
  const [find, ofSession] = [sessions.find.bind(sessions), sessions.runs.bind(sessions)];
  const list = sessions.list.bind(sessions);
  vi.spyOn(sessions, 'list').mockImplementation(async (...asked) => {
    const page = await list(...asked);
    return { ...page, sessions: page.sessions.map((row) => ({ ...row, unreadable })) };
  });
  vi.spyOn(sessions, 'find').mockImplementation(async (...asked) => {
    const found = await find(...asked);
    return found && { ...found, unreadable };
  });
  vi.spyOn(sessions, 'runs').mockImplementation(async (...asked) => {
    const page = await ofSession(...asked);
    return { ...page, runs: page.runs.map((row) => ({ ...row, unreadable })) };
  });
  expect(await first(`${HOST}/sessions`, 'sessions')).toMatchObject({ unreadable });
  expect((await host.api(`${HOST}/sessions/talk`)).body).toMatchObject({ unreadable });
  expect(await first(`${HOST}/sessions/talk`, 'runs')).toMatchObject({ runId, unreadable });
  vi.spyOn(host.deps.log, 'conversationPage').mockResolvedValue({ messages: [], unreadable });
  expect((await host.api(`${HOST}/sessions/talk/conversation`)).body).toEqual({
    ...{ messages: [], unreadable },
  });
});

// [I97]
it('of runs below', async () => {
  const { families } = host.stores;
  const child = {
    ...{ run: host.stores.runs.ref('default', 'child'), runId: 'child', workflowId: 'noop' },
    ...{ parentRunId: runId, closed: true, createdAtMs: 1, tags: [] },
    status: 'completed',
    unreadable,
  } as const satisfies FamilyMember;
  vi.spyOn(families, 'descendants').mockResolvedValue([child]);
  expect(await first(`${HOST}/runs/${runId}/children`, 'runs')).toMatchObject({ unreadable });
});

// [I112]
it('by a cohort, which leaves them out', async () => {
  const { cohorts, runs } = host.stores;
  const row = await runs.find('default', runId);
  if (!row) throw new Error('no run');
  const { createdAtMs } = row;
  vi.spyOn(cohorts, 'candidates').mockResolvedValue({
    ...{ runs: [row], unreadable: [{ runId: 'run-lost', createdAtMs }] },
  });
  const leftOut = { runs: 1, runIds: ['run-lost'] };
  const body = { select: { workflowId: 'noop' }, change: {} };
  const begun = await host.api<{ cohortId: string }>(`${HOST}/cohorts`, { body });
  expect(begun).toMatchObject({ status: 201, body: { members: 1, leftOut } });
  const shown = await host.api(`${HOST}/cohorts/${begun.body.cohortId}`);
  expect(shown.body).toMatchObject({ members: 1, leftOut });
});
