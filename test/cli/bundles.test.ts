// `openwop export` and `openwop import`: the file, and the words of a replay.
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Compared, ReplayReport } from '../../src/rules/replayed.ts';
import { scriptedHost, type ScriptedHost } from './scripted-host.ts';

const BUNDLE = 'GET /v1/host/openwop-temporal/runs/run-1/bundle';
const HOSTILE = 'a\u001b[2Jb';
const ANSWER = { checksum: 'sha256:x', recording: { entries: [{}, {}], batches: [] } };

let host: ScriptedHost;
let folder: string;
let file: string;
beforeAll(async () => {
  host = await scriptedHost();
});
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'openwop-bundle-files-'));
  file = join(folder, 'run.json');
  host.script({ [BUNDLE]: { body: ANSWER } });
});
afterEach(() => rm(folder, { recursive: true, force: true }));
afterAll(() => host.close());

describe('openwop export', () => {
  it('writes what the host gives, for its owner alone', async () => {
    const { code, out, err } = await host.run(['export', 'run-1', file]);
    expect([code, out, err]).toEqual([
      0,
      `Run run-1: 2 events in ${file}. It holds prompts and values.\n`,
      '',
    ]);
    expect(await readFile(file, 'utf8')).toBe(JSON.stringify(ANSWER));
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(await readdir(folder)).toEqual(['run.json']);
  });

  it('tells programs where it is', async () => {
    const { out } = await host.run(['export', 'run-1', file, '--json']);
    const bytes = JSON.stringify(ANSWER).length;
    expect(JSON.parse(out)).toEqual({ runId: 'run-1', file, bytes, events: 2 });
  });

  it('leaves a file that is there as it is, unless it is told to replace it', async () => {
    await writeFile(file, 'mine');
    const { code, out, err } = await host.run(['export', 'run-1', file]);
    expect([code, out]).toEqual([1, '']);
    expect(err).toContain('--force');
    expect(await readFile(file, 'utf8')).toBe('mine');
    expect((await host.run(['export', 'run-1', file, '--force'])).code).toBe(0);
    expect(await readFile(file, 'utf8')).toBe(JSON.stringify(ANSWER));
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(await readdir(folder)).toEqual(['run.json']);
  });

  it('an id that is a path names no file', async () => {
    const { code, err } = await host.run(['export', '../run-1']);
    expect([code, err]).toEqual([2, expect.stringContaining('into which file')]);
    expect(host.asked).toEqual([]);
  });

  it('says where it cannot write, and leaves nothing behind', async () => {
    const { code, err } = await host.run(['export', 'run-1', join(folder, 'no', 'where')]);
    expect([code, err]).toEqual([1, expect.stringContaining('cannot be written')]);
    await mkdir(file);
    const { code: again } = await host.run(['export', 'run-1', file, '--force']);
    expect([again, await readdir(folder)]).toEqual([1, ['run.json']]);
  });

  it('an unknown run is told as one', async () => {
    host.script({ [BUNDLE]: { status: 404, body: { error: 'run_not_found', message: 'No.' } } });
    const { code, err } = await host.run(['export', 'run-1', file]);
    expect([code, err]).toEqual([1, expect.stringContaining('no run run-1')]);
    expect(await readdir(folder)).toEqual([]);
  });
});

describe('openwop import', () => {
  const side = { type: 'node.completed', nodeId: HOSTILE, payload: { a: 'x'.repeat(9_000) } };
  const report = (compared: Partial<Compared>, more = {}): ReplayReport => ({
    ...{ kind: 'replayed', runId: 'run-1', workflowId: HOSTILE, status: 'completed', events: 9 },
    ...{ compared: { equal: 9, pieces: 0, outside: 0, ...compared }, withheld: [] },
    ...{ madeBy: '0.1.0', replayedBy: '0.1.0', ...more },
  });
  const run = (told: ReplayReport, ...args: string[]) => {
    const paths: string[] = [];
    const replay = (path: string) => {
      paths.push(path);
      return Promise.resolve(told);
    };
    return host.run(['import', file, ...args], { replay }).then((ran) => ({ ...ran, paths }));
  };

  it('equal: done', async () => {
    const { code, out, paths } = await run(report({}));
    expect([code, paths, host.asked]).toEqual([0, [file], []]);
    expect(out).toMatch(/^Run run-1 of \S+ \(Completed\): replayed 9 events: equal\.\n$/);
    expect(out).not.toContain('\u001b');
  });

  it('says what no workflow code stated, and who made the file', async () => {
    const { out } = await run(report({ equal: 5, pieces: 3, outside: 1 }, { madeBy: '0.0.1' }));
    expect(out).toContain('3 of them are live text');
    expect(out).toContain('1 of them no workflow code stated');
    expect(out).toContain('made by version 0.0.1');
  });

  it('different: both sides in words that fit, and no success', async () => {
    const difference = { kind: 'output', atSequence: 4, key: 'k', recorded: side } as const;
    const told = report({ equal: 4, difference }, { withheld: ['pin'] });
    const { code, out } = await run(told);
    expect(code).toBe(1);
    expect(out).toContain('replayed 4 of 9 events, then a difference.');
    expect(out).toContain('event 4 says something else');
    expect(out).toContain('replayed: nothing');
    expect(out).toContain('Withheld from the file, and so from the replay: pin.');
    expect(out).not.toContain('\u001b');
    expect(out.length).toBeLessThan(3_000);
    expect(JSON.parse((await run(told, '--json')).out)).toEqual(told);
  });

  it('refused: by its code', async () => {
    const told = { kind: 'refused', code: 'bundle_changed', message: 'No.' } as const;
    const { code, out, err } = await run(told, '--json');
    expect([code, out]).toEqual([1, '']);
    expect(JSON.parse(err)).toEqual({ error: { code: 'bundle_changed', message: 'No.' } });
  });

  it('where nothing can replay it says so', async () => {
    const { code, err } = await host.run(['import', file]);
    expect([code, err]).toEqual([1, expect.stringContaining('Nothing here')]);
  });
});
