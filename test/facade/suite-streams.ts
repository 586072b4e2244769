// HTTP suite: event streams and poll (stream-modes.md).
import { beforeAll, describe, expect, it } from 'vitest';
import type { RunEventDoc, RunSnapshot } from '../../schemas/types.generated.ts';
import { validate } from '../../src/wire/validators.ts';
import { readSse, type Frame } from './sse-client.ts';
import { ended, waiting, types, type Envelope, type Suite } from './suite-parts.ts';

export function streamTests({ host, auth, log, stream }: Suite): void {
  describe('stream-modes.md: event streams', () => {
    let runId = '';
    let all: RunEventDoc[] = [];
    let texts: string[] = [];
    beforeAll(async () => {
      runId = await host().startRun({ workflowId: 'three' });
      await host().waitFor(runId, ended);
      all = await log(runId);
      texts = all.map((event) => JSON.stringify(event));
    });
    const dataOf = (frames: readonly Frame[]): string[] => frames.map(({ data }) => data);

    it('debug sends every event, with id, event and the bytes of the JSON read, and the server closes', async () => {
      const { status, headers, frames } = await stream(runId, '?streamMode=debug');
      expect([status, headers.get('content-type')]).toEqual([
        200,
        'text/event-stream; charset=utf-8',
      ]);
      expect(dataOf(frames)).toEqual(texts);
      expect(frames.map(({ id }) => id)).toEqual(all.map(({ sequence }) => String(sequence)));
      expect(frames.map(({ event }) => event)).toEqual(types(all));
    });

    it('updates is the default and a part of debug; a comma list is the union, each event once', async () => {
      const updates = await stream(runId);
      const names = updates.frames.map(({ event }) => event);
      expect(names).toContain('run.started');
      expect(names.at(-1)).toBe('run.completed');
      expect(names).not.toContain('node.started');
      expect(texts).toEqual(expect.arrayContaining(dataOf(updates.frames)));
      expect(dataOf((await stream(runId, '?streamMode=updates,debug')).frames)).toEqual(texts);
      expect(dataOf((await stream(runId, '?streamMode=updates,messages')).frames)).toEqual(
        dataOf(updates.frames),
      );
      expect((await stream(runId, '?streamMode=messages')).frames).toEqual([]);
    });

    it('values sends the snapshot, the same as the GET', async () => {
      const { frames } = await stream(runId, '?streamMode=values');
      const snapshot = await host().api(`/v1/runs/${runId}`);
      expect(frames.map(({ event }) => event)).toEqual(['state.snapshot']);
      expect(frames[0]?.data).toBe(snapshot.text);
      expect(frames[0]?.id).toBe(String(all.length - 1));
    });

    it.each(['nonsense', 'updates,nonsense', 'values,debug', 'updates,', '', 'Updates'])(
      'mode "%s" is 400 with the supported names, as JSON too',
      async (mode) => {
        for (const accept of ['text/event-stream', 'application/json']) {
          const { status, body } = await host().api<Envelope>(
            `/v1/runs/${runId}/events?streamMode=${mode}`,
            { headers: { accept } },
          );
          expect([status, body.error]).toEqual([400, 'unsupported_stream_mode']);
          expect(body.details?.supported).toEqual(['values', 'updates', 'messages', 'debug']);
        }
      },
    );

    it.each(['5001', '-1', '99999', 'x', '1.5'])('bufferMs=%s is 400', async (value) => {
      const { status, body } = await host().api<Envelope>(
        `/v1/runs/${runId}/events?bufferMs=${value}`,
      );
      expect([status, body.error]).toEqual([400, 'validation_error']);
    });

    it('bufferMs sends batches with all events, flushed before the close; 0 sends none', async () => {
      const { frames } = await stream(runId, '?streamMode=debug&bufferMs=5000');
      expect(new Set(frames.map(({ event }) => event))).toEqual(new Set(['batch']));
      expect(
        frames.flatMap(({ data }) =>
          (JSON.parse(data) as RunEventDoc[]).map((event) => JSON.stringify(event)),
        ),
      ).toEqual(texts);
      expect(frames.at(-1)?.id).toBe(String(all.length - 1));
      expect(dataOf((await stream(runId, '?streamMode=debug&bufferMs=0')).frames)).toEqual(texts);
    });

    it('Last-Event-ID resumes behind a sequence or an eventId; at and beyond the end nothing comes', async () => {
      const resume = async (id: string) =>
        dataOf((await stream(runId, '?streamMode=debug', { 'last-event-id': id })).frames);
      expect(await resume('2')).toEqual(texts.slice(3));
      expect(await resume(all[2]?.eventId ?? '')).toEqual(texts.slice(3));
      expect(await resume(String(all.length - 1))).toEqual([]);
      expect(await resume('999999')).toEqual([]);
      const bad = await host().api<Envelope>(`/v1/runs/${runId}/events`, {
        headers: { 'last-event-id': 'evt-of-nobody' },
      });
      expect([bad.status, bad.body.error]).toEqual([400, 'validation_error']);
    });

    it('order of checks: key, run, mode, buffer', async () => {
      const path = `/v1/runs/unknown/events?streamMode=x&bufferMs=x`;
      expect((await host().api(path, { headers: { authorization: '' } })).status).toBe(401);
      expect((await host().api(path)).status).toBe(404);
      expect((await host().api<Envelope>(path.replace('unknown', runId))).body.error).toBe(
        'unsupported_stream_mode',
      );
    });

    it('a live stream gets the backlog, then each event as it comes, and can be resumed in between', async () => {
      const open = await host().startRun({ workflowId: 'approval' });
      const url = `${host().url}/v1/runs/${open}/events?streamMode=debug`;
      const first = await readSse({
        url,
        headers: auth(),
        until: ({ event }) => event === 'interrupt.requested',
      });
      const rest = readSse({
        url,
        headers: { ...auth(), 'last-event-id': first.frames.at(-1)?.id ?? '' },
      });
      const values = stream(open, '?streamMode=values');
      await host().waitFor(open, waiting);
      expect(
        (
          await host().api(`/v1/runs/${open}/interrupts/gate`, {
            body: { resumeValue: { action: 'accept' } },
          })
        ).status,
      ).toBe(200);
      const texts2 = (await rest, await log(open)).map((event) => JSON.stringify(event));
      expect([...dataOf(first.frames), ...dataOf((await rest).frames)]).toEqual(texts2);
      const snapshots = (await values).frames.map(
        ({ data }) => (JSON.parse(data) as RunSnapshot).status,
      );
      expect(snapshots.at(-1)).toBe('completed');
      expect(snapshots.length).toBeGreaterThan(1);
    });
  });
}

