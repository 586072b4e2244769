// `openwop start … --each FILE`: a run for each line of a file, in its order, and what became of them.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { EDITORS, NO_TEXT } from '../support/editor-files.ts';
import { refusal, scriptedHost, type Scripted, type ScriptedHost } from './scripted-host.ts';

const START = 'POST /v1/runs';
const WORKFLOW = 'GET /v1/workflows/desk';
const desk = {
  ...{ id: 'desk', name: 'Desk', version: '1', nodes: [], edges: [], triggers: [] },
  variables: [
    { name: 'order', type: 'string', required: true },
    { name: 'amount', type: 'number' },
  ],
};

let host: ScriptedHost;
let folder: string;
let file: string;
beforeAll(async () => {
  host = await scriptedHost();
  folder = await mkdtemp(join(tmpdir(), 'openwop-each-'));
});
afterAll(async () => {
  await host.close();
  await rm(folder, { recursive: true, force: true });
});
beforeEach(async () => {
  file = join(folder, 'requests.jsonl');
  await writeFile(file, '{"order":"A"}\n\n{"order":"B","amount":2}\n{"order":"C"}\n');
});

/** Runs a, b and c begin, and come to these. */
function script(statuses: readonly string[], more: Record<string, Scripted | Scripted[]> = {}) {
  const runs = statuses.map((status, at) => ({ runId: `run-${'abc'.at(at)}`, status }));
  host.script({
    [WORKFLOW]: { body: desk },
    [START]: runs.map(({ runId }) => ({ status: 201, body: { runId, status: 'pending' } })),
    ...Object.fromEntries(
      runs.map(({ runId, status }) => [
        `GET /v1/runs/${runId}`,
        [{ body: { runId, status: 'running' } }, { body: { runId, status } }],
      ]),
    ),
    ...more,
  });
}

const bodies = () => host.asked.flatMap(({ line, body }) => (line === START ? [body] : []));
const keys = () =>
  host.asked.flatMap(({ line, headers }) => (line === START ? [headers['idempotency-key']] : []));

describe('openwop start --each', () => {
  it.each(Object.entries(EDITORS))('reads a file as an editor saved it: %s', async (_, saved) => {
    await writeFile(file, saved('{"order":"Ä"}\n\n{"order":"B","amount":2}\n'));
    script(['completed', 'completed']);
    const { code, err } = await host.run(['start', 'desk', '--each', file]);
    expect([code, err]).toEqual([0, '']);
    expect(bodies()).toEqual([
      { workflowId: 'desk', inputs: { order: 'Ä' } },
      { workflowId: 'desk', inputs: { order: 'B', amount: 2 } },
    ]);
  });
  it.each(Object.entries(NO_TEXT))('refuses what is no text: %s', async (_, bytes) => {
    await writeFile(file, bytes);
    script([]);
    const { code, err } = await host.run(['start', 'desk', '--each', file]);
    expect([code, err]).toEqual([2, expect.stringMatching(/; save it as UTF-8\.\n$/)]);
    expect(err).toContain(`The file ${file} is no`);
    expect(bodies()).toEqual([]);
  });
  it('begins one run for each line, in their order, over what is said for all', async () => {
    script(['completed', 'completed', 'completed']);
    const { code, out } = await host.run([
      ...['start', 'desk', '--each', file, '--input', 'amount=1', '--tag', 'past'],
      ...['--idempotency-key', 'day-1', '--data-subject', 'customer-1'],
    ]);
    expect([code, out]).toEqual([
      0,
      '3 runs of desk begun. `npm run -s openwop -- runs --workflow desk` lists them.\n',
    ]);
    const all = { workflowId: 'desk', tags: ['past'], dataSubject: 'customer-1' };
    expect(bodies()).toEqual([
      { ...all, inputs: { amount: 1, order: 'A' } },
      { ...all, inputs: { amount: 2, order: 'B' } },
      { ...all, inputs: { amount: 1, order: 'C' } },
    ]);
    expect(keys()).toEqual(['day-1-1', 'day-1-3', 'day-1-4']);
  });

  it.each([
    [['completed', 'completed', 'completed'], 0, '3 runs of desk: 3 Completed.\n'],
    [
      ['completed', 'waiting-approval', 'completed'],
      3,
      '3 runs of desk: 1 Waiting for you, 2 Completed.\nWaiting for you: run-b\n',
    ],
    [
      ['failed', 'waiting-input', 'completed'],
      1,
      '3 runs of desk: 1 Waiting for an answer, 1 Completed, 1 Failed.\nWaiting for an answer: run-b\nFailed: run-a\n',
    ],
  ])('--follow waits until each has ended or asks: %j', async (statuses, code, words) => {
    script(statuses);
    const told = await host.run(['start', 'desk', '--each', file, '--follow']);
    expect([told.code, told.out]).toEqual([code, words]);
  });

  it('--json: the runs, and what each came to', async () => {
    script(['completed', 'failed', 'completed']);
    const { out } = await host.run(['start', 'desk', '--each', file, '--follow', '--json']);
    expect(JSON.parse(out)).toEqual({
      runs: [
        { runId: 'run-a', status: 'completed' },
        { runId: 'run-b', status: 'failed' },
        { runId: 'run-c', status: 'completed' },
      ],
    });
  });

  it.each([
    ['a line that is no JSON', '{"order":"A"}\n{"order"\n', 'Line 2 of'],
    ['[I103] a number that would change', '{"a":9007199254740993}\n', '/a is a number'],
    ['a line that is no object', '{"order":"A"}\n\n[1]\n', 'Line 3 of'],
    ['no line', '\n', 'has no lines'],
    ['too many', '{}\n'.repeat(1_001), '1000 are the most'],
  ])('begins nothing where the file is wrong, exit code 2: %s', async (_what, text, words) => {
    script([]);
    await writeFile(file, text);
    const { code, err } = await host.run(['start', 'desk', '--each', file]);
    expect([code, bodies()]).toEqual([2, []]);
    expect(err).toContain(words);
  });

  it('says which file cannot be read', async () => {
    script([]);
    const { code, err } = await host.run(['start', 'desk', '--each', '/none/such']);
    expect([code, err]).toEqual([2, expect.stringContaining('/none/such cannot be read (ENOENT)')]);
  });

  it('a line that the host refuses is named, with what began before and the key to go on by', async () => {
    script([], {
      [START]: [
        { status: 201, body: { runId: 'run-a', status: 'pending' } },
        refusal(400, 'validation_error'),
      ],
    });
    const { code, err } = await host.run([
      ...['start', 'desk', '--each', file, '--idempotency-key', 'day-1'],
    ]);
    expect(code).toBe(1);
    expect(err).toContain(`Line 3 of ${file}: The words of validation_error.`);
    expect(err).toContain('Runs that began before it: 1. With --idempotency-key day-1 it goes on');
  });

  it('--json: a program is told which line it was, what began before, and the key to go on by', async () => {
    script([], {
      [START]: [
        { status: 201, body: { runId: 'run-a', status: 'pending' } },
        refusal(400, 'validation_error'),
      ],
    });
    const { code, err } = await host.run(['start', 'desk', '--each', file, '--json']);
    expect(code).toBe(1);
    const [key = ''] = keys();
    expect(JSON.parse(err)).toMatchObject({
      error: {
        code: 'validation_error',
        line: 3,
        runs: [{ runId: 'run-a', status: 'pending' }],
        idempotencyKey: String(key).replace(/-1$/, ''),
      },
    });
  });
});
