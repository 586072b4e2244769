// Agents as processes through the host's front doors (seed 004): runs call tools of the three examples, a human
// is asked, runs are cancelled, the operator sees and attaches; nothing is left when the host stops.
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import type { Frame } from '../facade/sse-client.ts';
import { CALLERS, TOOL } from './opensentience-callers.ts';
import { asked, CANARY, FILE_TEXT, Scene, type Counts, type Told } from './opensentience-scene.ts';
import {
  decisionOf,
  eventOf,
  IDS,
  isProgress,
  itWithAll,
  progressIn,
  progressOf,
} from './opensentience-told.ts';
import { attachJourneys } from './opensentience-attach.ts';
import { mannersJourneys, operatorJourneys } from './opensentience-discretion.ts';
import { restartJourneys } from './opensentience-restart.ts';
import { runRef } from '../support/run-ref.ts';
const NONE: Counts = { calls: 0, succeeded: 0, failed: 0, canceled: 0, unanswered: 0 };
const CHECKSUM = createHash('sha256').update(FILE_TEXT).digest('hex');

const scene = new Scene(CALLERS);
/** Of the one long run, which several tests look at. */
let desk: Told;

beforeAll(() => scene.begin());
afterAll(() => scene.end());

describe('a run with tools of all three example agents', () => {
  itWithAll('the operator sees three agents connected, with their tools', async () => {
    for (const id of IDS) await scene.connected(id);
    const agents = await scene.agents();
    const known = agents.filter(({ agentId }) => IDS.includes(agentId));
    expect(known.map(({ agentId, status, health }) => [agentId, status, health])).toEqual(
      IDS.map((id) => [id, 'connected', 'ok']),
    );
    expect(known.map(({ toolCount }) => toolCount)).toEqual([3, 3, 4]);
  });

  itWithAll('calls them over several turns, asks a human, and completes', async () => {
    const runId = await scene.run('desk', {
      title: 'A note',
      text: `text with ${CANARY.argument}`,
      word: CANARY.result,
    });
    const streams = [scene.stream(runId, 'debug'), scene.stream(runId, 'messages')] as const;
    const waiting = await scene.told(runId, asked);
    expect(waiting.snapshot.status).toBe('waiting-approval');
    expect(waiting.of('interrupt.requested')[0]?.data).toMatchObject({
      artifactType: 'tool-call',
      artifactData: { toolId: TOOL.postEntry, arguments: { text: CHECKSUM } },
    });
    expect(await scene.entries()).toEqual([]);
    await scene.answer(runId, 'accept');
    desk = await scene.told(runId);
    expect(desk.snapshot.status).toBe('completed');
    expect(decisionOf(desk)).toEqual({ title: 'A note', matches: 1, entry: 1, cents: 1_250 });
    const [debug, messages] = await Promise.all(streams);
    expect(progressIn(debug.frames).length).toBeGreaterThan(0);
    expect(messages.status).toBe(200);
    expect(progressIn(messages.frames)).toEqual([]);
    for (const told of ['tool.status', 'step 1 of', CANARY.result])
      expect(JSON.stringify(messages.frames)).not.toContain(told);
  });

  itWithAll('each call is told once, with its result; the human before the effect', async () => {
    const order = [TOOL.addNote, TOOL.checksum, TOOL.grep, TOOL.slowReport];
    const toolsOf = (type: string) => desk.of(type).map(({ toolName }) => toolName);
    expect(toolsOf('agent.toolCalled')).toEqual([...order, TOOL.postEntry, TOOL.balance]);
    expect(toolsOf('agent.toolReturned').sort()).toEqual(toolsOf('agent.toolCalled').sort());
    const returned = desk.of('agent.toolReturned');
    expect(new Set(returned.map(({ status }) => status))).toEqual(new Set(['ok']));
    const outcome = (toolId: string) => returned.find((one) => one.toolName === toolId)?.outcome;
    expect(outcome(TOOL.addNote)).toMatchObject({ note: { title: 'A note' }, repeated: false });
    expect(outcome(TOOL.checksum)).toEqual({ sha256: CHECKSUM, bytes: FILE_TEXT.length });
    expect(outcome(TOOL.balance)).toEqual({ account: 'cash', cents: 1_250 });
    const types = desk.events.map(({ type }) => type);
    expect(types.filter((type) => type.startsWith('interrupt.'))).toEqual([
      'interrupt.requested',
      'interrupt.resolved',
    ]);
  });

  itWithAll('seed 004 §4.3.2 progress is told by channel, as the agents said it', async () => {
    const channels = new Set(desk.events.filter(isProgress).map(({ payload }) => payload));
    const named = [...channels].map((payload) => (payload as { channel: string }).channel);
    expect(new Set(named)).toEqual(new Set(['tool.status', 'tool.partial_result']));
    expect(progressOf(desk, TOOL.slowReport)).toBe('step 1 of 2\nstep 2 of 2\n');
    expect(progressOf(desk, TOOL.grep)).toContain(CANARY.result);
  });

  itWithAll('the effects are there: the note for another run, the entry once', async () => {
    const entries = await scene.entries();
    expect(entries.map(({ number, text }) => [number, text])).toEqual([[1, CHECKSUM]]);
    const read = await scene.told(await scene.run('reader'));
    expect(decisionOf(read)).toEqual({ count: 1 });
    expect(progressOf(read, TOOL.listNotes)).toContain('"A note"');
  });

  itWithAll('metrics count each tool right', async () => {
    const once = { ...NONE, calls: 1, succeeded: 1 };
    const called = [...desk.of('agent.toolCalled').map(({ toolName }) => toolName as string)];
    for (const toolId of [...called, TOOL.listNotes])
      await expect.poll(() => scene.counts(toolId)).toEqual(once);
    expect(await scene.counts(TOOL.listFiles)).toEqual(NONE);
    const { text } = await scene.operator('/metrics');
    expect(text).toContain(TOOL.postEntry);
  });
});