interface Poll {
  readonly events: RunEventDoc[];
  readonly isComplete: boolean;
  readonly lastEventSeq: number;
  readonly runStatus: string;
  readonly isTerminal: boolean;
}

export function pollTests({ host, log }: Suite): void {
  describe('version-negotiation.md §events/poll: poll', () => {
    it('gives everything without a cursor, what follows with one, nothing and 200 past the end', async () => {
      const runId = await host().startRun({ workflowId: 'three' });
      await host().waitFor(runId, ended);
      const all = await log(runId);
      const poll = async (query: string): Promise<Poll> => {
        const answer = await host().api<Poll & Record<string, unknown>>(
          `/v1/runs/${runId}/events/poll${query}`,
        );
        expect(answer.status).toBe(200);
        expect(validate.eventsPollResponse(answer.body)).toMatchObject({ ok: true });
        return answer.body;
      };
      const last = all.length - 1;
      expect(await poll('')).toEqual({
        events: all,
        isComplete: true,
        isTerminal: true,
        runId,
        lastEventSeq: last,
        runStatus: 'completed',
      });
      expect((await poll('?lastSequence=-1')).events).toEqual(all);
      expect((await poll('?lastSequence=0')).events).toEqual(all.slice(1));
      expect((await poll('?since=1')).events).toEqual(all.slice(2));
      expect(await poll('?lastSequence=100000')).toMatchObject({
        events: [],
        isComplete: true,
        lastEventSeq: 100000,
      });
      expect(await poll('?limit=2')).toMatchObject({
        events: all.slice(0, 2),
        isComplete: false,
        lastEventSeq: 1,
      });
      for (const bad of [
        'lastSequence=x',
        'lastSequence=-2',
        'timeout=0',
        'timeout=61',
        'limit=0',
      ]) {
        expect((await host().api(`/v1/runs/${runId}/events/poll?${bad}`)).status).toBe(400);
      }
    });

    it('waits for the next event of a live run', async () => {
      const runId = await host().startRun({ workflowId: 'approval' });
      await host().waitFor(runId, waiting);
      const lastSequence = (await log(runId)).length - 1;
      const poll = host().api<Poll>(
        `/v1/runs/${runId}/events/poll?lastSequence=${lastSequence}&timeout=20`,
      );
      await host().api(`/v1/runs/${runId}/cancel`, { method: 'POST' });
      expect((await poll).body.events[0]?.sequence).toBe(lastSequence + 1);
    });
  });
}
