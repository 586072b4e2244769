// More than a turn may hold (architecture §5): the model is told once in an invocation, with the size and the limit, and
// then the node fails; what of it stays in the conversation.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { INLINE_VALUE_BYTES, MAX_CALLS_PER_TURN } from '../../src/rules/limits.ts';
import { utf8Length, type JsonValue } from '../../src/rules/json.ts';
import type { InferTurnInput, InferTurnOutput, Orchestrates } from '../../activities/contract.ts';
import type { TranscriptItem } from '../../src/ports/models.ts';
import type { Stores } from '../../src/ports/stores.ts';
import type { AgentScriptTurn } from '../../schemas/types.generated.ts';
import { openAnyStores } from '../support/log-parts.ts';
import { createRig, expectValid, newestItems, prepare, runActivity, type Rig } from './rig.ts';

let stores: Stores;
beforeAll(async () => {
  stores = await openAnyStores();
});
afterAll(() => stores.close());

const PAY = 'demo:pay';
const KEPT_BYTES = INLINE_VALUE_BYTES + 100;

const callsOf = (count: number, sent: JsonValue) =>
  Array.from({ length: count }, () => ({ toolId: PAY, arguments: sent }));
const calls = (...asked: readonly { toolId: string; arguments: JsonValue }[]): AgentScriptTurn => ({
  calls: asked as never,
});
const calling = (count: number, sent: JsonValue) => calls(...callsOf(count, sent));
const deciding = (decision: JsonValue): AgentScriptTurn => ({ final: { decision, confidence: 1 } });

const GOOD = deciding('pay');
const PROSE: AgentScriptTurn = { raw: 'the moon, perhaps' };
const MANY = calling(40, { cents: 5 });
const LARGE = deciding('x'.repeat(40_000));

/** The failure's code, or what the turn came to. */
type End = { readonly failed: string } | InferTurnOutput;

/** The turns of the script one after the other, each with the request for repair that the workflow makes of the one before. */
async function play(
  turns: readonly AgentScriptTurn[],
  more: { rig?: Rig; begin?: string; orchestrates?: Orchestrates } = {},
) {
  const rig = more.rig ?? (await createRig(stores, { turns }));
  const { orchestrates } = more;
  const { transcript: first, model } = await prepare(rig, orchestrates ? { orchestrates } : {});
  let transcript = more.begin ?? first;
  let repair: string | undefined;
  const ends: End[] = [];
  for (let at = 0; at < turns.length; at++) {
    const input: InferTurnInput = {
      ...{ context: rig.context, agent: rig.agent, model, transcript, verbosity: 'full' as const },
      ...{ configurable: {}, tools: [PAY], results: [] },
      ...(repair === undefined ? {} : { repair }),
      ...(orchestrates ? { orchestrates } : {}),
    };
    const end = await runActivity(rig, 'inferTurn', { input }).catch((error: unknown) => ({
      failed: (error as { type: string }).type,
    }));
    if ('failed' in end) {
      ends.push(end);
      break;
    }
    for (const event of end.events) expectValid(rig, event);
    ends.push(end.output);
    transcript = end.output.transcript;
    repair = end.output.kind === 'invalid' ? end.output.message : undefined;
  }
  return { rig, ends, transcript };
}

const told = (...words: string[]) => ({
  kind: 'invalid',
  violation: 'form',
  message: expect.stringMatching(words.join('.*')) as string,
});
const TOO_LARGE = { failed: 'payload_too_large' };
/** The workflow counts them, or adds them up, and fails the node. */
const handedOn = (count: number) => ({ kind: 'calls', calls: { length: count } });

