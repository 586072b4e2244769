// What stands in the way of a new call of a tool with effects (architecture §5): a call in doubt that nobody is asked about,
// one that happened without a result of use, one of an earlier attempt. A human is asked, and nothing is performed.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { CallToolInput, CallToolOutput } from '../../activities/contract.ts';
import { HostError } from '../../src/rules/errors.ts';
import { digestOf } from '../../src/rules/ids.ts';
import { canonicalJson, type JsonValue } from '../../src/rules/json.ts';
import type { Stores } from '../../src/ports/stores.ts';
import type { Tool } from '../../src/ports/tools.ts';
import { openAnyStores } from '../support/log-parts.ts';
import { runRef } from '../support/run-ref.ts';
import { AGENT_ID, createRig, runActivity, type Rig } from './rig.ts';

let stores: Stores;
beforeAll(async () => {
  stores = await openAnyStores();
});
afterAll(() => stores.close());

const PAY = 'tests:pay';
type Behaviour = () => Promise<JsonValue>;
const lost: Behaviour = () => Promise.reject(new Error('connection reset'));

/** A run whose agent pays, and how often it did. */
class Payer {
  paid = 0;
  behave: Behaviour;
  #rig!: Rig;

  private constructor(behave: Behaviour) {
    this.behave = behave;
  }

  static async of(behave: Behaviour, more: Partial<Tool> = {}): Promise<Payer> {
    const payer = new Payer(behave);
    const tool: Tool = {
      ...{ toolId: PAY, description: 'Pays.', inputSchema: { type: 'object' } },
      ...{ idempotent: false, timeoutMs: 5_000, transport: 'native', safetyTier: 'write' },
      call: async () => {
        payer.paid++;
        return payer.behave();
      },
      ...more,
    };
    payer.#rig = await createRig(stores, { tools: [tool] });
    return payer;
  }