describe('what is not performed', () => {
  itWithAll('a human says no: nothing happens, and the model is told', async () => {
    const [before, entries] = [await scene.counts(TOOL.postEntry), await scene.entries()];
    const runId = await scene.run('poster', { text: 'never to be posted' });
    expect((await scene.told(runId, asked)).snapshot.status).toBe('waiting-approval');
    await scene.answer(runId, 'reject');
    const told = await scene.told(runId);
    expect(told.snapshot.status).toBe('completed');
    expect(decisionOf(told)).toMatchObject({ code: 'effect_skipped', number: null });
    expect(await scene.entries()).toEqual(entries);
    expect(await scene.counts(TOOL.postEntry)).toEqual(before);
  });

  itWithAll(
    'arguments against the schema and tools that are not there: told, not sent',
    async () => {
      const tools = [TOOL.addNote, TOOL.checksum, TOOL.listFiles];
      const counts = () => Promise.all(tools.map((toolId) => scene.counts(toolId)));
      const before = await counts();
      const runId = await scene.run('clumsy');
      const told = await scene.told(runId);
      expect(told.snapshot.status).toBe('completed');
      expect(decisionOf(told)).toEqual({
        codes: [
          ...['tool_invalid_input', 'tool_invalid_input', 'tool_invalid_input'],
          ...['forbidden', 'forbidden'],
        ],
        why: expect.stringContaining('/title') as string,
      });
      expect(await counts()).toEqual(before);
    },
  );
});

describe('seed 004 §4.4 a run that is cancelled in the middle of a call', () => {
  itWithAll('shows progress before the call returns; then the agent hears the cancel', async () => {
    const before = await scene.counts(TOOL.slowReport);
    const runId = await scene.run('endless');
    const isLive = (frame: Frame) => frame.event === 'output.chunk' && isProgress(eventOf(frame));
    const { frames } = await scene.stream(runId, 'debug', isLive);
    expect(frames.at(-1)?.data).toContain('step 1 of');
    expect(frames.map(({ event }) => event)).not.toContain('agent.toolReturned');
    expect((await scene.host.api(`/v1/runs/${runId}`)).body.status).toBe('running');
    const ledger = () => scene.agent('com.example.ledger');
    await expect.poll(async () => (await ledger()).inFlight).toBe(1);
    expect((await ledger()).calls).toMatchObject([
      { toolId: TOOL.slowReport, runId, state: 'in-flight' },
    ]);
    await scene.host.api(`/v1/runs/${runId}/cancel`, { body: { reason: 'enough' } });
    const told = await scene.told(runId);
    expect(told.snapshot.status).toBe('cancelled');
    await expect.poll(async () => (await ledger()).inFlight).toBe(0);
    await expect
      .poll(() => scene.counts(TOOL.slowReport))
      .toEqual({
        ...before,
        calls: before.calls + 1,
        canceled: before.canceled + 1,
      });
    expect(progressOf(told, TOOL.slowReport)).toMatch(/^step 1 of 1000\n/);
    expect(await scene.host.stores.log.openBlocks(runRef(runId))).toEqual([]);
    expect((await ledger()).status).toBe('connected');
  });
});

mannersJourneys(scene);
attachJourneys(scene);
operatorJourneys(scene, () => desk);
restartJourneys(scene, () => desk);
