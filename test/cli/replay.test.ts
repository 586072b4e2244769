// `openwop replay` (architecture §6): what is asked of the host, the report, and the gate with its exit codes.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Cohort, CohortMemberResult } from '../../schemas/types.generated.ts';
import { unreadableText } from '../../src/words/unreadable.ts';
import { refusal, scriptedHost, type ScriptedHost } from './scripted-host.ts';

const COHORTS = '/v1/host/openwop-temporal/cohorts';
type Outcome = NonNullable<CohortMemberResult['outcome']>;

let host: ScriptedHost;
let folder: string;
beforeAll(async () => {
  host = await scriptedHost();
  folder = await mkdtemp(join(tmpdir(), 'openwop-replay-'));
});
afterAll(async () => {
  await host.close();
  await rm(folder, { recursive: true, force: true });
});

/** A cohort whose runs, run-0 and on, come to these. */
function cohort(outcomes: readonly Outcome[], more: Partial<Cohort> = {}): Cohort {
  const of = (outcome: Outcome): number => outcomes.filter((one) => one === outcome).length;
  return {
    ...{
      cohortId: 'cohort-a',
      state: 'completed',
      mode: 'fork',
      createdAt: '2026-01-01T00:00:00Z',
    },
    ...{ endedAt: '2026-01-01T00:01:00Z', select: { workflowId: 'desk', last: 50 } },
    change: { agents: { judge: {} } },
    ...{ members: outcomes.length, settled: outcomes.length },
    totals: {
      ...{ same: of('same'), diverged: of('diverged'), asks: of('asks'), failed: of('failed') },
      ...{ 'outcome-changed': of('outcome-changed'), 'source-missing': of('source-missing') },
      ...{ 'not-compared': of('not-compared'), 'not-finished': of('not-finished') },
    },
    ...{ before: { inputTokens: 1, outputTokens: 1 }, after: { inputTokens: 1, outputTokens: 1 } },
    results: outcomes.map((outcome, position) => ({
      ...{ position, outcome, sourceRunId: `run-${position}`, forkRunId: `fork-${position}` },
      ...{ before: { status: 'completed' }, after: { status: 'completed' } },
    })),
    ...more,
  } as Cohort;
}

function script(whole: Cohort): void {
  host.script({
    [`POST ${COHORTS}`]: { status: 201, body: { ...whole, results: undefined } },
    [`GET ${COHORTS}/cohort-a`]: { body: whole },
  });
}

async function replay(outcomes: readonly Outcome[], ...flags: string[]) {
  script(cohort(outcomes));
  return host.run(['replay', '--workflow', 'desk', '--model', 'other', ...flags]);
}

const REPLAY_ENDED = { error: { code: 'replay_diverged', message: 'Another fact.' } };

