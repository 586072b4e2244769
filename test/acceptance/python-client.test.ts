// The v1 client for Python as published, against a running host: creates, follows, answers, cancels, lists agents, reads
// ancestry. What it cannot read of us is a fault of ours.
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestHost, type TestHost } from '../support/host.ts';
import { pythonClient } from '../support/python-client.ts';
import { patient } from '../support/machine.ts';

const LIMIT_MS = patient(180_000);
const WALK = fileURLToPath(new URL('../support/python/openwop_client_walk.py', import.meta.url));
const team = (folder: string): string =>
  fileURLToPath(new URL(`../../examples/team/${folder}`, import.meta.url));

const client = pythonClient();
let host: TestHost;
beforeAll(async () => {
  if ('missing' in client) return;
  host = await startTestHost({ agentsDir: team('agents'), fixturesDir: team('definitions') });
}, LIMIT_MS);
afterAll(() => host?.stop());

it(
  'openwop-client 1.8.0 walks with the team from its start to its end',
  { timeout: LIMIT_MS },
  async ({ skip }) => {
    if ('missing' in client) return skip(client.missing);
    const told = await promisify(execFile)(client.python, [WALK, host.url, host.apiKey]);
    const editor = 'local.examples.team.editor';
    const researcher = 'local.examples.team.researcher';
    expect(JSON.parse(told.stdout)).toEqual({
      version: '1.0',
      agents: [editor, researcher],
      workflow: 'research',
      once: true,
      called: [`agent:${researcher}`, `agent:${researcher}`],
      ancestry: [
        { isParent: true, cause: 'core.subWorkflow' },
        { isParent: true, cause: 'core.subWorkflow' },
      ],
      root: null,
      dense: true,
      decided: 1,
      end: ['run.completed', 'completed'],
      polled: [true, ['run.completed']],
      cancelled: 'cancelled',
      nothing: { status: 404, code: 'run_not_found' },
    });
  },
);
