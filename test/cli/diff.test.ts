// `openwop diff A B` (RFC 0054): the host's comparison as a table, and what the exit code says.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RunComparison } from '../../schemas/types.generated.ts';
import { refusal, scriptedHost, type ScriptedHost } from './scripted-host.ts';

const DIFF = 'GET /v1/host/openwop-temporal/runs/run-a/diff';
const HOSTILE = 'x\u001b[2Jy';

let host: ScriptedHost;
beforeAll(async () => {
  host = await scriptedHost();
});
afterAll(() => host.close());

const run = (runId: string, more: object = {}) => ({
  ...{ runId, workflowId: 'refund', workflowName: 'Refund', version: '1.0' },
  ...{ definitionDigest: 'sha256:0', status: 'completed', durationMs: 1_500, ...more },
});
const SAME: RunComparison = {
  ...{ a: run('run-a'), b: run('run-b') },
  ...{ same: true, divergence: null, pinned: [], steps: [], end: [] },
};
const FORK = { forkOf: 'run-a', fromSeq: 12, overlay: ['answer' as const] };
const side = { status: 'completed', durationMs: 20, inputTokens: 4, outputTokens: 3 };
const OTHER: RunComparison = {
  ...SAME,
  same: false,
  b: run('run-b', { status: 'failed', inputTokens: 4, outputTokens: 3, usd: 0.01, ...FORK }),
  divergence: {
    ...{ seq: 12, cause: 'answer', overlay: 'answer', nodeId: 'gate', nodeName: 'Ask' },
    ...{ aEvent: { type: 'interrupt.resolved' }, bEvent: { type: 'interrupt.resolved' } },
    differences: [{ pointer: '/resumeValue/action', a: 'accept', b: 'reject' }],
  },
  pinned: [
    {
      fact: 'agents',
      differences: [
        {
          pointer: '/judge/resolved/systemPrompt',
          a: 'You are a judge who decides what is refunded, and says why it is.',
          b: 'You are a judge who decides what is paid, and says why it is.',
        },
      ],
    },
  ],
  steps: [
    { nodeId: 'load', nodeName: 'Load', visit: 1, a: side, b: side, differences: [] },
    {
      ...{ nodeId: 'gate', nodeName: 'Ask', visit: 2, a: side, b: { ...side, status: 'failed' } },
      differences: [
        { pointer: '/answers/0', a: { [HOSTILE]: HOSTILE } },
        { pointer: '/calls/0/result', a: ['v'.repeat(50)], b: ['w'.repeat(50)], cut: true },
      ],
    },
    { nodeId: 'pay', nodeName: 'Pay', visit: 1, a: side, differences: [] },
  ],
  end: [{ pointer: '/status', a: 'completed', b: 'failed' }],
  truncated: true,
};

