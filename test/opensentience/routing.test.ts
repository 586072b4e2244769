// Calls that wait for an agent, with sessions that a test opens and closes (seed 004 §4.5).
import { describe, expect, it } from 'vitest';
import { HostError } from '../../src/rules/errors.ts';
import type { JsonObject } from '../../src/rules/json.ts';
import type { LiveSession } from '../../src/opensentience/parts.ts';
import { MAX_WAITING_CALLS, Routing } from '../../src/opensentience/routing.ts';
import { callOf } from '../support/opensentience/core-parts.ts';
import { patient } from '../support/machine.ts';

const ID = 'com.example.a';
const WAIT_MS = patient(20_000);

/** A session as far as routing looks at it. */
class ScriptedSession {
  readonly agentId = ID;
  calls = 0;
  isRoutable = true;
  toolIds: readonly string[] = [`${ID}/t`];
  connectedAtMs = Date.now();
  answer: () => JsonObject = () => ({ done: true });
  routable = () => this.isRoutable;
  tools = () => this.toolIds.map((tool_id) => ({ tool_id }));
  view = () => ({ connectedAtMs: this.connectedAtMs });
  call = async () => {
    this.calls++;
    return this.answer();
  };
  get live(): LiveSession {
    return this as unknown as LiveSession;
  }
}

const lost = (sent: boolean) => () => {
  throw Object.assign(new HostError('agent_unavailable'), { sent });
};
const call = (routing: Routing) => routing.call(ID, callOf(`${ID}/t`), WAIT_MS);

describe('calls that wait', () => {
  it.each([-3_600_000, 3_600_000])(
    'go by a clock that nobody sets: the system’s moves by %i ms',
    async (ms) => {
      const { now } = Date;
      const routing = new Routing();
      try {
        const waiting = call(routing);
        Date.now = () => now() + ms;
        const session = new ScriptedSession();
        routing.opened(session.live);
        expect(await waiting).toEqual({ done: true });
      } finally {
        Date.now = now;
      }
    },
  );
  it('go to the session that opens', async () => {
    const routing = new Routing();
    const waiting = call(routing);
    routing.opened(new ScriptedSession().live);
    expect(await waiting).toEqual({ done: true });
  });
  it('seed 004 §4.5.1: not to one that is silent, until it is heard again', async () => {
    const routing = new Routing();
    const session = new ScriptedSession();
    session.isRoutable = false;
    routing.opened(session.live);
    expect(routing.routable()).toEqual([]);
    const waiting = call(routing);
    session.isRoutable = true;
    routing.changed(ID);
    expect(await waiting).toEqual({ done: true });
    expect(routing.routable()).toEqual([ID]);
  });
  it('a session that has not registered the tool yet is given time', async () => {
    const routing = new Routing();
    const session = new ScriptedSession();
    session.toolIds = [];
    routing.opened(session.live);
    const waiting = call(routing);
    await Promise.resolve();
    expect(session.calls).toBe(0);
    session.toolIds = [`${ID}/t`];
    routing.changed(ID);
    expect(await waiting).toEqual({ done: true });
  });
  it('one that had the time says what it has to say', async () => {
    const routing = new Routing();
    const session = new ScriptedSession();
    session.toolIds = [];
    session.connectedAtMs = Date.now() - 60_000;
    routing.opened(session.live);
    await call(routing);
    expect(session.calls).toBe(1);
  });
  it('a call that was not sent goes to the next session, one that was sent does not', async () => {
    const routing = new Routing();
    const first = new ScriptedSession();
    first.answer = lost(false);
    routing.opened(first.live);
    const moved = call(routing);
    await expect.poll(() => first.calls).toBeGreaterThan(0);
    routing.closed(first.live);
    const second = new ScriptedSession();
    routing.opened(second.live);
    expect(await moved).toEqual({ done: true });
    second.answer = lost(true);
    await expect(call(routing)).rejects.toMatchObject({ code: 'agent_unavailable', sent: true });
    expect(second.calls).toBe(2);
  });
  it('the closing of a former session does not take the place of the next', async () => {
    const routing = new Routing();
    const [first, second] = [new ScriptedSession(), new ScriptedSession()];
    routing.opened(first.live);
    routing.opened(second.live);
    routing.closed(first.live);
    expect(routing.session(ID)).toBe(second.live);
  });
  it('of an agent that is given up end at once, those that wait too, until it is there again', async () => {
    const routing = new Routing();
    const news: unknown[] = [];
    routing.onRoutable((...one) => news.push(one));
    const waiting = call(routing);
    const lost = {
      code: 'tool_failed',
      sent: false,
      message: 'It fell.',
      details: { final: true },
    };
    routing.giveUp(ID, 'It fell.');
    await expect(waiting).rejects.toMatchObject(lost);
    await expect(call(routing)).rejects.toMatchObject(lost);
    expect(routing.routable()).toEqual([ID]);
    routing.giveUp(ID, undefined);
    expect(routing.routable()).toEqual([]);
    const later = call(routing);
    routing.opened(new ScriptedSession().live);
    expect(await later).toEqual({ done: true });
    expect(news).toEqual([
      [ID, true],
      [ID, false],
      [ID, true],
    ]);
  });
  it('once Core stops, also those of an agent that is given up go to whoever has it next', async () => {
    const routing = new Routing();
    routing.giveUp(ID, 'It fell.');
    routing.stop();
    await expect(call(routing)).rejects.toMatchObject({ code: 'agent_unavailable', sent: false });
  });
  it('their number is bounded', async () => {
    const routing = new Routing();
    const all = Array.from({ length: MAX_WAITING_CALLS }, () => call(routing));
    await expect(call(routing)).rejects.toMatchObject({ code: 'rate_limited', sent: false });
    routing.stop();
    const ends = await Promise.allSettled(all);
    expect(ends.every(({ status }) => status === 'rejected')).toBe(true);
  });
});
