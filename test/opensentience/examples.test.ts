// The example agents as programs: their manifests, how they end, what a killed one leaves behind, and what none gives.
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { checkManifest, MANIFEST_FILE } from '../../src/opensentience/manifest.ts';
import {
  canRun,
  exampleFolder,
  launchExample,
  type ExampleName,
} from '../support/opensentience/examples.ts';
import { writeOddAgent } from '../support/opensentience/odd-agents.ts';
import { startScriptedCore, type Connection } from '../support/opensentience/scripted-core.ts';

const TOKEN = 'the-one-secret-of-the-protocol';
const NAMES: readonly ExampleName[] = ['notebook', 'ledger', 'files'];
const FOLDER = { notebook: 'NOTEBOOK_DIR', ledger: 'LEDGER_DIR', files: 'FILES_DIR' } as const;
const EFFECTS = { notebook: ['add_note', 'delete_note'], ledger: ['post_entry'], files: [] };
const TITLES = { notebook: 'the notebook', ledger: '[python] the ledger', files: '[go] the files' };

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

function temp(): string {
  const folder = mkdtempSync(join(tmpdir(), 'examples-'));
  cleanups.push(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

async function started(name: ExampleName, folder = temp(), cwd?: string) {
  const core = await startScriptedCore();
  cleanups.push(() => core.stop());
  const env = { OPENSENTIENCE_SOCKET: core.socket, OPENSENTIENCE_SESSION_TOKEN: TOKEN };
  const launched = launchExample(name, { ...env, [FOLDER[name]]: folder }, cwd);
  cleanups.push(() => launched.child.kill('SIGKILL'));
  const connection = await core.connection();
  const { register } = await connection.greet();
  return { ...launched, connection, register, folder };
}

async function answer(connection: Connection, toolId: string, input: object, key = 'key-1') {
  const { callId } = connection.call(toolId, input, { payload: { idempotency_key: key } });
  return (await connection.result(callId)).payload;
}

for (const name of NAMES)
  describe.skipIf(!canRun(name))(TITLES[name], () => {
    it('its manifest is valid and names its folder as others do', () => {
      const checked = checkManifest(readFileSync(exampleFolder(name) + MANIFEST_FILE));
      expect(checked).toMatchObject({ ok: true, value: { id: `com.example.${name}` } });
    });
    it('each of its tools says whether it has side effects: else a human is asked about each call', async () => {
      const { register } = await started(name);
      const tools = register.payload.tools.filter(({ side_effects }) => side_effects !== false);
      const effects = tools.map((tool) => tool.name);
      expect(effects).toEqual(EFFECTS[name]);
    });
    it('SIGTERM: agent.goodbye, then an end with code 0', async () => {
      const { child, connection, exited, written } = await started(name);
      child.kill('SIGTERM');
      await connection.next('agent.goodbye');
      expect(await exited).toEqual([0, null]);
      expect(written()).not.toContain(TOKEN);
    });
    it('a refused hello ends it with code 1', async () => {
      const core = await startScriptedCore();
      cleanups.push(() => core.stop());
      const env = { OPENSENTIENCE_SOCKET: core.socket, OPENSENTIENCE_SESSION_TOKEN: TOKEN };
      const launched = launchExample(name, { ...env, [FOLDER[name]]: temp() });
      const connection = await core.connection();
      const hello = await connection.next('agent.hello');
      const error = { code: 'protocol.unauthorized', message: 'No.' };
      connection.send('core.welcome', { accepted_version: 0 }, { in_reply_to: hello.id, error });
      connection.socket.end();
      expect(await launched.exited).toEqual([1, null]);
      expect(launched.written()).toContain('protocol.unauthorized');
      expect(launched.written()).not.toContain(TOKEN);
    });
    it('without socket and token it does not start', async () => {
      const { exited } = launchExample(name, { [FOLDER[name]]: temp() });
      expect(await exited).toEqual([1, null]);
    });
  });

describe('the notebook', () => {
  const ADD = 'com.example.notebook/add_note';
  it('survives SIGKILL: its notes and their keys are there, and its lock is taken over', async () => {
    const first = await started('notebook');
    const note = { title: 'a', text: 'b' };
    expect(await answer(first.connection, ADD, note)).toMatchObject({
      output: { note: { id: 1 }, repeated: false },
    });
    first.child.kill('SIGKILL');
    await first.exited;
    const second = await started('notebook', first.folder);
    expect(await answer(second.connection, ADD, note)).toMatchObject({
      output: { note: { id: 1 }, repeated: true },
    });
    expect(await answer(second.connection, ADD, note, 'key-2')).toMatchObject({
      output: { note: { id: 2 }, repeated: false },
    });
  });
  it('has one writer', async () => {
    const { folder } = await started('notebook');
    const other = launchExample('notebook', { NOTEBOOK_DIR: folder });
    expect((await other.exited)[0]).toBe(1);
    expect(other.written()).toContain('in use');
  });
});

describe.skipIf(!canRun('ledger'))('[python] the ledger', () => {
  it('what a killed process left half written is no entry, and spoils no other', async () => {
    const folder = temp();
    const lines = [
      { account: 'cash', cents: 5 },
      { account: 'sales', cents: -5 },
    ];
    const whole = JSON.stringify({ number: 1, text: 'x', lines });
    writeFileSync(join(folder, 'entries.jsonl'), `${whole}\n{"number":2,"li`);
    const { connection } = await started('ledger', folder);
    const id = 'com.example.ledger';
    const posted = await answer(connection, `${id}/post_entry`, { text: 'y', lines });
    expect(posted.output).toEqual({ number: 2 });
    const balance = await answer(connection, `${id}/balance`, { account: 'cash' });
    expect(balance.output).toEqual({ account: 'cash', cents: 10 });
  });
  it('calls run beside each other', async () => {
    const { connection } = await started('ledger');
    const slow = connection.call('com.example.ledger/slow_report', { steps: 1_000 });
    const quick = await answer(connection, 'com.example.ledger/balance', { account: 'cash' });
    expect(quick.error.code).toBe('ledger.unknown_account');
    connection.send('core.tool.cancel', { call_id: slow.callId });
    expect((await connection.result(slow.callId)).payload.status).toBe('canceled');
  });
  it('a call that waits for a thread hears its cancel and its timeout too', async () => {
    const { connection } = await started('ledger');
    const report = 'com.example.ledger/slow_report';
    for (let n = 0; n < 16; n += 1) connection.call(report, { steps: 1_000 });
    const late = connection.call(report, {}, { payload: { timeout_ms: 20 } });
    expect((await connection.result(late.callId)).payload.error.code).toBe('tool.timeout');
    const waiting = connection.call(report, {});
    connection.send('core.tool.cancel', { call_id: waiting.callId });
    expect((await connection.result(waiting.callId)).payload.status).toBe('canceled');
  });
});

describe.skipIf(!canRun('files'))('[go] the files', () => {
  it.each(['../outside.txt', '/etc/passwd', 'link.txt', 'inner/../../outside.txt', ''])(
    'nothing outside of its folder: %j',
    async (path) => {
      const folder = temp();
      const secret = join(temp(), 'secret.txt');
      writeFileSync(secret, 'outside');
      symlinkSync(secret, join(folder, 'link.txt'));
      const { connection } = await started('files', folder);
      const { status, error } = await answer(connection, 'com.example.files/checksum', { path });
      expect([status, error.code]).toEqual([
        'failed',
        path === '' ? 'tool.invalid_input' : 'files.outside',
      ]);
      const found = await answer(connection, 'com.example.files/grep_files', { text: 'outside' });
      expect(found.output).toMatchObject({ matches: 0 });
    },
  );
});

const NO_JSON = ['nan', 'infinity', 'none', 'list'];
const ODD = {
  ledger: {
    ...{ invalid: [...NO_JSON, 'bytes', 'surrogate', 'cycle', 'nested'] },
    ...{ failed: { refused: 'odd.refused', quits: 'tool.failed' } },
  },
  files: {
    ...{ invalid: [...NO_JSON, 'function'] },
    ...{ failed: { panics: 'tool.failed', large: 'tool.output_too_large' } },
  },
};

for (const name of ['ledger', 'files'] as const)
  describe.skipIf(!canRun(name))(`${TITLES[name]}: what a tool gives is no JSON`, () => {
    it('each call fails alone and says so, and the agent goes on', async () => {
      const cwd = temp();
      writeOddAgent(name, cwd);
      const { connection, child } = await started(name, temp(), cwd);
      const said = async (tool: string) => {
        const { status, error, output } = await answer(
          connection,
          `com.example.${name}/${tool}`,
          {},
        );
        return error ? [tool, status, error.code] : [tool, status, output];
      };
      const { invalid, failed } = ODD[name];
      for (const tool of invalid)
        expect(await said(tool)).toEqual([tool, 'failed', 'tool.invalid_output']);
      for (const [tool, code] of Object.entries(failed))
        expect(await said(tool)).toEqual([tool, 'failed', code]);
      // What cannot be shown of a stream is left out, and nothing else of the call is.
      expect(await said('status')).toEqual(['status', 'succeeded', { done: true }]);
      const streamed = connection.received.filter(({ type }) => type === 'agent.tool.stream');
      expect(streamed.map(({ payload }) => payload.seq)).toEqual([1]);
      expect(await said('good')).toEqual(['good', 'succeeded', { text: 'NaN' }]);
      expect(child.exitCode).toBeNull();
    });
  });