describe('openwop diff', () => {
  it('two runs that say the same: exit code 0', async () => {
    host.script({ [DIFF]: { body: SAME } });
    const { code, out, err } = await host.run(['diff', 'run-a', 'run-b']);
    expect([code, err]).toEqual([0, '']);
    expect(out).toContain('They say the same.');
    expect(host.asked.map(({ line }) => line)).toEqual([`${DIFF}?against=run-b`]);
  });

  it('of two runs that were not compared to their ends nobody says that they are the same: exit code 1', async () => {
    host.script({ [DIFF]: { body: { ...SAME, same: false, truncated: true } } });
    const { code, out } = await host.run(['diff', 'run-a', 'run-b']);
    expect(code).toBe(1);
    expect(out).toContain('As far as they were compared, they say the same.');
    expect(out).toContain('Not all is compared');
  });

  it('where they are the same, and not all steps are shown: exit code 0', async () => {
    host.script({ [DIFF]: { body: { ...SAME, truncated: true } } });
    const { code, out } = await host.run(['diff', 'run-a', 'run-b']);
    expect(code).toBe(0);
    expect(out).toContain('They say the same.');
    expect(out).toContain('Not all steps are shown');
  });

  it('what differs: the cause, what they were made of, the steps, the end; exit code 1', async () => {
    host.script({ [DIFF]: { body: OTHER } });
    const { code, out } = await host.run(['diff', 'run-a', 'run-b']);
    expect(code).toBe(1);
    const [runs, cause, agents, steps, gate, pay, end, rest, ...more] = out.trimEnd().split('\n\n');
    expect(runs?.split('\n').map((line) => line.trim().split(/ {2,}/))).toEqual([
      ['SIDE', 'RUN', 'STATUS', 'WORKFLOW', 'VERSION', 'TOOK', 'TOKENS', 'USD', 'FORK OF'],
      ['A', 'run-a', 'Completed', 'refund', '1.0', '1.5 s', '-', '-', '-'],
      [
        'B',
        'run-b',
        'Failed',
        'refund',
        '1.0',
        '1.5 s',
        '7',
        '0.0100',
        'run-a from 12 with other answer',
      ],
    ]);
    expect(cause).toBe(
      'They went apart at event 12 (interrupt.resolved, at Ask): what was asked was answered otherwise (its overlay has this answer).\n' +
        '  /resumeValue/action  "accept" → "reject"',
    );
    expect(agents).toBe(
      'Agents differ\n  /judge/resolved/systemPrompt\n' +
        '    You are a judge who decides what is [-refunded,-] {+paid,+} and says why it is.',
    );
    expect(steps?.split('\n').map((line) => line.trim().split(/ {2,}/))).toEqual([
      ['STEP', 'DIFFERS', 'STATUS A | B', 'CONFIDENCE', 'TOKENS', 'USD', 'TOOK'],
      ['Load', '-', 'completed', '-', '7', '-', '20 ms'],
      ['Ask (2)', 'yes', 'completed | failed', '-', '7', '-', '20 ms'],
      ['Pay', 'yes', 'completed | -', '-', '7 | -', '-', '20 ms | -'],
    ]);
    expect(gate?.split('\n')).toEqual([
      'Ask (2)',
      expect.stringMatching(/^ {2}\/answers\/0 {2}\{.*\} → \(nothing\)$/),
      ...['  /calls/0/result', `    A: ["${'v'.repeat(50)}"]`, `    B: ["${'w'.repeat(50)}"]`],
      '    (cut)',
    ]);
    expect(pay).toBe('Pay\n  only A came to it');
    expect(end).toBe('End\n  /status  "completed" → "failed"');
    expect([rest?.startsWith('Not all is compared'), more]).toEqual([true, []]);
    // eslint-disable-next-line no-control-regex
    expect(out).not.toMatch(/\u001b/);
  });

  it('of a step that one side skipped: what the other did, and what came of it', async () => {
    const differences = [
      { pointer: '/status', a: 'completed', b: 'skipped' },
      { pointer: '/attempts', a: 1 },
      { pointer: '/prompts', a: [{ hash: 'sha256:0' }] },
      { pointer: '/calls', a: [{ tool: 'pay' }] },
      { pointer: '/outputs', a: { paid: 1 } },
      { pointer: '/reason', b: 'branch_not_taken' },
    ];
    const b = { ...side, status: 'skipped' };
    const step = { ...{ nodeId: 'pay', nodeName: 'Pay', visit: 1 }, a: side, b, differences };
    host.script({ [DIFF]: { body: { ...SAME, same: false, steps: [step] } } });
    const { out } = await host.run(['diff', 'run-a', 'run-b']);
    expect(out.trimEnd().split('\n\n').at(-1)).toBe(
      'Pay\n  /status  "completed" → "skipped"\n  /calls  [{"tool":"pay"}] → (nothing)\n' +
        '  /outputs  {"paid":1} → (nothing)',
    );
  });

  it('of a long text the words around what changed', async () => {
    const text = (word: string): string => `${'before '.repeat(40)}${word}${' behind'.repeat(40)}`;
    const differences = [{ pointer: '/judge/systemPrompt', a: text('yes'), b: text('no') }];
    const pinned = [{ fact: 'agents' as const, differences }];
    host.script({ [DIFF]: { body: { ...SAME, same: false, pinned } } });
    const { out } = await host.run(['diff', 'run-a', 'run-b']);
    expect(out.trimEnd().split('\n').at(-1)).toBe(
      `    … ${'before '.repeat(12)}[-yes-] {+no+}${' behind'.repeat(12)} …`,
    );
  });

  it('is laid out for the terminal that reads it', async () => {
    host.script({ [DIFF]: { body: OTHER } });
    const screen = { columns: 50, colour: false };
    const { out } = await host.run(['diff', 'run-a', 'run-b'], { screen });
    for (const line of out
      .split('\n')
      .filter((each) => !each.includes('vvv') && !each.includes('www')))
      expect(line.length).toBeLessThanOrEqual(50);
  });

  it('--json: the answer of the host, with the same exit codes', async () => {
    for (const [body, code] of [
      [SAME, 0],
      [OTHER, 1],
    ] as const) {
      host.script({ [DIFF]: { body } });
      const told = await host.run(['diff', 'run-a', 'run-b', '--json']);
      expect([JSON.parse(told.out), told.code]).toEqual([body, code]);
    }
  });

  it('says which of the two the host does not know', async () => {
    const gone = refusal(404, 'run_not_found');
    const known = { body: { runId: 'run-a', status: 'completed' } };
    for (const [a, b, unknown] of [
      [gone, known, 'run-a'],
      [known, gone, 'run-b'],
    ] as const) {
      host.script({ [DIFF]: gone, 'GET /v1/runs/run-a': a, 'GET /v1/runs/run-b': b });
      const { code, out, err } = await host.run(['diff', 'run-a', 'run-b']);
      expect([code, out]).toEqual([1, '']);
      expect(err).toContain(`The host knows no run ${unknown}.`);
    }
  });

  it('refusals and bad calls are told as by every command', async () => {
    host.script({ [DIFF]: refusal(503, 'service_unavailable') });
    const away = await host.run(['diff', 'run-a', 'run-b', '--json']);
    expect(away.code).toBe(1);
    expect(JSON.parse(away.err)).toMatchObject({ error: { code: 'service_unavailable' } });
    host.script({});
    const old = await host.run(['diff', 'run-a', 'run-b']);
    expect([old.code, old.err]).toEqual([1, expect.stringContaining('of another version')]);
    expect((await host.run(['diff', 'run-a'])).code).toBe(2);
  });
});