describe('the gate of openwop replay', () => {
  it.each<[string, readonly Outcome[], readonly string[], number]>([
    ['nothing is asked for', ['outcome-changed', 'failed'], [], 0],
    ['another outcome', ['same', 'outcome-changed'], ['--fail-on', 'outcome'], 1],
    ['another way is no other outcome', ['diverged'], ['--fail-on', 'outcome'], 0],
    ['another way', ['diverged'], ['--fail-on', 'divergence'], 1],
    ['a question', ['same', 'asks'], ['--fail-on', 'outcome'], 1],
    ['what cannot be told', ['same', 'source-missing'], ['--fail-on', 'outcome'], 1],
    ['what was not compared', ['same', 'not-compared'], ['--fail-on', 'error'], 1],
    ['what was not done', ['same', 'not-finished'], ['--fail-on', 'divergence'], 1],
    [
      'what cannot be told of another run',
      ['outcome-changed', 'not-compared'],
      ['--wrong', 'run-0'],
      1,
    ],
    ['it is permitted', ['same', 'asks'], ['--fail-on', 'outcome', '--permit', 'asks'], 0],
    [
      'another is permitted',
      ['same', 'asks'],
      ['--fail-on', 'outcome', '--permit', 'not-finished'],
      1,
    ],
    [
      'two are permitted',
      ['same', 'asks', 'source-missing'],
      ['--fail-on', 'error', '--permit', 'asks', '--permit', 'source-missing'],
      0,
    ],
    [
      'it is permitted, and of no run anything is known',
      ['asks', 'source-missing'],
      ['--fail-on', 'error', '--permit', 'asks', '--permit', 'source-missing'],
      1,
    ],
    ['there is no run', [], ['--fail-on', 'outcome'], 1],
    ['the wrong one is righted', ['same', 'outcome-changed'], ['--wrong', 'run-1'], 0],
    ['it asks a human now', ['same', 'asks'], ['--fail-on', 'asks', '--wrong', 'run-1'], 0],
    ['it is as wrong as before', ['same', 'same'], ['--wrong', 'run-1'], 1],
    ['it came to the same in other words', ['diverged'], ['--wrong', 'run-0'], 1],
    ['it fails', ['failed'], ['--wrong', 'run-0'], 1],
    ['nobody can tell', ['source-missing'], ['--wrong', 'run-0'], 1],
    ['it is not among them', ['outcome-changed'], ['--wrong', 'run-7'], 1],
    [
      'another one comes out otherwise besides',
      ['outcome-changed', 'outcome-changed'],
      ['--fail-on', 'outcome', '--wrong', 'run-1'],
      1,
    ],
  ])('%s', async (_what, outcomes, flags, code) => {
    expect((await replay(outcomes, ...flags)).code).toBe(code);
  });

  /** Of two runs the second is changed so. */
  async function secondOf(outcome: Outcome, change: object, ...flags: string[]) {
    const ended = cohort(['same', outcome]);
    Object.assign(ended.results?.[1] ?? {}, change);
    script(ended);
    return host.run(['replay', ...flags]);
  }

  it.each<[string, Outcome, object, readonly string[], number]>([
    ...(['outcome', 'error', 'asks', 'divergence'] as const).map(
      (name): [string, Outcome, object, readonly string[], number] => [
        `a replay that was ended where it says something else: --fail-on ${name}`,
        ...(['diverged', REPLAY_ENDED, ['--fail-on', name], 1] as const),
      ],
    ),
    [
      'such a replay, which is permitted',
      ...(['diverged', REPLAY_ENDED, ['--fail-on', 'error', '--permit', 'diverged'], 0] as const),
    ],
    [
      'an outcome of a later host',
      ...(['same', { outcome: 'a-later-word' }, ['--fail-on', 'outcome'], 1] as const),
    ],
    [
      'what is not settled, which is permitted',
      ...(['same', { outcome: undefined }] as const),
      ...([['--fail-on', 'error', '--permit', 'not-finished'], 0] as const),
    ],
    [
      'an end that is known to differ, whatever else is not compared',
      ...(['not-compared', { changes: [{ pointer: '/outputs/x' }] }] as const),
      ...([['--fail-on', 'outcome', '--permit', 'not-compared'], 1] as const),
    ],
    [
      'nothing that is known to differ',
      ...(['not-compared', {}] as const),
      ...([['--fail-on', 'outcome', '--permit', 'not-compared'], 0] as const),
    ],
  ])('%s', async (_what, outcome, change, flags, code) => {
    expect((await secondOf(outcome, change, ...flags)).code).toBe(code);
  });

  it('a fork that could not be made, or compared, tells nothing of its run: a gate for another one fails as well', async () => {
    const ended = cohort(['outcome-changed', 'failed']);
    delete (ended.results?.[1] as { after?: object }).after;
    script(ended);
    const { code, out } = await host.run(['replay', '--model', 'other', '--wrong', 'run-0']);
    expect(code).toBe(1);
    expect(out).toContain('run-1 came to: Failed. Its result is not known.');
  });

  it('of a cohort that was cancelled, what is not settled is unknown as well', async () => {
    const left = cohort(['same', 'same'], { state: 'cancelled' });
    delete (left.results?.[1] as { outcome?: Outcome }).outcome;
    script(left);
    const { out } = await host.run(['replay', '--fail-on', 'error', '--json']);
    expect(JSON.parse(out)).toMatchObject({
      gate: {
        ...{ passed: false, hits: [], known: 1 },
        unknown: [{ sourceRunId: 'run-1', outcome: 'not-finished' }],
      },
    });
  });

  // [I112]
  it('says which results are not known, and how that is permitted', async () => {
    const { out } = await replay(['same', 'asks'], '--fail-on', 'outcome');
    const [gate = ''] = out.trimEnd().split('\n\n').reverse();
    expect(gate.split('\n')).toEqual([
      'The gate is not passed:',
      '  run-1 came to: Asks. Its result is not known (--permit asks).',
    ]);
    const none = await replay(['asks'], '--fail-on', 'outcome', '--permit', 'asks');
    expect(none.out).toContain('No run was compared to its end.');
  });

  // [I112]
  it('is not passed where runs are left out that cannot be read, unless that is permitted', async () => {
    const leftOut = { runs: 21, runIds: ['run-x', 'run-y'] };
    script(cohort(['same'], { leftOut }));
    const asked = ['replay', '--fail-on', 'outcome'];
    const { code, out } = await host.run(asked);
    expect(code).toBe(1);
    const text = '21 runs cannot be read, and are not among these: run-x, run-y, …';
    expect(out.split('\n\n')).toContain(`${text}.`);
    expect(out).toContain(`  ${text} (--permit unreadable).`);
    const { out: document } = await host.run([...asked, '--json']);
    expect(JSON.parse(document)).toMatchObject({ leftOut, gate: { passed: false, leftOut } });
    const others = await host.run([...asked, '--permit', 'not-compared']);
    expect(others.code).toBe(1);
    const permitted = await host.run([...asked, '--permit', 'unreadable']);
    expect(permitted.code).toBe(0);
    expect(permitted.out).toContain(`${text}.`);
  });

  // [I112]
  it('is not passed by a cohort that cannot say which runs it left out, unless that is permitted', async () => {
    const message = 'What stands at request cohort-1 is damaged.';
    const unreadable = { code: 'history_undecodable', message } as const;
    script(cohort(['same'], { unreadable }));
    const asked = ['replay', '--fail-on', 'outcome'];
    const { code, out } = await host.run(asked);
    expect(code).toBe(1);
    const [gate = ''] = out.trimEnd().split('\n\n').reverse();
    expect(gate.split('\n')).toEqual([
      'The gate is not passed:',
      `  ${unreadableText(unreadable)}`,
      '  Which runs were left out is not known (--permit unreadable).',
    ]);
    const { out: document } = await host.run([...asked, '--json']);
    expect(JSON.parse(document)).toMatchObject({ gate: { passed: false, unreadable } });
    expect((await host.run([...asked, '--permit', 'not-compared'])).code).toBe(1);
    const wrong = ['replay', '--model', 'other', '--wrong', 'run-0'];
    script(cohort(['outcome-changed'], { unreadable }));
    expect((await host.run(wrong)).code).toBe(1);
    expect((await host.run([...wrong, '--permit', 'unreadable'])).code).toBe(0);
  });

  it('says what it holds against whom; what came out as it should is counted', async () => {
    const { out } = await replay(
      ['outcome-changed', 'same', 'outcome-changed', 'same'],
      ...['--fail-on', 'outcome', '--wrong', 'run-1', '--wrong', 'run-2', '--wrong', 'run-9'],
    );
    const [gate = '', told] = out.trimEnd().split('\n\n').reverse();
    expect(told).toBe('Another outcome: run-0 → fork-0');
    expect(gate.split('\n')).toEqual([
      'Runs that were wrong and come out otherwise: 1. The gate is not passed:',
      '  run-0 came to: Another outcome.',
      '  run-1 was wrong, and came to: The same.',
      '  run-9 was wrong, and is not among these runs.',
    ]);
  });

  it('that is passed says so, and where none was asked for nothing', async () => {
    const passed = await replay(['same', 'outcome-changed'], '--wrong', 'run-1');
    expect(passed.out).toContain(
      'Runs that were wrong and come out otherwise: 1. The gate is passed.\n',
    );
    expect((await replay(['same'])).out).not.toContain('gate');
  });

  it('--json has it beside the cohort', async () => {
    const { out, code } = await replay(['outcome-changed'], '--fail-on', 'outcome', '--json');
    expect([code, JSON.parse(out)]).toMatchObject([
      1,
      {
        cohortId: 'cohort-a',
        gate: {
          ...{ passed: false, stillWrong: [], righted: [] },
          hits: [{ sourceRunId: 'run-0', outcome: 'outcome-changed' }],
        },
      },
    ]);
  });

  it('takes the runs that were wrong from a file, an id per line', async () => {
    const file = join(folder, 'wrong.txt');
    // The second as an editor of Windows saves it.
    for (const saved of [
      Buffer.from('run-0\n\n run-1 \n'),
      Buffer.from('\ufeffrun-0\r\nrun-1', 'utf16le'),
    ]) {
      await writeFile(file, saved);
      const { code, out } = await replay(['outcome-changed', 'same'], '--wrong', `@${file}`);
      expect([code, out]).toEqual([1, expect.stringContaining('run-1 was wrong')]);
    }
  });

  it.each([
    ['a file that is none', ['--wrong', '@/none/such'], 'ENOENT'],
    ['a file of nothing', ['--wrong', '@/dev/null'], 'names no run'],
    ['a word that is none', ['--fail-on', 'anything'], '--fail-on is one of'],
    [
      'a permit of what tells something',
      ['--fail-on', 'error', '--permit', 'failed'],
      '--permit is one of',
    ],
    ['a permit without a gate', ['--permit', 'asks'], '--permit says what a gate lets pass'],
    [
      'both at once, by what the one is hit by',
      ['--fail-on', 'divergence', '--permit', 'diverged'],
      'contradict',
    ],
    ['runs to be righted by no change', ['--wrong', 'run-1'], '--wrong needs a change'],
    ['by a build alone', ['--build', 'two', '--wrong', 'run-1'], '--wrong needs a change'],
    ['both at once', ['--fail-on', 'asks', '--permit', 'asks'], 'contradict'],
  ])('begins no cohort, exit code 2: %s', async (_what, flags, words) => {
    script(cohort(['same']));
    const { code, err } = await host.run(['replay', '--workflow', 'desk', ...flags]);
    expect([code, host.asked]).toEqual([2, []]);
    expect(err).toContain(words);
  });

  it('a cohort that was cancelled has its own exit code', async () => {
    script(cohort(['not-finished'], { state: 'cancelled' }));
    expect((await host.run(['replay', '--fail-on', 'error'])).code).toBe(4);
  });

  it('waits over a host that is away, and not over one that refuses', async () => {
    script(cohort(['same']));
    const path = `GET ${COHORTS}/cohort-a`;
    const body = cohort(['same']);
    host.script({
      [`POST ${COHORTS}`]: { status: 201, body },
      [path]: [refusal(503, 'service_unavailable'), { body }],
    });
    expect((await host.run(['replay'])).code).toBe(0);
    host.script({ [`POST ${COHORTS}`]: { status: 201, body }, [path]: refusal(403, 'forbidden') });
    expect((await host.run(['replay'])).code).toBe(1);
  });
});
