// `openwop replay`: what it asks for, what it tells, and how it ends for a gate of CI; and `openwop upgrade-check`.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Cohort } from '../../schemas/types.generated.ts';
import { scriptedHost, type ScriptedHost } from './scripted-host.ts';

const PATH = '/v1/host/openwop-temporal/cohorts';
const BEGIN = `POST ${PATH}`;
const ONE = `GET ${PATH}/cohort-1`;
const use = { inputTokens: 10, outputTokens: 5 };
const NONE = {
  ...{ same: 0, diverged: 0, 'outcome-changed': 0, asks: 0, failed: 0 },
  ...{ 'source-missing': 0, 'not-compared': 0, 'not-finished': 0 },
};

function cohort(more: Partial<Cohort> = {}): Cohort {
  return {
    ...{ cohortId: 'cohort-1', state: 'completed', mode: 'branch', select: { last: 2 } },
    ...{ createdAt: '2026-01-02T03:04:05.000Z', endedAt: '2026-01-02T03:05:05.000Z' },
    change: { agents: { triage: { systemPrompt: 'Be strict.' } } },
    ...{ parallel: 4, memberTimeoutMs: 1, members: 2, settled: 2, before: use, after: use },
    totals: { ...NONE, same: 2 },
    ...more,
  };
}

let host: ScriptedHost;
let folder: string;
beforeAll(async () => {
  host = await scriptedHost();
  folder = await mkdtemp(join(tmpdir(), 'openwop-replay-'));
  await writeFile(join(folder, 'prompt.md'), 'Be strict.');
});
afterAll(async () => {
  await host.close();
  await rm(folder, { recursive: true, force: true });
});

/** One run came to this, as the host reports it: counted, and by itself. */
const cameTo = (outcome: keyof Cohort['totals']): Cohort =>
  cohort({
    ...{ members: 1, settled: 1, totals: { ...NONE, [outcome]: 1 } },
    results: [
      {
        ...{ position: 0, sourceRunId: 'run-1', forkRunId: 'run-2', outcome },
        ...{ before: { status: 'completed' }, after: { status: 'completed' } },
      },
    ],
  });

const begun = (ended: Cohort = cohort()) =>
  host.script({ [BEGIN]: { status: 201, body: cohort({ settled: 0 }) }, [ONE]: { body: ended } });

