// An SDK agent in this process, connected to a scripted Core, with surroundings that the test can read.
import { agent, type Agent, type AgentEnd, type AgentOptions } from '../../src/agent-sdk/index.ts';
import {
  startScriptedCore,
  type Connection,
  type Message,
  type ScriptedCore,
} from '../support/opensentience/scripted-core.ts';

export const TOKEN = 'the-one-secret-of-the-protocol';

export interface Attached {
  readonly core: ScriptedCore;
  readonly connection: Connection;
  readonly agent: Agent;
  readonly ended: Promise<AgentEnd>;
  readonly hello: Message;
  readonly register: Message;
  readonly log: string[];
  readonly exits: number[];
  /** As SIGTERM does. */
  readonly signal: (name: string) => void;
  stop(): Promise<void>;
}

export async function attach(
  options: Partial<AgentOptions> = {},
  welcome: object = {},
): Promise<Attached> {
  const core = await startScriptedCore();
  const { surroundings, log, exits, signal } = surroundingsOf(core.socket);
  const one = agent({ id: 'com.example.test', version: '1.2.3', surroundings, ...options });
  const ended = one.run();
  const connection = await core.connection();
  const { hello, register } = await connection.greet(welcome);
  const stop = async () => {
    connection.socket.destroy();
    await ended;
    await core.stop();
  };
  return { core, connection, agent: one, ended, hello, register, log, exits, signal, stop };
}

export function surroundingsOf(socket: string, token: string | undefined = TOKEN) {
  const log: string[] = [];
  const exits: number[] = [];
  let listener: ((signal: string) => void) | undefined;
  const env: { [name: string]: string | undefined } = {
    OPENSENTIENCE_SOCKET: socket,
    OPENSENTIENCE_SESSION_TOKEN: token,
  };
  const surroundings = {
    env,
    log: (line: string) => void log.push(line),
    exit: (code: number) => void exits.push(code),
    onStop: (stop: (signal: string) => void) => {
      listener = stop;
      return () => {
        listener = undefined;
      };
    },
  };
  return { surroundings, env, log, exits, signal: (name: string) => listener?.(name) };
}
