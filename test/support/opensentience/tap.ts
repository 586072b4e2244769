// Between an agent and Core: passes every byte on and writes down every message, by framing of its own.
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Message } from './scripted-core.ts';

export interface Heard {
  readonly from: 'agent' | 'core';
  readonly message: Message;
}

export interface Tap {
  /** What agents connect to. */
  readonly socketPath: string;
  readonly heard: Heard[];
  /** The first message of this type for which the test holds. */
  next(type: string, matches?: (message: Message) => boolean): Promise<Message>;
  stop(): Promise<void>;
}

export async function tap(coreSocketPath: string): Promise<Tap> {
  const folder = mkdtempSync(join(tmpdir(), 'tap-'));
  const socketPath = join(folder, 'core.sock');
  const heard: Heard[] = [];
  const waiting = new Set<() => void>();
  const sockets = new Set<Socket>();
  const note = (from: Heard['from']) =>
    messagesOf((message) => {
      heard.push({ from, message });
      for (const wake of waiting) wake();
    });
  const server = createServer((agent) => {
    const core = connect(coreSocketPath);
    const [ofAgent, ofCore] = [note('agent'), note('core')];
    for (const socket of [agent, core]) sockets.add(socket.on('error', () => undefined));
    // Written down before it is passed on: what answers it comes later.
    agent.on('data', (chunk) => (ofAgent(chunk), core.write(chunk))).on('close', () => core.end());
    core.on('data', (chunk) => (ofCore(chunk), agent.write(chunk))).on('close', () => agent.end());
  });
  server.listen(socketPath);
  await once(server, 'listening');
  return {
    socketPath,
    heard,
    next: async (type, matches = () => true) => {
      for (;;) {
        const found = heard.find(({ message }) => message.type === type && matches(message));
        if (found) return found.message;
        await new Promise<void>((resolve) => waiting.add(resolve));
        waiting.clear();
      }
    },
    stop: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function messagesOf(take: (message: Message) => void): (chunk: Buffer) => void {
  let bytes = Buffer.alloc(0);
  return (chunk) => {
    bytes = Buffer.concat([bytes, chunk]);
    while (bytes.length >= 4 && bytes.length >= 4 + bytes.readUInt32BE(0)) {
      const end = 4 + bytes.readUInt32BE(0);
      take(JSON.parse(bytes.toString('utf8', 4, end)) as Message);
      bytes = bytes.subarray(end);
    }
  };
}
