// A run in one file (architecture §6): exported from a real host whose payloads are encrypted, and replayed, when that host
// is gone, by the command line, which has neither its history nor its keys: as processes of their own where it is about
// them, else in this one.
import { execFile } from 'node:child_process';
import { Client } from '@temporalio/client';
import { mkdtemp, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { RunBundle } from '../../schemas/types.generated.ts';
import type { ReplayReport } from '../../src/rules/replayed.ts';
import { connectTemporal } from '../../src/adapters/temporal/connection.ts';
import { replayFile } from '../../src/app/replay-file.ts';
import type { CliParts } from '../../src/cli/cli.ts';
import { runCli } from '../../src/cli/program.ts';
import { bundleText, readRunBundle } from '../../src/wire/run-bundle.ts';
import { agentNode, definition, edge, node } from '../support/definitions.ts';
import { startTestHost, TEST_API_KEY, type TestHost } from '../support/host.ts';
import { writeCaller, writeDefinition } from '../support/opensentience/agent-folders.ts';
import { runRef } from '../support/run-ref.ts';
import { CACHE_DIR } from '../support/temporal.ts';

// Some commands are processes of their own.
vi.setConfig({ testTimeout: 180_000 });

const PROGRAM = join(import.meta.dirname, '..', '..', 'src/app/launch.js');
const AGENT = 'local.bundled.clerk';
const SENSITIVE = 'the-word-that-opens-doors';
const CANARY = 'sk-canary0123456789abcdef';
const STORY = definition(
  'story',
  [
    agentNode('think', AGENT),
    node('fail', 'core.fail', { settings: { retry: { maxAttempts: 2, initialDelayMs: 10 } } }),
    node('gate', 'core.approvalGate', { config: { title: 'Shall it?' } }),
    node('opens', 'core.identity', {
      inputs: { word: { type: 'variable', variableName: 'word' } },
    }),
    node('set', 'core.setVariable', { config: { variableName: 'n', value: 3 } }),
  ],
  [
    edge('think', 'fail'),
    edge('fail', 'gate', { triggerRule: 'any_failed' }),
    edge('gate', 'opens'),
    edge('opens', 'set'),
  ],
  {
    variables: [
      { name: 'n', type: 'number' },
      { name: 'shown', type: 'string' },
      { name: 'word', type: 'string', sensitive: true },
      { name: 'pin', type: 'number', sensitive: true },
    ],
  },
);
/** Waits for a child, which waits for nobody. */
const PARENT = definition(
  'parent',
  [node('below', 'core.subWorkflow', { config: { workflowId: 'child' } })],
  [],
);
const CHILD = definition('child', [node('only', 'core.noop')], []);
const SLOW = definition('slow', [node('delay', 'core.delay', { config: { ms: 600_000 } })], []);

let host: TestHost;
let folder: string;
const ALL = [
  ...(['completed', 'waiting', 'cancelled', 'terminated'] as const),
  ...(['parent', 'child', 'branch', 'replay', 'answered'] as const),
] as const;
const runs = Object.fromEntries(ALL.map((which) => [which, ''])) as Record<
  (typeof ALL)[number],
  string
>;

const ended = ({ status }: { status: string }) =>
  ['completed', 'failed', 'cancelled'].includes(status);
const fileOf = (runId: string) => join(folder, `${runId}.json`);
const bundleIn = async (path: string) => readRunBundle(await readFile(path));

interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

async function openwop(args: readonly string[], env: NodeJS.ProcessEnv): Promise<Ran> {
  const options = { env: { PATH: process.env.PATH, ...env }, maxBuffer: 64 * 1024 * 1024 };
  const program = [PROGRAM, 'openwop', ...args];
  try {
    const { stdout, stderr } = await promisify(execFile)(process.execPath, program, options);
    return { code: 0, out: stdout, err: stderr };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { code, out: stdout, err: stderr };
  }
}

const exportedByProcess = (runId: string) =>
  openwop(['export', runId, fileOf(runId)], {
    ...{ OPENWOP_URL: host.url, OPENWOP_API_KEY: TEST_API_KEY },
  });
/** Nobody is at this address. */
const NO_HOST = 'http://127.0.0.1:9';
const BUNDLES = join(CACHE_DIR, 'bundles');
/** Nothing of the host is there: no key, no data. */
const importedByProcess = (path: string, ...more: string[]) =>
  openwop(['import', path, ...more], {
    ...{ HOME: folder, OPENWOP_DATA_DIR: join(folder, 'no-data') },
    ...{ OPENWOP_URL: NO_HOST, OPENWOP_CACHE_DIR: BUNDLES },
  });

async function said(args: readonly string[], more: Pick<CliParts, 'url' | 'apiKey' | 'replay'>) {
  let out = '';
  let err = '';
  const code = await runCli(args, {
    ...more,
    ...{ out: (text) => void (out += text), err: (text) => void (err += text) },
  });
  return { code, out, err };
}

const exported = (runId: string) =>
  said(['export', runId, fileOf(runId)], { url: host.url, apiKey: TEST_API_KEY });
const imported = (path: string, ...more: string[]) =>
  said(['import', path, ...more], {
    ...{ url: NO_HOST, apiKey: undefined, replay: (file) => replayFile(file, BUNDLES) },
  });

/** The run as if it were another one's file. */
async function changed(name: string, change: (bundle: RunBundle) => void): Promise<string> {
  const bundle = await bundleIn(fileOf(runs.completed));
  change(bundle);
  const content: Partial<RunBundle> = bundle;
  delete content.checksum;
  const path = join(folder, `${name}.json`);
  await writeFile(path, bundleText(bundle));
  return path;
}

async function play(): Promise<void> {
  runs.completed = await host.startRun({
    workflowId: STORY.id,
    inputs: { shown: CANARY, word: SENSITIVE, pin: 470_811 },
  });
  await host.waitFor(runs.completed, ({ status }) => status === 'waiting-approval');
  const body = { resumeValue: { action: 'accept' } };
  await host.api(`/v1/runs/${runs.completed}/interrupts/gate`, { body });
  await host.waitFor(runs.completed, ended);
  runs.waiting = await host.startRun({ workflowId: STORY.id });
  await host.waitFor(runs.waiting, ({ status }) => status === 'waiting-approval');
  runs.cancelled = await host.startRun({ workflowId: SLOW.id });
  await host.waitFor(runs.cancelled, ({ status }) => status === 'running');
  await host.api(`/v1/runs/${runs.cancelled}/cancel`, { body: { reason: 'enough' } });
  await host.waitFor(runs.cancelled, ended);
  runs.terminated = await host.startRun({ workflowId: STORY.id });
  await host.waitFor(runs.terminated, ({ status }) => status === 'waiting-approval');
  await terminate(runs.terminated);
  await host.waitFor(runs.terminated, ended);
  runs.parent = await host.startRun({ workflowId: PARENT.id });
  await host.waitFor(runs.parent, ended);
  const { body: below } = await host.api<{ runs: { runId: string }[] }>(
    `/v1/host/openwop-temporal/runs/${runs.parent}/children`,
  );
  runs.child = below.runs[0]?.runId ?? '';
  await fork();
}

/** Of the same run: one in which the human answers otherwise, and the same once more, of that one. */
async function fork(): Promise<void> {
  const rows = await host.stores.log.read(runRef(runs.completed), { after: -1, limit: 10_000 });
  const fromSeq = rows.findIndex(({ type }) => type === 'interrupt.resolved');
  const made = async (of: string, body: object): Promise<string> => {
    const { body: told } = await host.api<{ runId: string }>(`/v1/runs/${of}:fork`, { body });
    await host.waitFor(told.runId, ended);
    return told.runId;
  };
  const answer = { seq: fromSeq, value: { action: 'reject', reason: 'not this' } };
  const runOptionsOverlay = { answer };
  runs.branch = await made(runs.completed, { mode: 'branch', fromSeq, runOptionsOverlay });
  runs.replay = await made(runs.branch, { mode: 'replay', fromSeq: 3 });
  // And one in which a tool gave something else.
  const seq = rows.findIndex(({ type }) => type === 'agent.toolReturned');
  const other = { answers: 'recorded', answer: { seq, value: { now: 'long ago' } } };
  runs.answered = await made(runs.completed, {
    ...{ mode: 'branch', fromSeq: seq, runOptionsOverlay: other },
  });
}

async function terminate(runId: string): Promise<void> {
  const connection = connectTemporal(host.temporal);
  const client = new Client({ connection, namespace: host.temporal.namespace });
  await client.workflow.getHandle(runId).terminate('tested');
  await connection.close();
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'openwop-run-bundles-'));
  await writeCaller(join(folder, 'agents'), {
    ...{ agentId: AGENT, toolAllowlist: ['core:clock'] },
    turns: [
      { chunks: ['Let ', 'me ', 'see.'], calls: [{ toolId: 'core:clock', arguments: {} }] },
      { final: { decision: { told: true }, confidence: 1 } },
    ],
  });
  for (const each of [STORY, SLOW, PARENT, CHILD])
    await writeDefinition(join(folder, 'definitions'), each);
  host = await startTestHost({
    ...{ agentsDir: join(folder, 'agents'), fixturesDir: join(folder, 'definitions') },
    encryption: true,
    facade: { forceContinueAsNewAfter: 15 },
  });
  await play();
});

