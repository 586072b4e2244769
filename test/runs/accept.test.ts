// A run is accepted, a message sent, a request performed once, by whoever asks: without HTTP (architecture §4,
// idempotency.md §Layer 1).
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HostError } from '../../src/rules/errors.ts';
import type { RunMessage } from '../../src/rules/messages.ts';
import type { RunInput } from '../../src/rules/run-input.ts';
import { subjectOf } from '../../src/rules/subject.ts';
import { acceptRun } from '../../src/runs/accept.ts';
import { readConfigurable } from '../../src/runs/configurable.ts';
import { messageOnce, sendMessage, type Delivery } from '../../src/runs/messages.ts';
import type { Asked, Once, Telling } from '../../src/runs/once.ts';
import type { Stores } from '../../src/ports/stores.ts';
import { acceptParts, NOOP, type AcceptParts } from '../support/accept-parts.ts';
import { openAnyStores } from '../support/log-parts.ts';

const CALLER = {
  tenant: 'default',
  subject: subjectOf('api-key', 'default', 'tester'),
  scopes: [],
};
let stores: Stores;
const started: RunInput[] = [];
const sent: { updateId: string; message: RunMessage }[] = [];

beforeAll(async () => {
  stores = await openAnyStores();
});
afterAll(() => stores.close());

function deps(): AcceptParts {
  const parts = acceptParts(stores);
  return {
    ...parts,
    engine: {
      ...parts.engine,
      async start(input) {
        started.push(input);
        return { temporalRunId: `t-${input.runId}` };
      },
      async send(_runId, updateId, message) {
        sent.push({ updateId, message });
        const first = sent.find((one) => one.updateId === updateId);
        return { bodyDigest: first?.message.bodyDigest ?? '', status: 'cancelling' };
      },
    },
  };
}

describe('architecture §4 an acceptance', () => {
  it('gives data to who has no keys: an activity, a schedule', async () => {
    const run = { workflowId: 'noop', inputs: {}, configurable: { temprature: 1 } };
    const once = await acceptRun(deps(), CALLER, { run });
    const { runId = '' } = started.at(-1) ?? {};
    expect(once).toMatchObject({
      data: { runId, status: 'pending', warnings: [{ key: 'temprature' }] },
    });
    expect(once).not.toHaveProperty('replayed');
    const row = await stores.runs.find('default', runId);
    expect(row?.temporalRunId).toBe(`t-${runId}`);
    // Its owner is kept whole (architecture §9).
    expect(row?.input.subject).toEqual(CALLER.subject);
  });

  it('run-options.md: keeps configurable in one form, however it was written, and no credential', () => {
    const models = { providers: () => ['scripted'] };
    const flat = { 'ai.provider': 'scripted', 'ai.credentialRef': 'cred_x', temperature: 1 };
    const nested = { temperature: 1, ai: { provider: 'scripted', credentialRef: 'cred_x' } };
    const kept = { temperature: 1, ai: { provider: 'scripted' } };
    expect(readConfigurable(flat, { definition: NOOP }, models)).toEqual(kept);
    expect(readConfigurable(nested, { definition: NOOP }, models)).toEqual(kept);
  });
});

describe('idempotency.md §Layer 1, architecture §4 the one way of a message', () => {
  const telling: Telling<string> = {
    told: (data) => ({ status: 1, body: { data } }),
    refused: (error) =>
      error instanceof HostError && error.code === 'interrupt_gone'
        ? { status: 2, body: error.code }
        : undefined,
  };
  const asked = (more: Partial<Asked>): Asked => ({
    ...{ endpoint: 'POST x', target: ['run-1'], body: { a: 1 } },
    ...more,
  });
  const cancel = ({ updateId, bodyDigest }: Delivery): Promise<string> =>
    sendMessage(deps(), 'run-1', {
      updateId,
      message: { kind: 'cancel', cancelledBy: 'x', bodyDigest },
    });
  const send = (
    more: Partial<Asked>,
    how: (delivery: Delivery) => Promise<string> = cancel,
  ): Promise<Once<string>> =>
    messageOnce({ stores }, { caller: CALLER, asked: asked(more), telling }, how);

  it('without a key each is another message; nothing is kept', async () => {
    expect([await send({}), await send({})]).toEqual([
      { data: 'cancelling' },
      { data: 'cancelling' },
    ]);
    expect(new Set(sent.slice(-2).map(({ updateId }) => updateId)).size).toBe(2);
  });

  it('with a key it is sent once, and a repeat is told what its sender was told', async () => {
    const before = sent.length;
    expect(await send({ key: 'k1' })).toEqual({ replayed: false, data: 'cancelling' });
    const kept = { status: 1, body: { data: 'cancelling' } };
    expect(await send({ key: 'k1' })).toEqual({ replayed: true, kept });
    expect(sent.length).toBe(before + 1);
    await expect(send({ key: 'k1', body: { a: 2 } })).rejects.toMatchObject({
      code: 'idempotency_key_mismatch',
    });
  });

  it('one that may have been sent is sent again under the same id; another key or target has another', async () => {
    const ids: string[] = [];
    const lost = async ({ updateId, isRepeatable }: Delivery): Promise<string> => {
      ids.push(updateId);
      expect(isRepeatable).toBe(true);
      throw new HostError('service_unavailable');
    };
    for (const more of [{}, {}, { key: 'k3' }, { target: ['run-2'] }])
      await expect(send({ key: 'k2', ...more }, lost)).rejects.toMatchObject({
        code: 'service_unavailable',
      });
    const [first, again, ...others] = ids;
    expect(again).toBe(first);
    expect(new Set([first, ...others]).size).toBe(3);
  });

  it('a refusal that is final is kept, any other is not', async () => {
    const refuse = (code: 'interrupt_gone' | 'validation_error') => () =>
      Promise.reject(new HostError(code));
    await expect(send({ key: 'k4' }, refuse('validation_error'))).rejects.toThrow();
    await expect(send({ key: 'k4' }, refuse('interrupt_gone'))).rejects.toThrow();
    expect(await send({ key: 'k4' })).toEqual({
      replayed: true,
      kept: { status: 2, body: 'interrupt_gone' },
    });
  });

  it('an outcome that answers another body is refused', async () => {
    const { updateId = '' } = sent.at(-1) ?? {};
    const other = { kind: 'cancel', cancelledBy: 'x', bodyDigest: 'another' } as const;
    await expect(sendMessage(deps(), 'run-1', { updateId, message: other })).rejects.toMatchObject({
      code: 'idempotency_key_mismatch',
    });
  });
});
