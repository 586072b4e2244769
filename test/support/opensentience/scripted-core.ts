// A Core for tests of agents (seed 004 §2–§4): a real socket and framing of its own, so that the product's codec is
// checked against another; what it says is the test's to write.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

// What a test looks into is JSON of any shape.
// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type Message = { [key: string]: any };

export interface Extras {
  readonly in_reply_to?: string;
  readonly request_id?: string;
  readonly correlation_id?: string;
  readonly causation_id?: string;
  readonly [name: string]: unknown;
}

/** One agent's connection. */
export class Connection {
  /** In the order of arrival, heartbeats too. */
  readonly received: Message[] = [];
  readonly socket: Socket;
  closed = false;
  #bytes = Buffer.alloc(0);
  #taken = 0;
  #changed: (() => void) | undefined;

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (chunk) => {
      this.#bytes = Buffer.concat([this.#bytes, chunk]);
      while (this.#bytes.length >= 4 && this.#bytes.length >= 4 + this.#bytes.readUInt32BE(0)) {
        const end = 4 + this.#bytes.readUInt32BE(0);
        this.received.push(JSON.parse(this.#bytes.toString('utf8', 4, end)) as Message);
        this.#bytes = this.#bytes.subarray(end);
      }
      this.#changed?.();
    });
    socket
      .on('error', () => undefined)
      .on('close', () => {
        this.closed = true;
        this.#changed?.();
      });
  }

  /** The next message of this type behind the last one taken; others are passed over. */
  async next(type: string, matches: (message: Message) => boolean = () => true): Promise<Message> {
    for (;;) {
      const at = this.received.findIndex(
        (one, index) => index >= this.#taken && one.type === type && matches(one),
      );
      if (at >= 0) {
        this.#taken = at + 1;
        return this.received[at] as Message;
      }
      if (this.closed) throw new Error(`The agent closed before ${type}.`);
      await new Promise<void>((resolve) => {
        this.#changed = resolve;
      });
    }
  }

  /** The message that was sent. */
  send(type: string, payload: object, extras: Extras = {}): Message {
    const [id, ts] = [randomUUID(), new Date().toISOString()];
    const message = { v: 1, type, id, ts, ...extras, payload };
    this.sendBytes(frameOf(message));
    return message;
  }

  sendBytes(bytes: Uint8Array): void {
    this.socket.write(bytes);
  }

  /** Hello to registered; the hello and the registration. */
  async greet(welcome: object = {}): Promise<{ hello: Message; register: Message }> {
    const hello = await this.next('agent.hello');
    this.welcome(hello, welcome);
    const register = await this.next('agent.tools.register');
    const registered = (register.payload as Message).tools.map((one: Message) => one.tool_id);
    this.send('core.tools.registered', { registered }, { in_reply_to: register.id });
    return { hello, register };
  }

  welcome(hello: Message, more: object = {}): void {
    const payload = {
      accepted_version: 1,
      session_id: 'session-1',
      heartbeat_interval_ms: 60_000,
      max_frame_bytes: 4 * 1024 * 1024,
      server: { core_version: '0.0.0', instance_id: 'scripted' },
      ...more,
    };
    this.send('core.welcome', payload, { in_reply_to: hello.id });
  }

  /** Sends a call with all ids set; the ids. */
  call(toolId: string, input: unknown, more: { payload?: object; extras?: Extras } = {}) {
    const callId = randomUUID();
    const extras = {
      request_id: randomUUID(),
      correlation_id: 'run:1',
      causation_id: 'event:1',
      ...more.extras,
    };
    const payload = { call_id: callId, tool_id: toolId, input, ...more.payload };
    this.send('core.tool.call', payload, extras);
    return { callId, extras };
  }

  result(callId: string): Promise<Message> {
    return this.next('agent.tool.result', (one) => one.payload.call_id === callId);
  }

  async ended(): Promise<void> {
    while (!this.closed) await once(this.socket, 'close');
  }
}

export function frameOf(message: object): Buffer {
  const body = Buffer.from(JSON.stringify(message), 'utf8');
  const length = Buffer.alloc(4);
  length.writeUInt32BE(body.length);
  return Buffer.concat([length, body]);
}

export interface ScriptedCore {
  /** Value of OPENSENTIENCE_SOCKET. */
  readonly socket: string;
  /** The next agent that connects. */
  connection(): Promise<Connection>;
  stop(): Promise<void>;
}

export async function startScriptedCore(transport: 'unix' | 'tcp' = 'unix'): Promise<ScriptedCore> {
  const folder = mkdtempSync(join(tmpdir(), 'scripted-core-'));
  const waiting: Connection[] = [];
  const sockets = new Set<Socket>();
  let arrived: (() => void) | undefined;
  const server = createServer((socket) => {
    sockets.add(socket.on('close', () => sockets.delete(socket)));
    waiting.push(new Connection(socket));
    arrived?.();
  });
  const path = join(folder, 'core.sock');
  server.listen(transport === 'unix' ? { path } : { host: '127.0.0.1', port: 0 });
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  return {
    socket: transport === 'unix' ? path : `tcp:127.0.0.1:${port}`,
    connection: async () => {
      for (;;) {
        const first = waiting.shift();
        if (first) return first;
        await new Promise<void>((resolve) => {
          arrived = resolve;
        });
      }
    },
    stop: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