// [I54]
describe('too much at once is told, once', () => {
  const cases: [name: string, turn: AgentScriptTurn, told: object, again: object][] = [
    [
      'arguments of 40 KB',
      calling(1, { note: 'x'.repeat(40_000) }),
      told('call of demo:pay', '40045 bytes', '32768', 'No tool was called'),
      TOO_LARGE,
    ],
    [
      'arguments of many bytes in few characters, beside a small call',
      calls(...callsOf(1, {}), ...callsOf(1, '字'.repeat(11_000))),
      told('call of demo:pay', '33036 bytes', '32768', 'No tool was called'),
      TOO_LARGE,
    ],
    [
      'arguments of 400 KB together',
      calling(20, { note: 'x'.repeat(20_000) }),
      told('together', '400241 bytes', '262144', 'No tool was called'),
      handedOn(20),
    ],
    ['40 calls', MANY, told('40 calls', '32', 'No tool was called'), handedOn(33)],
    [
      '40 calls, of which the last is large',
      calls(...callsOf(39, {}), ...callsOf(1, 'x'.repeat(40_000))),
      told('call of demo:pay', '32768', '40 calls', 'No tool was called'),
      TOO_LARGE,
    ],
    ['a decision of 40 KB', LARGE, told('decision', '40002 bytes', '32768'), TOO_LARGE],
  ];

  test.each(cases)('%s, then a good answer: the run goes on', async (_name, turn, message) => {
    const { ends } = await play([turn, GOOD]);
    expect(ends).toMatchObject([message, { kind: 'decision', decision: 'pay' }]);
  });

  test.each(cases)('%s, twice: the node fails', async (_name, turn, message, again) => {
    const { ends } = await play([turn, turn]);
    expect(ends).toMatchObject([message, again]);
  });

  test('an orchestrator too', async () => {
    const asks = deciding({ kind: 'ask-user', prompt: 'x'.repeat(40_000) });
    const { ends } = await play([asks, asks], { orchestrates: { workerIds: ['a'] } });
    expect(ends).toMatchObject([told('decision', '32768'), TOO_LARGE]);
  });

  test.each<[string, readonly AgentScriptTurn[], object]>([
    ['another kind of too much', [MANY, LARGE], TOO_LARGE],
    ['another fault between', [LARGE, PROSE, LARGE], TOO_LARGE],
    ['calls that were good between', [LARGE, calling(1, {}), MANY], handedOn(33)],
  ])('once in an invocation: %s', async (_name, turns, end) => {
    const { ends } = await play(turns);
    expect(ends[0]).toMatchObject(told('permitted'));
    expect(ends.at(-1)).toMatchObject(end);
    expect(ends).toHaveLength(turns.length);
  });

  test('other faults before are no word about the size', async () => {
    const { ends } = await play([PROSE, LARGE]);
    expect(ends[1]).toMatchObject(told('40002 bytes', '32768'));
  });

  test('in each invocation: one that goes on with the conversation is told again', async () => {
    const { rig, transcript } = await play([LARGE, PROSE]);
    const resumed = await prepare(rig, { resume: { transcript, answers: { q1: 'yes' } } });
    const other = { ...(await createRig(stores, { turns: [LARGE] })), context: rig.context };
    const { ends } = await play([LARGE, LARGE], { rig: other, begin: resumed.transcript });
    expect(ends).toMatchObject([told('40002 bytes'), TOO_LARGE]);
  });
});

describe('what stays of it in the conversation', () => {
  const lastSaid = async (turn: AgentScriptTurn, rig?: Rig): Promise<TranscriptItem> => {
    const played = await play([turn], rig ? { rig } : {});
    const said = (await newestItems(played.rig, played.transcript)).at(-1);
    if (said?.role !== 'assistant') throw new Error('the model said nothing');
    expect(said.calls).toEqual([]);
    return said;
  };

  test('calls stand there as text: the model sees what it is asked to mend', async () => {
    const { text } = await lastSaid(MANY);
    expect(text.match(/demo:pay \{"cents":5\}/g)).toHaveLength(40);
  });

  test.each<[string, AgentScriptTurn]>([
    ['a decision of 40 KB', LARGE],
    ['1,000 calls', calling(1_000, { note: 'x'.repeat(500) })],
    ['text of 400 KB that is no decision', { raw: '字'.repeat(130_000) }],
    ['an answer that was cut at 400 KB', { raw: 'x'.repeat(400_000), truncated: true }],
  ])('of %s no more than a value may hold, and a word that it was more', async (_name, turn) => {
    const { text } = await lastSaid(turn);
    expect(utf8Length(text)).toBeGreaterThan(INLINE_VALUE_BYTES - 100);
    expect(utf8Length(text)).toBeLessThan(KEPT_BYTES);
    expect(text).toMatch(/… \[\d+ bytes in all\]$/);
  });

  test('SR-1: a secret in the arguments is masked, in the text and in the message', async () => {
    const value = 'hunter2-"hunter2"';
    const turn = calling(MAX_CALLS_PER_TURN + 1, { [value]: value });
    const named = calls({ toolId: `demo:${value}`, arguments: 'x'.repeat(40_000) });
    for (const said of [turn, named]) {
      const rig = await createRig(stores, { turns: [said], secrets: [{ id: 'vault', value }] });
      const { ends, transcript } = await play([said], { rig });
      const everything = JSON.stringify([ends, await newestItems(rig, transcript)]);
      expect(everything).toContain('[REDACTED:vault]');
      expect(everything).not.toContain('hunter2');
    }
  });

  test('the message is bounded, whatever the name of the tool', async () => {
    const named = { toolId: `demo:${'字'.repeat(200)}`, arguments: 'x'.repeat(40_000) };
    const { ends } = await play([calls(named)]);
    expect(ends).toMatchObject([told('call of demo:字', '40')]);
    expect(utf8Length((ends[0] as { message: string }).message)).toBeLessThan(400);
  });
});