afterAll(async () => {
  await host?.stop();
  await rm(folder, { recursive: true, force: true });
});

describe('openwop export', () => {
  it.each(ALL)('writes a run (%s), for its owner alone', async (which) => {
    const exporting = which === 'completed' ? exportedByProcess : exported;
    const { code, err } = await exporting(runs[which]);
    expect([code, err]).toEqual([0, '']);
    expect((await stat(fileOf(runs[which]))).mode & 0o777).toBe(0o600);
    const { run } = await bundleIn(fileOf(runs[which]));
    expect(run).toEqual((await host.api(`/v1/runs/${runs[which]}`)).body);
  });

  it('the file has log, definition, manifests with prompts, versions and what the run was given', async () => {
    const { input, manifests, recording, versions, ...rest } = await bundleIn(
      fileOf(runs.completed),
    );
    const rows = await host.stores.log.read(runRef(runs.completed), { after: -1, limit: 10_000 });
    expect(recording.entries.map(({ key }) => key)).toEqual(rows.map(({ key }) => key));
    expect(input.definition.nodes).toHaveLength(STORY.nodes.length);
    expect(manifests).toMatchObject([{ agentId: AGENT, resolved: { manifest: {} } }]);
    expect(manifests[0]?.resolved).toHaveProperty('systemPrompt');
    expect(versions).toMatchObject({ node: process.version, temporalSdk: /^\d/ });
    expect(rest).toMatchObject({ host: { name: 'openwop-temporal' }, formatVersion: 1 });
    // It was played in several segments.
    expect(recording.batches.filter(({ begins }) => begins).length).toBeGreaterThan(1);
  });

  it('holds nothing that nobody may read, and says so', async () => {
    const text = await readFile(fileOf(runs.completed), 'utf8');
    expect(text).toContain('[REDACTED:word]');
    for (const never of [CANARY, SENSITIVE, '470811', TEST_API_KEY])
      expect(text).not.toContain(never);
    expect((await bundleIn(fileOf(runs.completed))).redaction).toEqual({
      ...{ redactionApplied: true, redactionMode: 'mask', withheld: ['word', 'pin'] },
    });
  });

  it.each(['branch', 'replay'] as const)('a fork (%s) says of what it is one', async (which) => {
    const text = await readFile(fileOf(runs[which]), 'utf8');
    for (const never of [CANARY, SENSITIVE]) expect(text).not.toContain(never);
    const { run, input, recording } = await bundleIn(fileOf(runs[which]));
    expect(run.fork).toMatchObject({ mode: which });
    expect(input).not.toHaveProperty('fork');
    expect(recording.batches.flatMap(({ leaves }) => leaves?.mode ?? [])).toContain(which);
  });

  it.each(['', '?any=thing'])('an unknown run is one that nobody knows%s', async (query) => {
    const address = `/v1/host/openwop-temporal/runs/run-unknown/bundle${query}`;
    const { status, body } = await host.api<{ error: string }>(address);
    expect([status, body.error]).toEqual([404, 'run_not_found']);
  });
});

