// The second story of examples/: two agents and a gate between them (examples/access), on a host of its own.
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RunSnapshot, WorkflowDefinition } from '../../schemas/types.generated.ts';
import { ended, expectLawful, readLog, waiting } from '../facade/suite-parts.ts';
import { startTestHost, type TestHost } from '../support/host.ts';

const at = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const REQUEST = { person: 'Ada', days: 3, why: 'The invoice of May is wrong.' };

const HURRIED = 'access-request-hurried';

let host: TestHost;
let folder = '';

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'access-'));
  cpSync(at('examples/access/definitions'), folder, { recursive: true });
  writeFileSync(join(folder, `${HURRIED}.json`), JSON.stringify(hurried()));
  host = await startTestHost({ fixturesDir: folder, agentsDir: at('examples/access/agents') });
});
afterAll(async () => {
  await host.stop();
  rmSync(folder, { recursive: true });
});

/** The same, with less time for the human. */
function hurried(): WorkflowDefinition {
  const text = readFileSync(at('examples/access/definitions/access-request.json'), 'utf8');
  const definition = JSON.parse(text) as WorkflowDefinition;
  const gate = definition.nodes.find(({ id }) => id === 'approve');
  if (gate) gate.config = { ...gate.config, timeoutMs: 300 };
  return { ...definition, id: HURRIED };
}

function request(inputs: Record<string, unknown>, workflowId = 'access-request'): Promise<string> {
  return host.startRun({ workflowId, inputs: { ...REQUEST, ...inputs } });
}

async function asked(inputs: Record<string, unknown>, action: string): Promise<RunSnapshot> {
  const runId = await request(inputs);
  await host.waitFor(runId, waiting);
  const path = `/v1/runs/${runId}/interrupts/approve`;
  const answered = await host.api(path, { body: { resumeValue: { action } } });
  expect(answered.status).toBe(200);
  return end(runId);
}

async function end(runId: string): Promise<RunSnapshot> {
  const snapshot = await host.waitFor(runId, ended);
  expectLawful((await readLog(host, runId)).events);
  return snapshot;
}

describe('examples/access', () => {
  it('what the policy calls harmless is granted, and nobody is asked', async () => {
    const { status, outputs, nodeStates } = await end(await request({ system: 'wiki' }));
    expect({ status, outputs }).toEqual({
      status: 'completed',
      outputs: {
        outcome: 'granted',
        letter: {
          subject: 'Access to wiki: granted',
          text: 'Dear Ada, you have access to wiki for 3 days, 365 at most by the policy.',
        },
      },
    });
    expect(nodeStates).toMatchObject({ approve: { status: 'skipped' } });
  });

  it('what it calls risky waits for a human, and a yes grants it', async () => {
    const { status, outputs } = await asked({ system: 'billing' }, 'accept');
    expect({ status, outputs }).toMatchObject({
      status: 'completed',
      outputs: { outcome: 'granted', letter: { subject: 'Access to billing: granted' } },
    });
  });

  it('a no grants nothing, and the person is told', async () => {
    const { status, outputs } = await asked({ system: 'production' }, 'reject');
    expect({ status, outputs }).toMatchObject({
      status: 'completed',
      outputs: { outcome: 'refused', letter: { subject: 'Access to production: not granted' } },
    });
  });

  it('no answer in time grants nothing, and the person is told', async () => {
    const { status, outputs } = await end(await request({ system: 'billing' }, HURRIED));
    expect({ status, outputs }).toMatchObject({
      status: 'completed',
      outputs: { outcome: 'refused', letter: { subject: 'Access to billing: not granted' } },
    });
  });

  it('what the policy does not name is not granted without a human', async () => {
    const { status, outputs } = await asked({ system: 'vault' }, 'reject');
    expect({ status, outputs }).toMatchObject({
      status: 'completed',
      outputs: { outcome: 'refused' },
    });
  });
});
