// What outlives a host (architecture §3.6, §4, §8): runs over several segments, a worker that leaves in mid-sentence,
// the log's tables dropped and rebuilt byte for byte; at the end nothing anywhere holds the secret.
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Connection } from '@temporalio/client';
import { temporal } from '@temporalio/proto';
import { describe, expect, it } from 'vitest';
import { openDatabase } from '../../src/adapters/postgres/index.ts';
import type { Db } from '../../src/adapters/postgres/db.ts';
import { CONNECTION_DEFAULTS } from '../../src/adapters/temporal/rpc.ts';
import { demoRunRequest } from '../../src/demo/index.ts';
import type { Head, LogRow } from '../../src/ports/log.ts';
import { until } from '../support/host.ts';
import { checkInvariants } from '../support/invariants.ts';
import { quietLogger } from '../support/quiet-logger.ts';
import { deltasOf, shapeOf } from './brackets.ts';
import { ended, waiting, type Journey } from './journey.ts';
import {
  CANARY,
  CLIMBER,
  MARATHON,
  MARATHON_SPEECH,
  REFUND_DESK,
  workflowOf,
} from './journey-workflows.ts';
import { runRef } from '../support/run-ref.ts';
/** Events of a segment. */
export const FORCED_AFTER = 12;

/** All rows of all tables as JSON; bytes as hex. */
export async function dump(db: Db): Promise<string> {
  const tables = await db.query<{ name: string }>(
    `SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public'`,
  );
  const texts: string[] = [];
  for (const { name } of tables) {
    const rows = await db.query<{ row: string }>(
      `SELECT to_jsonb(t)::text AS row FROM "${name}" t`,
    );
    texts.push(...rows.map(({ row }) => row));
  }
  return texts.join('\n');
}

async function files(folder: string): Promise<string> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  const texts = await Promise.all(
    entries
      .filter((entry) => entry.isFile())
      .map((entry) => readFile(join(entry.parentPath, entry.name), 'latin1')),
  );
  return texts.join('\n');
}

/** Of every segment of the runs, as Temporal gives them. */
async function histories(
  { host }: Journey,
  runs: readonly string[],
): Promise<temporal.api.history.v1.IHistory[]> {
  const { address, namespace } = host.temporal;
  const connection = await Connection.connect({ ...CONNECTION_DEFAULTS, address });
  const all: temporal.api.history.v1.IHistory[] = [];
  try {
    for (const workflowId of runs) {
      for (const { temporalRunId: runId } of await host.stores.segments.ofRun(runRef(workflowId))) {
        const { history } = await connection.workflowService.getWorkflowExecutionHistory({
          namespace,
          execution: { workflowId, runId },
        });
        all.push(history ?? {});
      }
    }
  } finally {
    await connection.close();
  }
  return all;
}

async function rawHistories(journey: Journey): Promise<string> {
  const bytes = (await histories(journey, journey.runs)).map((history) =>
    temporal.api.history.v1.History.encode(history).finish(),
  );
  return Buffer.concat(bytes).toString('latin1');
}

async function mostTries(journey: Journey, runId: string): Promise<number> {
  const events = (await histories(journey, [runId])).flatMap((history) => history.events ?? []);
  return Math.max(
    ...events.map(({ activityTaskStartedEventAttributes: started }) => started?.attempt ?? 0),
  );
}

interface Kept {
  readonly rows: readonly LogRow[];
  readonly head: Head;
  readonly text: string;
}

/** The token is Temporal's own: a new one may say the same. */
async function keep(journey: Journey): Promise<Map<string, Kept>> {
  const kept = new Map<string, Kept>();
  for (const runId of journey.runs) {
    const { text } = await journey.events(runId);
    const head = await journey.host.stores.log.head(runRef(runId));
    if (!head) throw new Error(`${runId} has no head`);
    kept.set(runId, { rows: await journey.rows(runId), head: { ...head, token: '' }, text });
  }
  return kept;
}

async function database(journey: Journey) {
  const { databaseUrl, dataDir } = journey;
  return openDatabase(
    databaseUrl
      ? { kind: 'postgres', url: databaseUrl }
      : { kind: 'pglite', dir: join(dataDir, 'postgres') },
    quietLogger,
  );
}

