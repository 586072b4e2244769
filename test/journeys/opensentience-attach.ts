// An agent that an operator starts by hand (seed 004 §5.3): the command line's token, one use of it, and calls that wait
// while the agent is away.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, describe, expect } from 'vitest';
import { until } from '../support/host.ts';
import { GUEST } from '../support/opensentience/guest-agent.ts';
import { TOOL } from './opensentience-callers.ts';
import type { Scene } from './opensentience-scene.ts';
import { decisionOf, itHere } from './opensentience-told.ts';
import { programArgs } from '../support/prepared.ts';

interface Attachment {
  readonly socket: string;
  readonly token: string;
  readonly expiresAt: string;
}

interface Guest {
  readonly child: ChildProcess;
  readonly exited: Promise<number | null>;
  readonly written: () => string;
}

/** By hand: with a shell's environment, socket and token. */
function startGuest({ socket, token }: Attachment, guests: ChildProcess[]): Guest {
  const script = new URL('../support/opensentience/guest-agent.ts', import.meta.url);
  const { PATH, HOME } = process.env;
  const child = spawn(process.execPath, [...programArgs(script)], {
    env: { PATH, HOME, OPENSENTIENCE_SOCKET: socket, OPENSENTIENCE_SESSION_TOKEN: token },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  guests.push(child);
  let written = '';
  child.stdout.on('data', (piece: Buffer) => void (written += piece.toString()));
  child.stderr.on('data', (piece: Buffer) => void (written += piece.toString()));
  const exited = once(child, 'close').then(([code]) => code as number | null);
  return { child, exited, written: () => written };
}

async function attachment(scene: Scene): Promise<Attachment> {
  const { code, out, err } = await scene.cli('agents', 'attach', GUEST, '--json');
  expect([code, err]).toEqual([0, '']);
  const given = JSON.parse(out) as Attachment;
  scene.tokens.push(given.token);
  return given;
}

export function attachJourneys(scene: Scene): void {
  describe('seed 004 §5.3 an agent that is attached by hand', () => {
    const guests: ChildProcess[] = [];
    const start = (given: Attachment) => startGuest(given, guests);
    afterAll(() => guests.forEach((child) => child.kill('SIGKILL')));
    /** A run whose call waits for the agent. */
    async function stated(name: string): Promise<string> {
      const runId = await scene.run('greeter', { name });
      await until(
        async () => (await scene.told(runId, () => true)).of('agent.toolCalled').length === 1,
        'the call is stated',
      );
      return runId;
    }
    let first: Guest;
    let used: Attachment;
    let sessionId: string | undefined;

    itHere(
      'openwop agents attach gives socket and token; the agent connects and is called',
      async () => {
        expect(await scene.agent(GUEST)).toMatchObject({ status: 'waiting', toolCount: 0 });
        used = await attachment(scene);
        expect(Object.keys(used)).toEqual(['socket', 'token', 'expiresAt']);
        expect(Date.parse(used.expiresAt)).toBeGreaterThan(Date.now());
        first = start(used);
        const { instances } = await scene.connected(GUEST);
        expect(instances).toMatchObject([{ launch: 'attach', session: { attached: true } }]);
        sessionId = instances[0]?.session?.sessionId;
        const told = await scene.told(await scene.run('greeter', { name: 'one' }));
        expect(decisionOf(told)).toEqual({ said: 'Hello one', pid: first.child.pid });
      },
    );

    itHere(
      'its token is spent: a second use is refused and audited, the session stays',
      async () => {
        const second = start(used);
        expect(await second.exited).toBe(1);
        expect(second.written()).toContain('protocol.unauthorized');
        const refused = async () =>
          (await scene.audit()).find(
            ({ kind, agentId }) => kind === 'token.refused' && agentId === GUEST,
          );
        await expect.poll(refused).toMatchObject({ details: { reason: 'token_unknown' } });
        const { instances } = await scene.connected(GUEST);
        expect(instances[0]?.session?.sessionId).toBe(sessionId);
        expect(first.written() + second.written()).not.toContain(used.token);
      },
    );

    itHere(
      'while it is away calls wait; a second attach answers the one that is still wanted',
      async () => {
        first.child.kill('SIGTERM');
        expect(await first.exited).toBe(0);
        await expect.poll(async () => (await scene.agent(GUEST)).status).toBe('waiting');
        const [runId, other] = [await stated('two'), await stated('nobody')];
        await scene.host.api(`/v1/runs/${other}/cancel`, { body: {} });
        expect((await scene.told(other)).snapshot.status).toBe('cancelled');
        const before = await scene.counts(TOOL.greet);
        const next = await attachment(scene);
        const waiting = await scene.told(runId, () => true);
        expect([waiting.snapshot.status, waiting.of('agent.toolReturned')]).toEqual([
          'running',
          [],
        ]);
        const again = start(next);
        const told = await scene.told(runId);
        expect(told.snapshot.status).toBe('completed');
        expect(decisionOf(told)).toEqual({ said: 'Hello two', pid: again.child.pid });
        expect(told.of('agent.toolReturned')).toHaveLength(1);
        const after = { calls: before.calls + 1, succeeded: before.succeeded + 1 };
        await expect.poll(() => scene.counts(TOOL.greet)).toEqual({ ...before, ...after });
      },
    );
  });
}
