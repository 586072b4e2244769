// Which streams show what a tool tells while it works (stream-modes.md): `debug` does, `messages` is text of the
// answer.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { deltaKey, eventIdOf } from '../../src/rules/ids.ts';
import type { JsonObject } from '../../src/rules/json.ts';
import { FIRST } from '../../src/facade/majors.ts';
import { frameKind, parseModes, type StreamMode } from '../../src/facade/event-query.ts';
import { streamEvents } from '../../src/facade/sse.ts';
import { createLog, type Log } from '../../src/log/log.ts';
import type { RunRow } from '../../src/ports/runs.ts';
import type { Stores } from '../../src/ports/stores.ts';
import {
  admitted,
  complete,
  emitted,
  HistoryBuilder,
  memo,
  schedule,
} from '../support/histories.ts';
import { openAnyStores, registerRun, ScriptedHistory, silentLogger } from '../support/log-parts.ts';
import { runRef } from '../support/run-ref.ts';

type Kind = 'event' | 'message' | undefined;
const chunk = (channel?: string): { type: string; payload: string } => ({
  type: 'output.chunk',
  payload: JSON.stringify({ chunk: 'x', ...(channel === undefined ? {} : { channel }) }),
});
const ROWS = {
  answer: chunk(),
  channelled: chunk('answer'),
  progress: chunk('tool.stdout'),
  completed: { type: 'node.completed', payload: '{}' },
};
const KINDS: Record<Exclude<StreamMode, 'values'>, Record<keyof typeof ROWS, Kind>> = {
  updates: { answer: undefined, channelled: undefined, progress: undefined, completed: 'event' },
  messages: { answer: 'message', channelled: 'message', progress: undefined, completed: undefined },
  debug: { answer: 'event', channelled: 'event', progress: 'event', completed: 'event' },
};
const CASES = Object.entries(KINDS).flatMap(([mode, kinds]) =>
  Object.entries(kinds).map(([name, kind]) => ({ mode, name: name as keyof typeof ROWS, kind })),
);

it.each(CASES)('stream-modes.md: $mode, $name: $kind', ({ mode, name, kind }) => {
  expect(frameKind(parseModes(mode), ROWS[name])).toBe(kind);
});

describe('stream-modes.md: a run in which a tool tells its progress', () => {
  const runId = randomUUID();
  let stores: Stores;
  let log: Log;

  beforeAll(async () => {
    stores = await openAnyStores();
    const history = new ScriptedHistory();
    log = createLog({ stores, history, logger: silentLogger, processId: 'p1' });
    await registerRun(stores, runId);
    const built = new HistoryBuilder();
    const base = { nodeId: 'n', runId, isLast: true };
    built.task(
      schedule('call', built.carrier(emitted('run.started|r', 'run.started', { workflowId: 'w' }))),
    );
    history.add(`${runId}-t1`, built);
    await log.catchUp(runRef(runId));
    const key = deltaKey('call', 0);
    const progress = { ...base, isLast: false, chunk: 'reading ', channel: 'tool.stdout' };
    const row = { runId, eventId: eventIdOf(runId, key), key, type: 'output.chunk', nodeId: 'n' };
    const stored = {
      ...row,
      payload: JSON.stringify({ ...progress, sequence: 0 }),
      timestampMs: 1,
    };
    await stores.log.appendDeltas(runRef(runId), 'call', 1, [{ k: 0, row: stored }]);
    await stores.log.closeBlock(runRef(runId), 'call');
    const answer = {
      type: 'output.chunk',
      nodeId: 'n',
      payload: { ...base, chunk: 'The answer.' },
    };
    built.completed('call', { events: [answer] }).task(memo(built.carrier(admitted('call'))));
    built.task(complete(built.carrier(emitted('terminal', 'run.completed', {}))));
    await log.catchUp(runRef(runId));
  });
  afterAll(async () => {
    log.close();
    await stores.close();
  });

  async function shown(mode: string, bufferMs = 0): Promise<{ event: string; data: JsonObject }[]> {
    let text = '';
    const row = (await stores.runs.find('default', runId)) as RunRow;
    const signal = new AbortController().signal;
    const send = async (more: string): Promise<boolean> => {
      text += more;
      return true;
    };
    const query = { modes: parseModes(mode), bufferMs };
    await streamEvents(
      { deps: { log }, major: FIRST, row, query, after: -1 },
      { signal, send, end: () => undefined },
    );
    return [...text.matchAll(/event: (.*)\ndata: (.*)\n/g)].map(([, event = '', data = '']) => ({
      event,
      data: JSON.parse(data) as JsonObject,
    }));
  }

  it('messages leaves the tool’s chunks out', async () => {
    const frames = await shown('messages');
    expect(frames.map(({ event, data }) => [event, data.chunk])).toEqual([
      ['ai.message.chunk', 'The answer.'],
    ]);
  });

  it('messages in batches as well', async () => {
    const [batch, ...more] = await shown('messages', 5);
    expect(more).toEqual([]);
    expect(JSON.stringify(batch?.data)).not.toContain('reading');
  });

  it('debug shows every chunk as it stands in the log', async () => {
    const frames = await shown('debug');
    expect(frames.map(({ event }) => event)).toEqual([
      ...['run.started', 'output.chunk', 'output.chunk', 'run.completed'],
    ]);
    expect(frames[1]?.data.payload).toMatchObject({ channel: 'tool.stdout', chunk: 'reading ' });
  });

  it('updates shows none', async () => {
    expect((await shown('updates')).map(({ event }) => event)).not.toContain('output.chunk');
  });
});
