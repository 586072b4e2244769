// A small agent without SDK, as a script that tests write beside a manifest: it speaks seed 004 with node:net alone, and
// misbehaves on demand.
import { writeAgent } from './temp.ts';

/**
 * `mute` never says hello; `malformed` registers its tools at its first start alone, then what is no JSON; `crash` ends at once with code 3; `silent` sends no heartbeat; `unhealthy` says so;
 * `stubborn` ignores SIGTERM and its lost connection; `leak` writes its token out; `eater` takes memory.
 */
export type RawMode =
  'plain' | 'mute' | 'malformed' | 'crash' | 'silent' | 'unhealthy' | 'stubborn' | 'leak' | 'eater';

export const RAW_AGENT = `
import net from 'node:net';
import { spawn } from 'node:child_process';
import * as files from 'node:fs';
import { randomUUID } from 'node:crypto';
const [mode = 'plain', role] = process.argv.slice(2);
const { OPENSENTIENCE_SOCKET: path, OPENSENTIENCE_SESSION_TOKEN: token, OPENSENTIENCE_AGENT_ID: id } = process.env;
if (mode === 'crash') { console.error('I crash'); process.exit(3); }
if (mode === 'stubborn') process.on('SIGTERM', () => console.log('no'));
if (mode === 'leak') {
  console.log('my token is ' + token + '.');
  console.error('{"token":"' + token + '"}');
  console.log('x'.repeat(8192 - 20) + token);
}
if (mode === 'eater') { globalThis.eaten = Buffer.alloc(256 * 1024 * 1024, 1); }
if (role !== 'child' && process.env.CHILD) spawn(process.execPath, [process.argv[1], 'mute', 'child'], { stdio: 'inherit' });
if (mode === 'mute') setInterval(() => {}, 1000);
else {
  const tcp = path.startsWith('tcp:') ? path.slice(4).split(':') : undefined;
  const socket = tcp ? net.connect(Number(tcp[1]), tcp[0]) : net.connect(path);
  const send = (type, payload, extra = {}) => {
    const body = Buffer.from(JSON.stringify({ v: 1, type, id: randomUUID(), ts: new Date().toISOString(), payload, ...extra }));
    const length = Buffer.alloc(4);
    length.writeUInt32BE(body.length);
    socket.write(Buffer.concat([length, body]));
  };
  let held = Buffer.alloc(0);
  const tool = (name) => ({ tool_id: id + '/' + name, name, description: name, input_schema: { type: 'object' }, side_effects: false });
  const on = {
    'core.welcome'({ payload, error }) {
      if (error) { console.log('refused ' + error.code); return; }
      console.log('welcome');
      const beat = () => send('agent.heartbeat', {
        session_id: payload.session_id, uptime_ms: 1, inflight_calls: 0,
        status: mode === 'unhealthy' ? 'unhealthy' : 'ok',
      });
      if (mode !== 'silent') { beat(); setInterval(beat, payload.heartbeat_interval_ms / 2); }
      if (mode === 'malformed') {
        if (files.existsSync('started')) { socket.write(Buffer.from([0, 0, 0, 1, 0x7b])); return; }
        files.writeFileSync('started', '');
      }
      send('agent.tools.register', { tools: ['echo', 'pid', 'die', 'slow', 'environment'].map(tool) });
    },
    'core.tool.call'({ payload, request_id, correlation_id, causation_id }) {
      const { call_id, tool_id, input, context } = payload;
      const answer = (output) => send('agent.tool.result', { call_id, status: 'succeeded', output }, { request_id, correlation_id, causation_id });
      const name = tool_id.split('/')[1];
      if (name === 'echo') answer({ input, context: context ?? {} });
      if (name === 'slow') setTimeout(() => answer({ slow: true }), 300);
      if (name === 'pid') answer({ pid: process.pid });
      if (name === 'environment') answer({ names: Object.keys(process.env), cwd: process.cwd() });
      if (name === 'die') process.kill(process.pid, 'SIGKILL');
    },
  };
  socket.on('connect', () => send('agent.hello', {
    session_token: token, agent_id: process.env.CLAIMED_ID ?? id, agent_version: '1.2.3',
    ...(process.env.MANIFEST_HASH ? { manifest_hash: process.env.MANIFEST_HASH } : {}),
    protocol: { supported_versions: [1], capabilities: ['tools'] },
  }));
  socket.on('data', (piece) => {
    held = Buffer.concat([held, piece]);
    while (held.length >= 4 && held.length >= 4 + held.readUInt32BE(0)) {
      const message = JSON.parse(held.subarray(4, 4 + held.readUInt32BE(0)));
      held = held.subarray(4 + held.readUInt32BE(0));
      on[message.type]?.(message);
    }
  });
  socket.on('error', (error) => console.log('socket ' + error.code));
  socket.on('close', () => { if (mode === 'stubborn') setInterval(() => {}, 1000); else process.exit(0); });
}
`;

/** Writes a manifest that launches the script in a mode; `over` changes the manifest. */
export function writeRawAgent(
  agentsDir: string,
  id: string,
  { mode = 'plain', env, over = {} }: RawAgentOptions = {},
): string {
  const launch = {
    command: process.execPath,
    args: ['agent.mjs', mode],
    ...(env ? { env } : {}),
  };
  return writeAgent(agentsDir, { id, launch, ...over }, { 'agent.mjs': RAW_AGENT });
}

interface RawAgentOptions {
  readonly mode?: RawMode;
  readonly env?: Readonly<Record<string, string>>;
  readonly over?: Readonly<Record<string, unknown>>;
}