describe('openwop replay', () => {
  it('asks for what was said and nothing else, once per key, and tells the report', async () => {
    begun();
    const prompt = `triage=${join(folder, 'prompt.md')}`;
    const flags = ['--last', '2', '--workflow', 'refund', '--tag', 'paid', '--parallel', '3'];
    const more = ['--prompt', prompt, '--agent-version', 'desk=2.0.0', '--model', 'small'];
    const times = [
      '--from',
      '2026-01-01T00:00:00Z',
      '--member-timeout',
      '30',
      '--status',
      'failed',
    ];
    const { code, out, err } = await host.run(['replay', ...flags, ...more, ...times]);
    expect([code, err]).toEqual([0, expect.stringContaining('Cohort cohort-1: 2 runs.')]);
    expect(host.asked[0]).toMatchObject({
      line: BEGIN,
      headers: { 'idempotency-key': expect.stringMatching(/.{8}/) as unknown },
    });
    expect(host.asked[0]?.body).toEqual({
      select: {
        ...{ last: 2, workflowId: 'refund', tag: 'paid', status: 'failed' },
        from: '2026-01-01T00:00:00.000Z',
      },
      change: {
        agents: { triage: { systemPrompt: 'Be strict.' }, desk: { packVersion: '2.0.0' } },
        configurable: { 'ai.model': 'small' },
      },
      ...{ parallel: 3, memberTimeoutMs: 30_000 },
    });
    expect(out).toContain('Cohort cohort-1: 2 of 2 runs');
    expect(out).toContain('Models: 15 tokens before, 15 tokens after.');
  });

  it('without a change every run is replayed as it was, the newest 50', async () => {
    begun();
    expect((await host.run(['replay'])).code).toBe(0);
    expect(host.asked[0]?.body).toEqual({ select: { last: 50 } });
  });

  it('by a build of the worker: asked for by its id, and told with the builds of both sides', async () => {
    const build = { buildId: 'two', sourceBuildId: 'one' };
    begun(
      cohort({
        ...{ mode: 'replay', change: { build: 'two' }, members: 1, settled: 1 },
        totals: { ...NONE, diverged: 1 },
        results: [
          {
            ...{ position: 0, sourceRunId: 'run-1', forkRunId: 'run-2', outcome: 'diverged' },
            error: { code: 'replay_diverged', message: 'It stated something else.' },
            divergence: { seq: 3, cause: 'code', build, nodeId: 'judge' },
          },
        ],
      }),
    );
    const { out } = await host.run(['replay', '--workflow', 'refund', '--build', 'two']);
    expect(host.asked[0]?.body).toEqual({
      ...{ select: { last: 50, workflowId: 'refund' }, change: { build: 'two' } },
    });
    const words = out.replaceAll(/\s+/g, ' ');
    expect(words).toContain('replayed by the code of build two');
    expect(words).toContain('replay_diverged: It stated something else.');
    expect(words).toContain(
      'from event 3 at judge on: they go by other releases of the host (the source by build one, the fork by build two)',
    );
  });

  const TELLS_NOTHING = ['asks', 'source-missing', 'not-compared', 'not-finished'];
  const outcomes = Object.keys(NONE) as (keyof Cohort['totals'])[];
  it.each<[string, readonly string[]]>([
    ['outcome', ['outcome-changed', 'failed']],
    ['divergence', ['diverged', 'outcome-changed', 'failed']],
    ['asks', ['failed']],
    ['error', ['failed']],
  ])(
    '--fail-on %s ends with 1 where a run came to one of %j, or to what tells nothing, and with 0 else',
    async (name, hits) => {
      for (const outcome of outcomes) {
        begun(cameTo(outcome));
        const { code } = await host.run(['replay', '--fail-on', name]);
        const fails = hits.includes(outcome) || TELLS_NOTHING.includes(outcome);
        expect([outcome, code]).toEqual([outcome, fails ? 1 : 0]);
        begun(cameTo(outcome));
        expect((await host.run(['replay'])).code).toBe(0);
      }
    },
  );

  it('one that was cancelled ends as a run does that is', async () => {
    begun(cohort({ state: 'cancelled' }));
    const cancelled = await host.run(['replay', '--fail-on', 'outcome']);
    begun();
    expect([cancelled.code === 0, cancelled.code === 1]).toEqual([false, false]);
  });

  it('waits while members are under way, over refusals that pass', async () => {
    const open: Partial<Cohort> = cohort({ state: 'running', settled: 1 });
    delete (open as { endedAt?: string }).endedAt;
    host.script({
      [BEGIN]: { status: 201, body: open },
      [ONE]: [
        { body: open },
        { status: 503, body: { error: 'service_unavailable', message: 'Later.' } },
        { body: cohort() },
      ],
    });
    const { code, err } = await host.run(['replay']);
    expect([code, err]).toEqual([0, expect.stringContaining('1 of 2')]);
  });

  it.each([
    [['--last', '0']],
    [['--last', '1001']],
    [['--fail-on', 'anything']],
    [['--agent-version', '2.0.0']],
    [['--configurable', '[1]']],
    [['--from', 'yesterday']],
    [['--parallel', '17']],
  ])('%j is not understood, and nothing is sent', async (flags) => {
    begun();
    const { code, out } = await host.run(['replay', ...flags]);
    expect([code, out, host.asked]).toEqual([2, '', []]);
  });

  it('show reads all members, page by page, and tells why each is not the same', async () => {
    const member = (position: number) => ({
      ...{ position, sourceRunId: `run-${position}`, forkRunId: `fork-${position}` },
      ...{ outcome: 'outcome-changed' as const },
      changes: [{ nodeId: 'decide', pointer: '/decisions/0', before: 'true', after: 'false' }],
    });
    const totals = { ...NONE, 'outcome-changed': 2 };
    host.script({
      [ONE]: [
        { body: cohort({ totals, results: [member(0)], nextFrom: 1 }) },
        { body: cohort({ totals, results: [member(1)] }) },
      ],
    });
    const { code, out } = await host.run(['replay', 'show', 'cohort-1']);
    expect(code).toBe(0);
    expect(host.asked.map(({ line }) => line)).toEqual([
      `${ONE}?from=0&limit=200`,
      `${ONE}?from=1&limit=200`,
    ]);
    for (const at of [0, 1]) expect(out).toContain(`Another outcome: run-${at} → fork-${at}`);
    expect(out).toContain('decide /decisions/0: true → false');
  });

  it('lists cohorts, cancels one, and names one that the host does not know', async () => {
    host.script({
      [`GET ${PATH}`]: { body: { cohorts: [cohort()] } },
      [`POST ${PATH}/cohort-1/cancel`]: { body: cohort({ state: 'cancelling' }) },
    });
    expect((await host.run(['replay', 'list'])).out).toMatch(/cohort-1 .*another prompt of triage/);
    expect((await host.run(['replay', 'cancel', 'cohort-1'])).out).toContain('cancelling');
    const unknown = await host.run(['replay', 'show', 'cohort-2']);
    expect([unknown.code, unknown.err]).toEqual([
      1,
      expect.stringContaining('knows no cohort cohort-2'),
    ]);
  });
});

describe('openwop upgrade-check', () => {
  it.each([0, 1])('gives its flags to the check, and ends as that does: %i', async (ends) => {
    const checked: (readonly string[])[] = [];
    const upgradeCheck = async (args: readonly string[]) => {
      checked.push(args);
      return ends;
    };
    const flags = ['--build', '2026-05', '--ended', '3'];
    expect((await host.run(['upgrade-check', ...flags], { upgradeCheck })).code).toBe(ends);
    expect((await host.run(['upgrade-check'], { upgradeCheck })).code).toBe(ends);
    expect(checked.map((args) => [...args].sort())).toEqual([[...flags].sort(), []]);
  });
});
