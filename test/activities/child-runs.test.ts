// endChild (RFC 0007, RFC 0022): what of a child's end stands in its parent's history. A child that is gone is a named
// failure; what one gives is redacted and bounded on this side, too.
import { ApplicationFailure } from '@temporalio/common';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { EndChildInput } from '../../activities/contract.ts';
import type { ChildEnd } from '../../src/rules/children.ts';
import { NODE_INPUTS_BYTES } from '../../src/rules/limits.ts';
import type { Stores } from '../../src/ports/stores.ts';
import { AGENT_ID, createRig, runActivity } from './rig.ts';
import { openAnyStores } from '../support/log-parts.ts';

const CHILD = 'run-child';
const SECRET = 'sk-live-0123456789abcdef';

let stores: Stores;
beforeAll(async () => {
  stores = await openAnyStores();
});
afterAll(() => stores.close());

type Asked = Partial<Pick<EndChildInput, 'harvest' | 'tool' | 'refused'>>;

async function ended(end: ChildEnd | 'lost' | undefined, asked: Asked = {}) {
  const rig = await createRig(stores, {
    secrets: [{ id: 'key', value: SECRET }],
    children: {
      accept: async () => [],
      recorded: async () => [],
      end: async () => end,
      recordedEnd: async () => end,
      cancel: async () => 'none',
      keepTime: async () => ({ children: [] }),
      fork: async () => undefined,
    },
  });
  const input = { harvest: ['result'], ...asked, context: rig.context, childRunId: CHILD };
  return runActivity(rig, 'endChild', { input });
}

const completed = (over: Partial<ChildEnd> = {}): ChildEnd => ({
  status: 'completed',
  outputs: {},
  variables: {},
  ...over,
});

describe('a child that a node waits for', () => {
  test('an erased or expired one: child_lost, and nothing of it is taken', async () => {
    const { output, events } = await ended('lost');
    expect(output).toEqual({
      status: 'failed',
      error: { code: 'child_lost', message: 'The child run is not there any more.' },
    });
    expect(events).toEqual([]);
  });

  test('one whose log does not say its end yet is asked for again', async () => {
    const error = await ended(undefined).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ApplicationFailure);
    expect(error).toMatchObject({ type: 'service_unavailable', nonRetryable: false });
  });

  test('what is mapped is taken, redacted, and nothing else', async () => {
    const { output } = await ended(
      completed({ variables: { result: `use ${SECRET}`, other: 1 }, outputs: { more: 2 } }),
    );
    expect(output.variables).toEqual({ result: expect.not.stringContaining(SECRET) as unknown });
    expect(output).not.toHaveProperty('outputs');
  });

  test('nothing is taken of one that failed; its message is redacted', async () => {
    const { output } = await ended({
      ...completed({ variables: { result: 'half' } }),
      ...{ status: 'failed', error: { code: 'boom', message: `no ${SECRET}` } },
    });
    expect(output).toEqual({
      ...{ status: 'failed' },
      error: { code: 'boom', message: expect.not.stringContaining(SECRET) as unknown },
    });
  });

  test('more than a node may be given: payload_too_large, whatever the child came to', async () => {
    const { output } = await ended(
      completed({ variables: { result: 'x'.repeat(NODE_INPUTS_BYTES) } }),
    );
    expect(output).toMatchObject({ status: 'failed', error: { code: 'payload_too_large' } });
  });
});

describe('the run of an agent that a call waits for', () => {
  const tool = { agentId: AGENT_ID, callId: 'call-1', toolId: 'agent:a.b', calledKey: 'called' };

  test('one that is gone is an error for the model, caused by its call', async () => {
    const { output, events } = await ended('lost', { tool, harvest: [] });
    expect(output).toMatchObject({ status: 'failed', error: { code: 'child_lost' } });
    expect(events).toMatchObject([
      {
        ...{ type: 'agent.toolReturned', causedBy: 'called' },
        payload: { callId: 'call-1', status: 'error', error: { code: 'child_lost' } },
      },
    ]);
  });

  test('a cancelled one without an error of its own says so', async () => {
    const { events } = await ended(completed({ status: 'cancelled' }), { tool, harvest: [] });
    expect(events).toMatchObject([{ payload: { status: 'error', error: { code: 'cancelled' } } }]);
  });

  test('its decision is the outcome, by hash in what is kept of it', async () => {
    const { output, events } = await ended(completed({ outputs: { decision: 'paid' } }), {
      ...{ tool, harvest: [] },
    });
    expect(output.resultHash).toMatch(/^sha256:/);
    expect(output).not.toHaveProperty('outputs');
    expect(events).toMatchObject([{ payload: { status: 'ok', outcome: { decision: 'paid' } } }]);
  });
});
