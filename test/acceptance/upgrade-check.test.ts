// docs/upgrades.md: a build is held against the histories that it would have to go on with.
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { Client } from '@temporalio/client';
import type { PayloadCodec } from '@temporalio/common';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { workflowBundle } from '../../src/adapters/temporal/bundle.ts';
import { dataConverter } from '../../src/adapters/temporal/codec.ts';
import { connectTemporal } from '../../src/adapters/temporal/connection.ts';
import {
  historiesOf,
  replayHistories,
  type ReplayedSegment,
  type ReplaySource,
} from '../../src/adapters/temporal/replay-histories.ts';
import { readConfig } from '../../src/app/config.ts';
import { HostError } from '../../src/rules/errors.ts';
import { codecKeys } from '../../src/app/parts.ts';
import { agentNode, chain, node } from '../support/definitions.ts';
import { startTestHost, until, type TestHost } from '../support/host.ts';
import { writeCaller, writeDefinition } from '../support/opensentience/agent-folders.ts';
import { CACHE_DIR } from '../support/temporal.ts';
import { patient } from '../support/machine.ts';
import { ROOT } from '../support/root.ts';

const AGENT = 'local.upgrade.clerk';
const GATE = chain('gate', [
  agentNode('think', AGENT),
  node('gate', 'core.approvalGate', { config: { title: 'Now?', timeoutMs: 3_600_000 } }),
]);
const SHORT = chain('short', [node('wait', 'core.delay', { config: { ms: 20 } })]);

let host: TestHost;
let folder: string;
let source: ReplaySource;
let open: string;
let over: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'openwop-upgrade-'));
  const turns = [{ final: { decision: 1, confidence: 1 } }] as const;
  await writeCaller(join(folder, 'agents'), { agentId: AGENT, toolAllowlist: [], turns });
  for (const each of [GATE, SHORT]) await writeDefinition(join(folder, 'definitions'), each);
  host = await startTestHost({
    ...{ agentsDir: join(folder, 'agents'), fixturesDir: join(folder, 'definitions') },
    ...{ encryption: true, dataDir: join(folder, 'data') },
  });
  open = await host.startRun({ workflowId: GATE.id });
  over = await host.startRun({ workflowId: SHORT.id });
  await host.waitFor(open, ({ status }) => status === 'waiting-approval');
  await host.waitFor(over, ({ status }) => status === 'completed');
  const config = readConfig(host.env);
  const { payloadCodecs = [] } = dataConverter(codecKeys(host.stores));
  source = {
    connection: connectTemporal(host.temporal),
    namespace: host.temporal.namespace,
    dataConverter: { payloadCodecs },
    bundle: await workflowBundle({ cacheDir: config.cacheDir }),
  };
});

afterAll(async () => {
  await (source?.connection as { close(): Promise<void> } | undefined)?.close();
  await host?.stop();
  await rm(folder, { recursive: true, force: true });
});

async function replayed(
  bundle: ReplaySource['bundle'],
  which: Parameters<typeof replayHistories>[1],
): Promise<ReplayedSegment[]> {
  const segments: ReplayedSegment[] = [];
  for await (const segment of replayHistories({ ...source, bundle }, which)) segments.push(segment);
  return segments;
}

/** Temporal's lists come behind its histories. */
async function seen(status: 'Running' | 'Completed', runId: string): Promise<void> {
  const { connection, namespace } = source;
  const query = `WorkflowId = '${runId}' AND ExecutionStatus = '${status}'`;
  const { workflowService } = connection;
  const listed = async () =>
    (await workflowService.listWorkflowExecutions({ namespace, query })).executions.length;
  await until(async () => (await listed()) > 0, `${runId} is listed as ${status}`);
}

it('the build that made them goes on with open runs, and with those that have ended', async () => {
  await seen('Running', open);
  await seen('Completed', over);
  for (const which of ['open', { ended: 10 }] as const)
    for (const { fault } of await replayed(source.bundle, which)) expect(fault).toBeUndefined();
  expect(await replayed(source.bundle, { ended: 0 })).toEqual([]);
});

it('another build is told which runs it would break, and why', async () => {
  await seen('Running', open);
  const code = await readFile(source.bundle.codePath, 'utf8');
  const other = code.replaceAll('prepareInvocation', 'prepareSomething');
  expect(other).not.toBe(code);
  const codePath = join(folder, 'other.js');
  await writeFile(codePath, other);
  const [first] = await replayed({ codePath }, 'open');
  expect(first?.runId).toBe(open);
  expect(first?.fault).toMatch(/nondeterminism/i);
});

