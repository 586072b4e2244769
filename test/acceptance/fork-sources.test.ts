// Sources that are not simply there (architecture §6), on a real host: a log that is being built anew, histories that
// Temporal has forgotten, and an archive that is damaged. A fork has all of its record, or it says from which event on it
// has none.
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, type Connection } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createEncryption, parseEncryptionKeys } from '../../src/adapters/temporal/codec.ts';
import { connectTemporal } from '../../src/adapters/temporal/connection.ts';
import { createHistoryReader } from '../../src/adapters/temporal/history.ts';
import { createHistoryRemover } from '../../src/adapters/temporal/history-remover.ts';
import { archiveClosed } from '../../src/log/archive.ts';
import type { JsonObject } from '../../src/rules/json.ts';
import { ringOf } from '../../src/rules/key-ring.ts';
import type { LogRow } from '../../src/ports/log.ts';
import { agentNode, chain, node } from '../support/definitions.ts';
import { startTestHost, until, type TestHost } from '../support/host.ts';
import { checkInvariants } from '../support/invariants.ts';
import { writeCaller, writeDefinition } from '../support/opensentience/agent-folders.ts';
import { quietLogger } from '../support/quiet-logger.ts';
import { runRef } from '../support/run-ref.ts';
import { patient } from '../support/machine.ts';

const AGENT = 'local.sources.clerk';
const sets = (id: string) =>
  node(id, 'core.setVariable', { config: { variableName: 'n', value: 3 } });
const STORY = chain(
  'sources',
  [sets('a'), agentNode('think', AGENT), sets('b'), agentNode('again', AGENT), sets('c')],
  { variables: [{ name: 'n', type: 'number' }] },
);
/** Of forks that are made while their source is built anew. */
const AT_ONCE = 6;
/** Longest time in ms that Temporal's server takes to delete what it was asked to. */
const FORGETS_MS = patient(120_000);

let host: TestHost;
let folder: string;
let connection: Connection;

const ended = ({ status }: { status: string }) =>
  ['completed', 'failed', 'cancelled'].includes(status);
const rowsOf = (runId: string) => host.stores.log.read(runRef(runId), { after: -1, limit: 10_000 });
const facts = (rows: readonly LogRow[], runId: string): string[] =>
  rows
    .filter(({ type }) => type !== 'agent.reasoning.delta')
    .map(({ type, nodeId, payload }) =>
      JSON.stringify({ type, nodeId, payload: payload.replaceAll(runId, 'it') }),
    );

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'openwop-fork-sources-'));
  await writeCaller(join(folder, 'agents'), {
    ...{ agentId: AGENT, toolAllowlist: ['core:clock'] },
    turns: [
      { chunks: ['Let ', 'me ', 'see.'], calls: [{ toolId: 'core:clock', arguments: {} }] },
      { final: { decision: { told: true }, confidence: 1 } },
    ],
  });
  await writeDefinition(join(folder, 'definitions'), STORY);
  host = await startTestHost({
    ...{ agentsDir: join(folder, 'agents'), fixturesDir: join(folder, 'definitions') },
    encryption: true,
    // Archives are files, and are damaged there.
    database: 'pglite',
    facade: { forceContinueAsNewAfter: 15 },
  });
  connection = connectTemporal(host.temporal);
});

afterAll(async () => {
  await connection?.close();
  await host?.stop();
  await rm(folder, { recursive: true, force: true });
});

async function endedRun(): Promise<string> {
  const runId = await host.startRun({ workflowId: STORY.id });
  await host.waitFor(runId, ended);
  expect((await host.stores.segments.ofRun(runRef(runId))).length).toBeGreaterThan(1);
  return runId;
}

const ask = (source: string, body: object) =>
  host.api<{ runId: string; error: string }>(`/v1/runs/${source}:fork`, { body });

async function fork(source: string, body: object): Promise<string> {
  const answer = await ask(source, body);
  expect([answer.status, answer.text]).toEqual([201, expect.anything()]);
  return answer.body.runId;
}

/** In the archive alone. */
async function forget(runId: string): Promise<void> {
  const { namespace } = host.temporal;
  const codec = createEncryption({
    ring: ringOf(parseEncryptionKeys(host.env.OPENWOP_ENCRYPTION_KEYS ?? '')),
  });
  const history = createHistoryReader({ connection, namespace, codec });
  const parts = { stores: host.stores, history, logger: quietLogger };
  const isArchived = async () => {
    await archiveClosed(parts, new AbortController().signal);
    const segments = await host.stores.segments.ofRun(runRef(runId));
    return segments.every(({ archive }) => archive?.startsWith('sha256:'));
  };
  await until(isArchived, 'all of it is archived', { limitMs: FORGETS_MS });
  await history.close();
  const remover = createHistoryRemover({ connection, namespace });
  for (const { temporalRunId } of await host.stores.segments.ofRun(runRef(runId))) {
    await remover.remove(runId, temporalRunId);
    const { workflow } = new Client({ connection, namespace });
    const isForgotten = () =>
      workflow
        .getHandle(runId, temporalRunId)
        .fetchHistory()
        .then(
          () => false,
          () => true,
        );
    await until(isForgotten, 'Temporal has forgotten it', { limitMs: FORGETS_MS });
  }
}