describe('openwop import', () => {
  beforeAll(() => host.stop());

  it.each(ALL)(
    'a run (%s) replays equal, without its host, its history and its keys',
    async (which) => {
      const { code, out, err } = await imported(fileOf(runs[which]), '--json');
      expect([code, err]).toEqual([0, '']);
      const report = JSON.parse(out) as ReplayReport;
      const { recording, run } = await bundleIn(fileOf(runs[which]));
      const events = recording.entries.length;
      expect(report).toMatchObject({ kind: 'replayed', runId: runs[which], events });
      expect(report).toMatchObject({ status: run.status });
      if (report.kind !== 'replayed') return;
      const { equal, pieces, outside, difference } = report.compared;
      expect([difference, equal + pieces + outside]).toEqual([undefined, events]);
      expect(outside > 0).toBe(which === 'terminated');
    },
  );

  it('says it in words, from a process of its own, as it does of a file that it refuses', async () => {
    const { code, out } = await importedByProcess(fileOf(runs.completed));
    const { length } = (await bundleIn(fileOf(runs.completed))).recording.entries;
    expect([code, out]).toEqual([
      0,
      expect.stringContaining(`(Completed): replayed ${length} events: equal.`),
    ]);
    const refused = await importedByProcess(join(folder, 'nowhere.json'));
    expect([refused.code, refused.err]).toEqual([1, expect.stringContaining('cannot be read')]);
  });

  it('what differs is told with both sides, and is no success', async () => {
    const path = await changed('different', ({ recording }) => {
      const at = recording.entries.findIndex(({ type }) => type === 'variable.changed');
      const entry = recording.entries[at];
      if (entry) entry.payload = entry.payload.replace('3', '4');
    });
    const { code, out } = await imported(path);
    expect(code).toBe(1);
    expect(out).toMatch(/recorded: variable\.changed .*4/);
    expect(out).toMatch(/replayed: variable\.changed .*3/);
    expect(out).toContain('then a difference');
  });

  it('a definition that never comes to rest is left at the first difference', async () => {
    const path = await changed('endless', ({ input }) => {
      input.definition = definition(
        'endless',
        [node('a', 'core.noop'), node('b', 'core.noop')],
        [edge('a', 'b'), edge('b', 'a')],
        { settings: { maxLoopbackIterations: 1_000_000_000 } },
      ) as unknown as RunBundle['input']['definition'];
      input.limits.maxNodeExecutions = 1_000_000_000;
    });
    const { code, out } = await imported(path);
    expect([code, out]).toEqual([1, expect.stringContaining('then a difference')]);
  });

  it('what the model had decided is not asked again: another answer is another run', async () => {
    const path = await changed('decided', ({ recording }) => {
      const text = JSON.stringify(recording.batches);
      recording.batches = JSON.parse(text.replaceAll('"told":true', '"told":false')) as [];
    });
    const { code, out } = await imported(path, '--json');
    expect([code, JSON.parse(out)]).toMatchObject([1, { compared: { difference: {} } }]);
  });

  it.each<[string, (path: string) => Promise<unknown>, string]>([
    ['one byte changed', flipByte, 'changed'],
    ['10 GB claimed', (path) => truncate(path, 10 * 1024 ** 3), 'at most'],
    ['cut off', (path) => truncate(path, 5_000), 'no JSON'],
    ['nothing in it', (path) => truncate(path, 0), 'no JSON'],
  ])('a file with %s is refused', async (name, damage, words) => {
    const path = await changed(name.replaceAll(' ', '-'), () => undefined);
    await damage(path);
    const { code, out, err } = await imported(path);
    expect([code, out, err]).toEqual([1, '', expect.stringContaining(words)]);
  });

  it.each<[string, (bundle: RunBundle) => void, string]>([
    [
      'a path outside',
      ({ run, input }) => void (run.runId = input.runId = '../../x'),
      '/run/runId',
    ],
    ['a newer form', (bundle) => void ((bundle.formatVersion as number) = 2), 'formatVersion'],
    ['a newer run', ({ input }) => void (input.revision = 99), 'revision'],
    ['parts of two runs', ({ run }) => void (run.runId = 'run-other'), 'two runs'],
    ['more than it may hold', (bundle) => void Object.assign(bundle, { program: 'x' }), 'program'],
  ])('a file that somebody made with %s is refused', async (name, change, words) => {
    const path = await changed(name.replaceAll(' ', '-'), change);
    const { code, out, err } = await imported(path);
    expect([code, out, err]).toEqual([1, '', expect.stringContaining(words)]);
  });

  it('what nobody writes into is not waited for', async () => {
    const path = join(folder, 'pipe');
    await promisify(execFile)('mkfifo', [path]);
    const { code, err } = await imported(path);
    expect([code, err]).toEqual([1, expect.stringContaining('no file')]);
  });

  it.each(['', 'nowhere.json'])('what is no file is refused: %s', async (name) => {
    const { code, err } = await imported(join(folder, name));
    expect([code, err]).toEqual([1, expect.stringMatching(/no file|cannot be read/)]);
  });
});

async function flipByte(path: string): Promise<void> {
  const bytes = await readFile(path);
  const at = bytes.indexOf('"told":true') + '"tol'.length;
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  await writeFile(path, bytes);
}