it('a build whose workflow code comes to no end is told of, and the check goes on', async () => {
  await seen('Running', open);
  const code = await readFile(source.bundle.codePath, 'utf8');
  const head = /async function runWorkflow\(input\) \{/;
  expect(code).toMatch(head);
  const codePath = join(folder, 'endless.js');
  await writeFile(codePath, code.replace(head, '$& await null; for (;;) {}'));
  const [first] = await replayed({ codePath }, 'open');
  expect(first?.runId).toBe(open);
  expect(first?.fault).toMatch(/workflow task failure/);
});

it('a build whose workflow code throws is told of with what it said', async () => {
  await seen('Running', open);
  const code = await readFile(source.bundle.codePath, 'utf8');
  const codePath = join(folder, 'throwing.js');
  const says = '$& throw new Error("this-is-why");';
  await writeFile(codePath, code.replace(/async function runWorkflow\(input\) \{/, says));
  const [first] = await replayed({ codePath }, 'open');
  expect(first?.fault).toContain('this-is-why');
});

it('a run that is gone before its history is read is left out', async () => {
  const { connection, namespace, dataConverter: converter } = source;
  const client = new Client({ connection, namespace, dataConverter: converter });
  const { runId } = await client.workflow.getHandle(open).describe();
  async function* listed() {
    yield { workflowId: 'run-gone', runId: '00000000-0000-4000-8000-000000000000' };
    yield { workflowId: open, runId };
  }
  const found: string[] = [];
  for await (const { workflowId } of historiesOf(client, listed())) found.push(workflowId);
  expect(found).toEqual([open]);
});

// [I97]
it('a run that cannot be read here is told of, and those beside it are replayed', async () => {
  const reason = 'No encryption key with the id "lost".';
  let asked = 0;
  const codec: PayloadCodec = {
    encode: async (payloads) => payloads,
    decode: async (payloads) => {
      if (++asked === 1) throw new HostError('history_undecodable', { reason });
      return payloads;
    },
  };
  const { connection, namespace, dataConverter: converter } = source;
  const client = new Client({ connection, namespace, dataConverter: converter });
  async function* listed() {
    for (const workflowId of [over, open]) {
      const { runId } = await client.workflow.getHandle(workflowId).describe();
      yield { workflowId, runId };
    }
  }
  const unread: object[] = [];
  const found: string[] = [];
  const options = { codecs: [codec], unread: (segment: object) => void unread.push(segment) };
  for await (const { workflowId } of historiesOf(client, listed(), options)) found.push(workflowId);
  expect(found).toEqual([open]);
  expect(unread).toMatchObject([{ runId: over, fault: reason }]);
});

// [I97]
it('histories that cannot be read are told of as such, and not as broken', async () => {
  const reason = 'No encryption key with the id "lost".';
  const codec: PayloadCodec = {
    encode: async (payloads) => payloads,
    decode: () => Promise.reject(new HostError('history_undecodable', { reason })),
  };
  const blind = { ...source, dataConverter: { payloadCodecs: [codec] } };
  const found: ReplayedSegment[] = [];
  for await (const segment of replayHistories(blind, 'open')) found.push(segment);
  expect(found).toMatchObject([{ runId: open, fault: reason, isUnread: true }]);
});

// Whoever erased a subject has to upgrade, too.
it('a run whose subject was erased breaks nothing', async () => {
  const dataSubject = 'upgraded';
  const erased = await host.startRun({ workflowId: SHORT.id, dataSubject });
  await host.waitFor(erased, ({ status }) => status === 'completed');
  await seen('Completed', erased);
  const path = '/v1/host/openwop-temporal/subjects:erase';
  expect((await host.api(path, { body: { dataSubject } })).status).toBe(200);
  const ended = await replayed(source.bundle, { ended: 10 });
  expect(ended.map(({ runId }) => runId)).not.toContain(erased);
  expect(ended.map(({ runId }) => runId)).toContain(over);
  for (const { fault } of ended) expect(fault).toBeUndefined();
});

describe('the command', { timeout: patient(180_000) }, () => {
  // It takes the data folder that the host had.
  beforeAll(() => host.stop());

  const command = async (cacheDir: string, ...flags: string[]) => {
    const program = [join(ROOT, 'src/app/launch.js'), 'upgrade-check', ...flags];
    const env = { ...host.env, OPENWOP_CACHE_DIR: cacheDir, OPENWOP_TEMPORAL_DOWNLOAD: 'off' };
    const run = promisify(execFile)(process.execPath, program, { cwd: ROOT, env });
    return run.then(
      ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
      (failed: { code: number; stdout: string; stderr: string }) => failed,
    );
  };

  it('ends with 0 where all can go on, and with 1 where one cannot, which it names', async () => {
    const good = await command(CACHE_DIR);
    expect([good.code, good.stdout]).toEqual([0, expect.not.stringContaining(open)]);
    expect(good.stdout).toMatch(/^1 open and 1 ended runs replayed, 0 would break$/m);
    // Nothing that looks like a fault where there is none.
    expect(good.stderr).not.toMatch(/error|sink/i);
    const cacheDir = join(folder, 'other-cache');
    await mkdir(cacheDir);
    const code = await readFile(source.bundle.codePath, 'utf8');
    const other = code.replaceAll('prepareInvocation', 'prepareSomething');
    await writeFile(join(cacheDir, basename(source.bundle.codePath)), other);
    const bad = await command(cacheDir, '--ended', '0');
    expect([bad.code, bad.stdout]).toEqual([1, expect.stringMatching(new RegExp(`${open}.*`))]);
    expect(bad.stdout).not.toContain(over);
  });
});