function aWorkerThatLeaves(journey: Journey): void {
  it('architecture §3.5 a worker that leaves in mid-sentence: the next one adopts what was said, one block, one closing event', async () => {
    const runId = await journey.run(workflowOf(MARATHON));
    await until(
      async () => (await journey.rows(runId)).some(({ type }) => type.endsWith('.delta')),
      'the agent speaks',
    );
    await journey.stop();
    await journey.start({ facade: { forceContinueAsNewAfter: FORCED_AFTER } });
    const before = (await journey.rows(runId)).filter(({ type }) => type.endsWith('.delta'));
    expect(before.length).toBeGreaterThan(0);
    await until(
      async () => ended((await journey.host.api(`/v1/runs/${runId}`)).body as never),
      'the agent has ended',
    );
    const { events, brackets } = await journey.told(runId);
    expect(brackets.map(shapeOf)).toEqual(['SPcdRuDC']);
    expect(await mostTries(journey, runId)).toBeGreaterThan(1);
    const deltas = events.filter(({ type }) => type === 'agent.reasoning.delta');
    expect(deltasOf(events)).toBe(MARATHON_SPEECH.join(''));
    expect(deltas.slice(0, before.length).map(({ eventId }) => eventId)).toEqual(
      before.map(({ eventId }) => eventId),
    );
  });
}

/** On a host that ends a segment after FORCED_AFTER events, unless a worker leaves before, while an agent speaks. */
export function lastingJourneys(
  journey: Journey,
  { workerLeaves }: { workerLeaves: boolean },
): void {
  let raw = '';
  let unanswered = '';

  describe('over segments, restarts and losses', () => {
    if (workerLeaves) aWorkerThatLeaves(journey);

    it('architecture §4 a run in many segments is one log: the desk with its human, a loop of calls', async () => {
      const desk = await journey.run(REFUND_DESK, { inputs: demoRunRequest.inputs });
      const loop = await journey.run(workflowOf(CLIMBER));
      for (const [runId, nodeId] of [[desk, 'triage'] as const, [loop, 'think'] as const]) {
        await journey.told(runId, waiting);
        const { status } = await journey.answer(runId, nodeId, { action: 'accept' });
        expect(status).toBe(200);
      }
      const [told, climbed] = [await journey.told(desk), await journey.told(loop)];
      expect(told.snapshot.status).toBe('completed');
      expect(told.brackets.map(shapeOf)).toEqual(['SPcdRuTtdRuDC', 'SPcDHC', 'SPcdRuTtdRuDC']);
      expect(climbed.brackets.map(shapeOf)).toEqual([`SPc${'dRuTt'.repeat(8)}RuDC`, 'SPcDC']);
      expect(climbed.snapshot.outputs?.decision).toEqual({ last: 7 });
      for (const runId of [desk, loop])
        expect((await journey.host.stores.segments.ofRun(runRef(runId))).length).toBeGreaterThan(1);
    });

    it('architecture §8 the invariants hold of every run of this file', async () => {
      unanswered = await journey.run(REFUND_DESK, { inputs: demoRunRequest.inputs });
      await journey.told(unanswered, waiting);
      await checkInvariants(journey.host, journey.runs);
      raw = await rawHistories(journey);
    });

    it('architecture §3.6 the log dropped comes back byte for byte; the run that waits is answered after', async () => {
      const before = await keep(journey);
      await journey.stop();
      const { db, close } = await database(journey);
      await db.query('TRUNCATE run_events, run_heads');
      await close();
      await journey.start();
      expect((await journey.host.log.rebuildAll()).refused).toEqual([]);
      const after = await keep(journey);
      for (const [runId, kept] of before) expect(after.get(runId)).toEqual(kept);
      expect((await journey.answer(unanswered, 'triage', { action: 'accept' })).status).toBe(200);
      expect((await journey.told(unanswered)).snapshot.status).toBe('completed');
      await checkInvariants(journey.host, unanswered);
    });

    it(' nothing holds the secret: tables, content, raw history, logs; the search finds what is there', async () => {
      await journey.stop();
      const { db, close } = await database(journey);
      const rows = await dump(db).finally(close);
      const content = await files(join(journey.dataDir, 'content'));
      const logs = journey.oldLogs.join('\n');
      const [before, behind] = CANARY.split('"');
      for (const secret of [CANARY, before ?? '', behind ?? '']) {
        const hex = Buffer.from(secret).toString('hex');
        for (const text of [rows, content, logs, raw])
          expect([text.includes(secret), text.includes(hex)]).toEqual([false, false]);
      }
      const mark = '[REDACTED:OPENAI_API_KEY]';
      const stored = journey.databaseUrl ? Buffer.from(mark).toString('hex') : mark;
      const kept = journey.databaseUrl ? rows : content;
      expect([rows.includes(mark), kept.includes(stored)]).toEqual([true, true]);
      expect(logs.length).toBeGreaterThan(0);
      expect(raw.includes('agent.decided')).toBe(!journey.encrypted);
    });
  });
}