describe('replay.md: a source', { timeout: patient(300_000) }, () => {
  it('that is built anew meanwhile is forked as it is', async () => {
    const source = await endedRun();
    const before = await rowsOf(source);
    let isBuilt = true;
    const building = (async () => {
      for (let times = 0; ; times++) {
        await host.log.rebuild(runRef(source));
        if (!isBuilt) return times;
      }
    })();
    const modes = Array.from({ length: AT_ONCE }, (_, at) => (at % 2 ? 'branch' : 'replay'));
    const forks = await Promise.all(
      modes.map(async (mode, at) => {
        const fromSeq = Math.floor((before.length * at) / AT_ONCE);
        const runId = await fork(source, { mode, fromSeq });
        return { runId, fromSeq, mode, end: await host.waitFor(runId, ended) };
      }),
    );
    isBuilt = false;
    expect(await building).toBeGreaterThan(0);
    for (const { runId, fromSeq, mode, end } of forks) {
      expect(end.status).toBe('completed');
      const rows = await rowsOf(runId);
      expect(facts(rows.slice(0, fromSeq), runId)).toEqual(facts(before.slice(0, fromSeq), source));
      if (mode === 'replay') expect(facts(rows, runId)).toEqual(facts(before, source));
      await checkInvariants(host, runId);
    }
    expect(await rowsOf(source)).toEqual(before);
  });

  it('of which Temporal knows nothing any more is forked from its archive', async () => {
    const source = await endedRun();
    const before = await rowsOf(source);
    await forget(source);
    const replay = await fork(source, { mode: 'replay', fromSeq: 0 });
    const branch = await fork(source, { mode: 'branch', fromSeq: before.length - 4 });
    for (const runId of [replay, branch])
      expect((await host.waitFor(runId, ended)).status).toBe('completed');
    expect(facts(await rowsOf(replay), replay)).toEqual(facts(before, source));
    await checkInvariants(host, [replay, branch]);
  });

  it('that is archived and forgotten meanwhile is forked as it is', async () => {
    const source = await endedRun();
    const before = await rowsOf(source);
    let isForgotten = false;
    const forgetting = forget(source).finally(() => (isForgotten = true));
    const forks: string[] = [];
    // The first begins before anything is forgotten, the last behind it, however quick that is.
    for (let isLast = false; !isLast;) {
      isLast = isForgotten;
      const runId = await fork(source, { mode: 'replay', fromSeq: 0 });
      forks.push(runId);
      expect((await host.waitFor(runId, ended)).status).toBe('completed');
    }
    await forgetting;
    for (const runId of forks)
      expect(facts(await rowsOf(runId), runId)).toEqual(facts(before, source));
    await checkInvariants(host, forks);
  });

  it('whose archive is damaged: the fork names the first event that it has no record of, and does nothing', async () => {
    const source = await endedRun();
    const before = await rowsOf(source);
    await forget(source);
    const [, second] = await host.stores.segments.ofRun(runRef(source));
    const hex = second?.archive?.slice('sha256:'.length) ?? '';
    const file = join(host.dataDir, 'content', 'default', hex.slice(0, 2), hex);
    const bytes = await readFile(file);
    bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 1;
    await writeFile(file, bytes);
    for (const body of [
      { mode: 'replay', fromSeq: 0 },
      { mode: 'branch', fromSeq: 2 },
    ]) {
      const runId = await fork(source, body);
      const { status, error } = await host.waitFor(runId, ended);
      expect([status, error]).toMatchObject([
        'failed',
        { code: 'replay_source_missing', details: { cause: 'history_undecodable' } },
      ]);
      // It has stated nothing of its source, and nothing of its own.
      expect((await rowsOf(runId)).map(({ type }) => type)).toEqual(['run.failed']);
      const { reason = '' } = (error?.details ?? {}) as { reason?: string };
      const [, sequence = ''] = /cannot be read from event (\d+) on/.exec(reason) ?? [];
      const first = before[Number(sequence)];
      expect(Number(sequence)).toBeGreaterThan(0);
      expect(reason).toContain(`(${first?.type}, ${first?.eventId})`);
    }
    const bundle = await host.api<{ error: string; details: JsonObject }>(
      `/v1/host/openwop-temporal/runs/${source}/bundle`,
    );
    expect([bundle.status, bundle.body.error]).toEqual([503, 'history_undecodable']);
    expect(await rowsOf(source)).toEqual(before);
  });
});