  async call(more: Called = {}) {
    const { args = { to: 'A' }, occurrence = 0, tryNumber = 1, resolution, ...place } = more;
    const input: CallToolInput = {
      context: { ...this.#rig.context, ...place, activityId: `n/1/0/i0.t${occurrence}.c0.call` },
      agentId: AGENT_ID,
      call: {
        ...{ callId: `call-${occurrence}`, toolId: PAY, arguments: args, occurrence },
        argsHash: digestOf(canonicalJson(args)),
      },
      tools: [PAY],
      calledKey: 'agent.toolCalled|n/1/0/i0.t0.c0',
      hasLeftCalls: true,
      ...(resolution ? { resolution } : {}),
    };
    const { output, events } = await runActivity(this.#rig, 'callTool', { input, tryNumber });
    return { output, payload: events[0]?.payload as Record<string, unknown> | undefined };
  }

  async effectId(): Promise<string | undefined> {
    const [row] = await stores.effects.ofRun(runRef(this.#rig.runId));
    return row?.effectId;
  }

  async states(): Promise<string[]> {
    const rows = await stores.effects.ofRun(runRef(this.#rig.runId));
    return rows.map(({ state }) => state);
  }
}

interface Called {
  readonly args?: JsonValue;
  readonly occurrence?: number;
  readonly tryNumber?: number;
  readonly visit?: number;
  readonly attempt?: number;
  readonly nodeId?: string;
  readonly resolution?: CallToolInput['resolution'];
}

/** A human who was asked so has the call performed. */
function wordOn(output: CallToolOutput): NonNullable<CallToolInput['resolution']> {
  if (output.kind !== 'in-doubt') expect.fail(output.kind);
  const { epoch, shown } = output;
  return {
    kind: 'perform',
    ...(epoch === undefined ? {} : { epoch }),
    ...(shown ? { shown } : {}),
  };
}

const IN_DOUBT = { kind: 'in-doubt' };
const OK = { kind: 'returned', status: 'ok' };
const OTHER_WORDS = { to: 'A', memo: 'refund' };
const PLACES: readonly [string, Called][] = [
  ['the same call once more', { occurrence: 1 }],
  ['a call in other words', { args: OTHER_WORDS }],
  ['a call of the next visit', { visit: 2 }],
  ['a call of another node', { nodeId: 'plan-b' }],
];

// [I34]
describe('architecture §5: behind a call in doubt', () => {
  const kinds = [
    ['not idempotent', { idempotent: false }],
    ['idempotent, with effects', { idempotent: true }],
  ] as const;
  const cases = kinds.flatMap(([kind, more]) =>
    PLACES.map(([what, called]) => [what, kind, more, called] as const),
  );

  test.each(cases)('%s is asked about (%s)', async (_what, _kind, more, called) => {
    const payer = await Payer.of(lost, more);
    expect((await payer.call({ tryNumber: 4 })).output).toMatchObject(IN_DOUBT);
    payer.behave = async () => ({ receipt: 1 });
    const { output } = await payer.call(called);
    expect(output).toMatchObject(IN_DOUBT);
    // It has no row of its own: the words are about the earlier call, and name where that was made.
    expect(output).toEqual({
      ...{ kind: 'in-doubt', effectId: expect.any(String) as unknown },
      reason:
        'This call was not made. It is not known whether an earlier call of the tool happened: node n of this run.',
      shown: [{ effectId: await payer.effectId(), epoch: 1, why: 'doubt' }],
    });
    expect(payer.paid).toBe(1);
    const resolution = wordOn(output);
    expect((await payer.call({ ...called, resolution })).output).toMatchObject(OK);
    expect(payer.paid).toBe(2);
  });

  test.each([
    ['a doubt', { tryNumber: 4 }, 'again. Whether it happened is unknown.'],
    ['a call that was not made', { args: OTHER_WORDS }, 'the effect.'],
  ])('who leaves %s may say why, and the agent is told', async (_what, called, said) => {
    const payer = await Payer.of(lost);
    await payer.call({ tryNumber: 4 });
    const secret = 'sk-live-0123456789abcdef';
    const reason = `Paid by hand, with ${secret}.`;
    const { payload } = await payer.call({ ...called, resolution: { kind: 'skip', reason } });
    const { message } = payload?.error as { message: string };
    expect(message).toContain(`${said} The reason given: Paid by hand, with `);
    expect(message).not.toContain(secret);
    const long = { kind: 'skip', reason: 'x'.repeat(8_192) } as const;
    const bounded = await payer.call({ ...called, occurrence: 1, resolution: long });
    expect((bounded.payload?.error as { message: string }).message.length).toBeLessThan(2_100);
  });

  test.each(cases)(
    '%s is asked about, where a human left it (%s)',
    async (_what, _kind, more, called) => {
      const payer = await Payer.of(lost, more);
      await payer.call({ tryNumber: 4 });
      const left = await payer.call({ resolution: { kind: 'skip' } });
      expect(left.payload).toMatchObject({
        error: {
          code: 'effect_skipped',
          message:
            'A human decided not to perform the effect again. Whether it happened is unknown.',
        },
      });
      expect((await payer.call(called)).output).toMatchObject(IN_DOUBT);
      expect(payer.paid).toBe(1);
      // Of that one it is known: it was not made.
      const skipped = await payer.call({ ...called, resolution: { kind: 'skip' } });
      expect(skipped.payload).toMatchObject({
        error: { message: 'A human decided not to perform the effect.' },
      });
    },
  );

  test('what only reads is called as always', async () => {
    const payer = await Payer.of(lost, { idempotent: true, safetyTier: 'read' });
    expect((await payer.call({ tryNumber: 4 })).output).toMatchObject({ status: 'error' });
    payer.behave = async () => ({ n: 1 });
    for (const [, called] of PLACES) expect((await payer.call(called)).output).toMatchObject(OK);
  });
});

// [I34]
describe('architecture §5: behind a call that happened', () => {
  const outputSchema = {
    type: 'object',
    properties: { receipt: { type: 'string' } },
    required: ['receipt'],
  };
  const useless: readonly [string, Behaviour, string][] = [
    ['breaks its schema', async () => ({ receipt: 7 }), 'tool_invalid_output'],
    [
      'is larger than permitted',
      async () => ({ receipt: 'x'.repeat(9 * 1024 * 1024) }),
      'payload_too_large',
    ],
    [
      'its agent could not give',
      async () =>
        Promise.reject(new HostError('tool_invalid_output', { final: true, happened: true })),
      'tool_invalid_output',
    ],
  ];

  test.each(useless)(
    'whose result %s: the same call is asked about',
    async (_what, behave, code) => {
      const payer = await Payer.of(behave, { outputSchema });
      const first = await payer.call();
      expect(first.payload).toMatchObject({
        error: { code, message: expect.stringMatching(/^The call was performed, but/) as unknown },
      });
      expect(await payer.states()).toEqual(['done-without-result']);
      // Whoever makes it again after a crash learns the same.
      expect((await payer.call({ tryNumber: 2 })).output).toEqual(first.output);
      payer.behave = async () => ({ receipt: 'r-1' });
      expect((await payer.call({ occurrence: 1 })).output).toMatchObject(IN_DOUBT);
      expect((await payer.call({ attempt: 1, args: OTHER_WORDS })).output).toMatchObject(IN_DOUBT);
      expect(payer.paid).toBe(1);
      expect((await payer.call({ args: OTHER_WORDS })).output).toMatchObject(OK);
      expect((await payer.call({ visit: 2 })).output).toMatchObject(OK);
    },
  );

  test('a later attempt asks in other words: asked about, also of an idempotent tool', async () => {
    const payer = await Payer.of(async () => ({ receipt: 'r-1' }), { idempotent: true });
    expect((await payer.call()).output).toMatchObject(OK);
    const { output } = await payer.call({ attempt: 1, args: OTHER_WORDS });
    expect(output).toMatchObject(IN_DOUBT);
    expect((await payer.call({ attempt: 1 })).output).toMatchObject(OK);
    expect(payer.paid).toBe(1);
  });
});

// [I34]
describe('architecture §5: behind a sending that may have happened', () => {
  const refused: Behaviour = () =>
    Promise.reject(new HostError('tool_not_found', { final: true, reason: 'No such tool now' }));
  const unsent: Behaviour = () =>
    Promise.reject(Object.assign(new Error('no socket'), { sent: false }));
  const REFUSED =
    'The effect may or may not have happened. It was sent again, which was refused: No such tool now. What the former sending came to is still unknown.';
  const UNSENT =
    'The effect may or may not have happened. It was to be sent again, which failed on this host: no socket. What the former sending came to is still unknown.';

  test('a refusal of its repeat leaves it in doubt', async () => {
    const payer = await Payer.of(lost, { idempotent: true });
    await expect(payer.call()).rejects.toMatchObject({ type: 'tool_failed' });
    payer.behave = refused;
    const asked = await payer.call({ tryNumber: 2 });
    expect(asked.output).toMatchObject({ ...IN_DOUBT, reason: REFUSED });
    expect(await payer.states()).toEqual(['in-doubt']);
    payer.behave = async () => ({ receipt: 1 });
    expect((await payer.call({ occurrence: 1 })).output).toMatchObject(IN_DOUBT);
    expect(payer.paid).toBe(2);
    expect((await payer.call({ resolution: wordOn(asked.output) })).output).toMatchObject(OK);
  });

  test.each([
    ['was refused', refused, REFUSED],
    ['did not leave the host', unsent, UNSENT],
  ])(
    'a sending by a human’s word that %s leaves it in doubt, each time by a word of its own',
    async (_what, behave, reason) => {
      const payer = await Payer.of(lost);
      let { output } = await payer.call();
      payer.behave = behave;
      for (const paid of [2, 3]) {
        const resolution = wordOn(output);
        ({ output } = await payer.call({ resolution, tryNumber: 4 }));
        expect(output).toMatchObject({ ...IN_DOUBT, reason });
        // The word is used up.
        expect((await payer.call({ resolution })).output).toMatchObject(IN_DOUBT);
        expect((await payer.call({ occurrence: 1 })).output).toMatchObject(IN_DOUBT);
        expect(await payer.states()).toEqual(['in-doubt']);
        expect(payer.paid).toBe(paid);
      }
    },
  );

  test('a refusal of a repeat that changes nothing is its end', async () => {
    const payer = await Payer.of(lost, { idempotent: true, safetyTier: 'read' });
    await expect(payer.call()).rejects.toMatchObject({ type: 'tool_failed' });
    payer.behave = refused;
    expect((await payer.call({ tryNumber: 2 })).payload).toMatchObject({
      error: { code: 'tool_not_found' },
    });
    expect(await payer.states()).toEqual(['failed-final']);
  });

  test('a refusal is its end where its tool knows that nothing happened', async () => {
    let knows = false;
    const reconcile: Tool['reconcile'] = async () => (knows ? { happened: false } : 'unknown');
    const payer = await Payer.of(lost, { reconcile });
    const { output } = await payer.call();
    knows = true;
    payer.behave = refused;
    const { payload } = await payer.call({ resolution: wordOn(output) });
    expect(payload).toMatchObject({ error: { code: 'tool_not_found' } });
    expect(await payer.states()).toEqual(['failed-final']);
  });

  test('what a fork’s source sent is unknown to the tool, which was asked under another key', async () => {
    const reconcile: Tool['reconcile'] = async () => ({ happened: false });
    const payer = await Payer.of(refused, { reconcile });
    const { output } = await payer.call({ resolution: { kind: 'perform', epoch: 3 } });
    expect(output).toMatchObject({ ...IN_DOUBT, reason: REFUSED });
    expect(await payer.states()).toEqual(['in-doubt']);
  });

  test('a human is told of each kind of call that stands in the way, and again of what came meanwhile', async () => {
    const outputSchema = { type: 'object', required: ['receipt'] };
    const payer = await Payer.of(async () => ({ useless: true }), { outputSchema });
    await payer.call();
    payer.behave = lost;
    await payer.call({ args: OTHER_WORDS });
    payer.behave = async () => ({ receipt: 1 });
    const again = { occurrence: 1 };
    const asked = await payer.call(again);
    expect(asked.output).toMatchObject({
      ...IN_DOUBT,
      reason:
        'This call was not made. The same call was made before and happened, but its result could not be used: node n of this run. It is not known whether an earlier call of the tool happened: node n of this run.',
    });
    payer.behave = lost;
    await payer.call({ args: { to: 'B' }, resolution: wordOn(asked.output) });
    payer.behave = async () => ({ receipt: 1 });
    const more = await payer.call({ ...again, resolution: wordOn(asked.output) });
    expect(more.output).toMatchObject({
      ...IN_DOUBT,
      reason:
        'This call was not made. It is not known whether an earlier call of the tool happened: node n of this run.',
    });
    expect(payer.paid).toBe(3);
    expect((await payer.call({ ...again, resolution: wordOn(more.output) })).output).toMatchObject(
      OK,
    );
  });
});
