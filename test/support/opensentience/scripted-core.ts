// A Core for tests of agents (seed 004 §2–§4): a real socket and framing of its own, so that the product's codec is
// checked against another; what it says is the test's to write.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

interface WireError {
  readonly code: string;
  readonly message: string;
  readonly retryable?: boolean;
  readonly details?: { readonly [name: string]: unknown };
}

/** What a test may look into, as if all were there: of one message only its own type's is. */
export interface Message {
  readonly v: number;
  readonly type: string;
  readonly id: string;
  readonly ts: string;
  readonly in_reply_to?: string;
  readonly request_id?: string;
  readonly correlation_id?: string;
  readonly causation_id?: string;
  readonly error?: WireError;
  readonly payload: {
    readonly session_token: string;
    readonly agent_id: string;
    readonly manifest_hash?: string;
    readonly tools: readonly {
      readonly tool_id: string;
      readonly name: string;
      readonly side_effects?: boolean;
    }[];
    readonly tool_ids: readonly string[];
    readonly call_id: string;
    readonly status: string;
    readonly output: { readonly [name: string]: unknown };
    readonly error: WireError;
    readonly seq: number;
    readonly channel: string;
    readonly data: { readonly text?: string; readonly json?: unknown };
    readonly done?: boolean;
    readonly accepted: boolean;
    readonly uptime_ms: number;
    readonly details?: unknown;
  };
}

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

  /** The id of the message that was sent. */
  send(type: string, payload: object, extras: Extras = {}): { readonly id: string } {
    const [id, ts] = [randomUUID(), new Date().toISOString()];
    this.sendBytes(frameOf({ v: 1, type, id, ts, ...extras, payload }));
    return { id };
  }

  sendBytes(bytes: Uint8Array): void {
    this.socket.write(bytes);
  }

  /** Hello to registered; the hello and the registration. */
  async greet(welcome: object = {}): Promise<{ hello: Message; register: Message }> {
    const hello = await this.next('agent.hello');
    this.welcome(hello, welcome);
    const register = await this.next('agent.tools.register');
    const registered = register.payload.tools.map((one) => one.tool_id);
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

function frameOf(message: object): Buffer {
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
