// The journeys of agents on a model that is asked over a network, alike for every provider: the refund desk on an endpoint
// that the test serves, with real sockets, streamed reasoning, calls, decisions, and every way in which it goes wrong.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Environment } from '../../src/app/config.ts';
import { GET_ORDER, REFUND_ORDER } from '../../src/demo/order-tools.ts';
import type { JsonObject } from '../../src/rules/json.ts';
import { until } from '../support/host.ts';
import { checkInvariants } from '../support/invariants.ts';
import { bracketsOf, deltasOf, payloadOf, shapeOf, textOf } from './brackets.ts';
import { ended, Journey, waiting, type Told } from './journey.ts';
import { CANARY, REFUND_DESK } from './journey-workflows.ts';

type Body = Record<string, unknown>;

export type EndpointAnswer = (
  response: ServerResponse,
  body: Body,
  request: IncomingMessage,
) => void;

export interface ToolCall {
  readonly toolId: string;
  readonly arguments: unknown;
}

export interface ServedEndpoint {
  readonly url: string;
  readonly requests: readonly Body[];
  /** What its strict rules refused. */
  readonly refused: readonly string[];
  readonly aborted: () => number;
  stop(): Promise<void>;
}

/** The endpoint of one provider, in its own words. Its usage is 11 and 7 tokens, its model `served-1`. */
export interface JourneyEndpoint {
  /** For the title: the endpoint and how it is asked. */
  readonly name: string;
  readonly provider: string;
  env(url: string): Environment;
  start(
    answerOf: (body: Body, index: number, key: string) => EndpointAnswer | undefined,
  ): Promise<ServedEndpoint>;

  callingTools(pieces: readonly string[], calls: readonly ToolCall[]): EndpointAnswer;
  /** `final`: a value, or text that need not be JSON. It is held back until `held` is done. */
  deciding(pieces: readonly string[], final: unknown, held?: Promise<unknown>): EndpointAnswer;
  decidingTwice(pieces: readonly string[], final: unknown): EndpointAnswer;
  decidingBeside(pieces: readonly string[], final: unknown, call: ToolCall): EndpointAnswer;
  /** A call whose arguments end in the middle. */
  callingByHalf(pieces: readonly string[], call: ToolCall): EndpointAnswer;
  empty(): EndpointAnswer;
  refusing(pieces: readonly string[]): EndpointAnswer;
  /** What `refusing` comes to in `envelope.refusal`. */
  refusalText(pieces: readonly string[]): string;
  /** By the moderation of the provider, in the middle of an answer. */
  filtered(pieces: readonly string[]): EndpointAnswer;
  /** Says the pieces, then closes the connection. */
  dropping(...pieces: string[]): EndpointAnswer;
  /** Begins an answer, and says a piece again and again. */
  talking(piece: string, everyMs: number): EndpointAnswer;
  /** Begins an answer, and says the piece so many times at once. */
  repeating(piece: string, times: number): EndpointAnswer;
  /** 429 with Retry-After. */
  busy(seconds: number): EndpointAnswer;
  overloaded(): EndpointAnswer;
  /** 401, and a message that repeats the key. */
  rejectingKey(message: string): EndpointAnswer;
  /** 200, and an error that may pass: as the body, or as an event behind the pieces. */
  failingInside(pieces?: readonly string[]): EndpointAnswer;
  /** The last results of tools in a request: the id of each call as the conversation has it, and the text. */
  resultsIn(body: Body): readonly { callId: string; text: string }[];
}
const MIB = 1024 * 1024;

const SPEECH = ['It is ', 'too ', 'late for ', 'a refund. '];
const PIECE = 'on and ';
const final = (tag: string, action: 'refund' | 'decline', confidence: number): JsonObject => ({
  decision: {
    action,
    orderId: 'A-1007',
    amountCents: action === 'refund' ? 6490 : 0,
    reason: `[[${tag}]] So it is.`,
  },
  confidence,
});
const reads: ToolCall = { toolId: GET_ORDER, arguments: { orderId: 'A-1007' } };
const pays = (amountCents: number): ToolCall => ({
  toolId: REFUND_ORDER,
  arguments: { orderId: 'A-1007', amountCents, reason: 'So it is.' },
});
/** Amounts that no answer may have paid. */
const NEVER_PAID = [1, 2, 3];

const inPage: EndpointAnswer = (response) =>
  void response.writeHead(200, { 'content-type': 'text/html' }).end('<p>Busy</p>');

/** Answers of each run by the tag in its customer's message, in the order of asking; the last one for ever. */
function answersOf(
  by: JourneyEndpoint,
  held: Promise<unknown>,
): Readonly<Record<string, readonly EndpointAnswer[]>> {
  const declines = (tag: string) => by.deciding(SPEECH, final(tag, 'decline', 0.9));
  const readsFirst = by.callingTools(['I need ', 'to read ', 'the order. '], [reads]);
  return {
    desk: [
      readsFirst,
      by.deciding(SPEECH, final('desk', 'refund', 0.55)),
      by.callingTools(['I pay. '], [pays(6490)]),
      by.deciding(['Paid. '], {
        decision: { status: 'refunded', refundId: 'R-1' },
        confidence: 0.95,
      }),
    ],
    held: [by.deciding(SPEECH, final('held', 'decline', 0.9), held)],
    busy: [by.busy(1), declines('busy')],
    overloaded: [by.overloaded(), declines('overloaded')],
    inside: [by.failingInside(), by.failingInside(SPEECH.slice(0, 2)), declines('inside')],
    dropped: [by.dropping(SPEECH[0] ?? '', SPEECH[1] ?? ''), declines('dropped')],
    changed: [by.dropping('It is ', 'another '), declines('changed')],
    page: [inPage, declines('page')],
    refusal: [by.refusing(['I will ', 'not.'])],
    filtered: [by.filtered(['I could ', 'say '])],
    repaired: [
      by.deciding(['Hm. '], '{"decision": {"action": '),
      by.deciding(['Hm, hm. '], '{"decision": {"action": "perhaps"}}'),
      declines('repaired'),
    ],
    empty: [by.empty(), declines('empty')],
    twice: [by.decidingTwice(['Hm. '], final('twice', 'refund', 0.9)), declines('twice')],
    beside: [
      by.decidingBeside(['Hm. '], final('beside', 'refund', 0.9), pays(2)),
      declines('beside'),
    ],
    half: [by.callingByHalf(['Hm. '], pays(3)), declines('half')],
    invalid: [by.deciding(['Hm. '], '{"verdict": 1}')],
    huge: [by.repeating('x'.repeat(MIB / 2), 20)],
    unknown: [
      by.callingTools(['I try. '], [{ toolId: 'demo:orders.destroy', arguments: {} }, pays(1)]),
      declines('unknown'),
    ],
    endless: [readsFirst],
    cancelled: [by.talking(PIECE, 50)],
    rejected: [by.rejectingKey(`Incorrect API key provided: ${CANARY}`)],
  };
}

const payloads = ({ events }: Pick<Told, 'events'>, type: string): JsonObject[] =>
  events.filter((event) => event.type === type).map(payloadOf);
const shapes = ({ brackets }: Told): string[] => brackets.map(shapeOf);

/** A host on the endpoint, and what the endpoint was asked for each run. */
class Scene {
  readonly asked = new Map<string, Body[]>();
  readonly keys = new Map<string, string[]>();
  /** The decision that is held back comes. */
  release = (): void => {};
  readonly #held = new Promise<void>((resolve) => (this.release = resolve));
  readonly #by: JourneyEndpoint;
  #server: ServedEndpoint | undefined;
  #journey: Journey | undefined;

  constructor(by: JourneyEndpoint) {
    this.#by = by;
  }

  get server(): ServedEndpoint {
    if (!this.#server) throw new Error('the endpoint is not started');
    return this.#server;
  }

  get journey(): Journey {
    if (!this.#journey) throw new Error('the host is not started');
    return this.#journey;
  }

  async begin(): Promise<void> {
    const answers = answersOf(this.#by, this.#held);
    const server = await this.#by.start((body, _index, key) => {
      const tag = /\[\[(\w+)\]\]/.exec(JSON.stringify(body))?.[1] ?? '';
      const before = this.asked.get(tag) ?? [];
      this.asked.set(tag, [...before, body]);
      this.keys.set(tag, [...(this.keys.get(tag) ?? []), key]);
      return answers[tag]?.[Math.min(before.length, answers[tag].length - 1)];
    });
    this.#server = server;
    this.#journey = new Journey(async () => ({ env: this.#by.env(server.url) }));
    await this.#journey.begin();
  }

  async end(): Promise<void> {
    await this.#journey?.end();
    await this.#server?.stop();
  }

  start(tag: string): Promise<string> {
    return this.journey.run(REFUND_DESK, {
      inputs: { orderId: 'A-1007', message: `[[${tag}]] My kettle is cracked.` },
      configurable: { ai: undefined },
    });
  }

  async told(tag: string): Promise<Told> {
    return this.journey.told(await this.start(tag));
  }

  timesAsked(tag: string): number {
    return this.asked.get(tag)?.length ?? 0;
  }
}

/** All journeys on one endpoint. */
export function modelJourneys(by: JourneyEndpoint): void {
  onEndpoint(by, (scene) => {
    describe.concurrent('the refund desk', () => {
      decides(scene, by);
      streams(scene);
      triesAgain(scene);
      refuses(scene, by);
      repairs(scene);
      keepsNothingUnclear(scene);
      endsAtLimits(scene);
    });
    describe('afterwards', () => {
      closesItsSocket(scene);
      leavesOrder(scene);
    });
  });
}

function onEndpoint(by: JourneyEndpoint, tests: (scene: Scene) => void): void {
  describe(by.name, () => {
    const scene = new Scene(by);
    beforeAll(() => scene.begin());
    afterAll(() => scene.end());
    tests(scene);
  });
}

/**
 * The journey of the desk and a repair, for another way of asking. `shape` of the first bracket: an endpoint that answers
 * with JSON alone streams no reasoning.
 */
export function shortModelJourney(by: JourneyEndpoint, shape: string): void {
  onEndpoint(by, (scene) => {
    it('calls tools, decides, is repaired, waits for a human, pays', async () => {
      const runId = await scene.start('desk');
      const open = await scene.journey.told(runId, waiting);
      expect(shapes(open)).toEqual([shape]);
      await scene.journey.answer(runId, 'triage', { action: 'accept' });
      const told = await scene.journey.told(runId);
      expect(told.snapshot.outputs).toMatchObject({ receipt: { status: 'refunded' } });
      expect((await scene.told('repaired')).snapshot.status).toBe('completed');
      expect(scene.timesAsked('repaired')).toBe(3);
    });
    leavesOrder(scene);
  });
}

function decides(scene: Scene, by: JourneyEndpoint): void {
  it('streams, calls tools, decides, waits for a human, pays: the same journey as with the script', async () => {
    const { journey } = scene;
    const runId = await scene.start('desk');
    const open = await journey.told(runId, waiting);
    expect(shapes(open)).toEqual(['SPcdRuTtdRuDC']);
    const { provider } = by;
    expect(payloads(open, 'agent.invocation.started')[0]).toMatchObject({
      resolvedProvider: provider,
    });
    const usage = { provider, model: 'served-1', inputTokens: 11, outputTokens: 7 };
    expect(payloads(open, 'provider.usage')[0]).toMatchObject(usage);
    await journey.answer(runId, 'triage', { action: 'accept' });
    const told = await journey.told(runId);
    const outcomes = told.brackets.map(({ outcome }) => outcome);
    expect(outcomes).toEqual(['escalated', 'handed-off', 'completed']);
    expect(told.snapshot.outputs).toMatchObject({ receipt: { status: 'refunded' } });
    const [called] = payloads(told, 'agent.toolCalled');
    const [, second] = scene.asked.get('desk') ?? [];
    const [result] = by.resultsIn(second ?? {});
    expect(result?.callId).toBe(called?.callId);
    expect(result?.text).toContain('Glass kettle');
  });
}

function streams(scene: Scene): void {
  it('architecture §5 what is thought aloud is shown before the decision is there', async () => {
    const runId = await scene.start('held');
    const shown = async (): Promise<string> => deltasOf((await scene.journey.events(runId)).events);
    await until(async () => (await shown()).trim() === SPEECH.join('').trim(), 'all is shown');
    const open = await scene.journey.events(runId);
    expect(open.events.map(({ type }) => type)).not.toContain('agent.reasoned');
    scene.release();
    const told = await scene.journey.told(runId);
    expect(shapes(told)).toEqual(['SPcdRuDC']);
    const [reasoned] = payloads(told, 'agent.reasoned');
    expect(textOf(reasoned?.reasoning).trim()).toBe(SPEECH.join('').trim());
  });
}

function triesAgain(scene: Scene): void {
  it('429 with Retry-After, then an answer: tried again under the same key, told once', async () => {
    const told = await scene.told('busy');
    expect(told.snapshot.status).toBe('completed');
    expect(shapes(told)).toEqual(['SPcdRuDC']);
    const sent = scene.keys.get('busy') ?? [];
    expect([sent.length, new Set(sent).size]).toEqual([2, 1]);
  });

  it.each(['overloaded', 'page'])('%s: what may pass is tried again', async (tag) => {
    const told = await scene.told(tag);
    expect(shapes(told)).toEqual(['SPcdRuDC']);
    expect(scene.timesAsked(tag)).toBe(2);
  });

  it('200 with an error, as the body and in the stream: tried again, and adopted', async () => {
    const told = await scene.told('inside');
    expect(shapes(told)).toEqual(['SPcdRuDC']);
    expect(deltasOf(told.events).trim()).toBe(SPEECH.join('').trim());
    expect(scene.timesAsked('inside')).toBe(3);
  });

  it('a connection dropped in mid-stream: the next try adopts what was shown', async () => {
    const told = await scene.told('dropped');
    expect(shapes(told)).toEqual(['SPcdRuDC']);
    expect(deltasOf(told.events).trim()).toBe(SPEECH.join('').trim());
    expect(scene.timesAsked('dropped')).toBe(2);
  });

  it('a next try that says something else: what was shown stays, the closing event has the truth (architecture §3.5)', async () => {
    const runId = await scene.start('changed');
    await scene.journey.host.waitFor(runId, ended);
    const { events } = await scene.journey.events(runId);
    expect(bracketsOf(events).map(shapeOf)).toEqual(['SPcdRuDC']);
    expect(deltasOf(events)).toBe('It is another ');
    const [reasoned] = payloads({ events }, 'agent.reasoned');
    expect(textOf(reasoned?.reasoning).trim()).toBe(SPEECH.join('').trim());
  });
}

function refuses(scene: Scene, by: JourneyEndpoint): void {
  it('RFC 0077 §F-4 a refusal: refused, envelope.refusal, the node fails with envelope_refusal, asked once', async () => {
    const told = await scene.told('refusal');
    expect(told.brackets[0]?.outcome).toBe('refused');
    const refusalText = by.refusalText(['I will ', 'not.']);
    expect(payloads(told, 'envelope.refusal')).toMatchObject([{ refusalText }]);
    expect(payloads(told, 'node.failed')).toMatchObject([{ error: { code: 'envelope_refusal' } }]);
    expect(scene.timesAsked('refusal')).toBe(1);
  });

  it('moderation in the middle of an answer is a refusal, whatever was said before', async () => {
    const told = await scene.told('filtered');
    expect(told.brackets[0]?.outcome).toBe('refused');
    expect(told.snapshot.error?.code).toBe('envelope_refusal');
    expect(scene.timesAsked('filtered')).toBe(1);
  });

  it("a key that is not accepted: not tried again, and the endpoint's message, which repeats it, is nowhere", async () => {
    const told = await scene.told('rejected');
    expect(told.snapshot.error?.code).toBe('model_rejected_request');
    expect(scene.timesAsked('rejected')).toBe(1);
    expect(JSON.stringify(told)).not.toContain(CANARY);
  });
}

function repairs(scene: Scene): void {
  it('invalid JSON, then a decision against the schema, then a valid one: repaired in the same bracket', async () => {
    const told = await scene.told('repaired');
    expect(told.snapshot.status).toBe('completed');
    expect(shapes(told)).toEqual(['SPcdRudRudRuDC']);
    const [first, second, third] = (scene.asked.get('repaired') ?? []).map((body) =>
      JSON.stringify(body),
    );
    expect(first).not.toContain('Your last output was not usable');
    expect(second).toContain('Your last output was not usable');
    expect(second).not.toContain('does not match the return schema');
    expect(third).toContain('does not match the return schema');
  });

  it('always invalid: fails after the rounds of repair, cap.breached schema, bracket failed', async () => {
    const told = await scene.told('invalid');
    const error = { code: 'agent_output_invalid' };
    expect(told.snapshot).toMatchObject({ status: 'failed', error });
    const breached = { kind: 'schema', limit: 2, observed: 3 };
    expect(payloads(told, 'cap.breached')).toMatchObject([breached]);
    expect(told.brackets.map(({ outcome }) => outcome)).toEqual(['failed']);
    expect(scene.timesAsked('invalid')).toBe(3);
  });

  it('an empty answer is repaired', async () => {
    const told = await scene.told('empty');
    expect(shapes(told)).toEqual(['SPcRudRuDC']);
    expect(scene.timesAsked('empty')).toBe(2);
  });
}

function keepsNothingUnclear(scene: Scene): void {
  it.each([
    ['twice', 'two final outputs'],
    ['beside', 'beside calls of tools'],
    ['half', 'cut off'],
  ])('%s: no call is performed, and the model is asked again', async (tag, why) => {
    const told = await scene.told(tag);
    expect(told.snapshot.status).toBe('completed');
    expect(shapes(told)).toEqual(['SPcdRudRuDC']);
    expect(told.types).not.toContain('agent.toolCalled');
    expect(JSON.stringify(scene.asked.get(tag)?.[1])).toContain(why);
  });

  it('RFC 0077 §B step 3 a made-up tool, and one that is not on the list: refused, never called, told to the model', async () => {
    const told = await scene.told('unknown');
    expect(shapes(told)).toEqual(['SPcdRuttdRuDC']);
    const statuses = payloads(told, 'agent.toolReturned').map(({ status }) => status);
    expect(statuses).toEqual(['forbidden', 'forbidden']);
    expect(JSON.stringify(scene.asked.get('unknown')?.[1])).toContain('forbidden');
  });
}

function endsAtLimits(scene: Scene): void {
  it('10 MB: model_output_too_large, what was shown is bounded and sealed', async () => {
    const told = await scene.told('huge');
    expect(told.snapshot.error?.code).toBe('model_output_too_large');
    expect(Buffer.byteLength(deltasOf(told.events))).toBeLessThanOrEqual(2048);
    expect(told.brackets.map(({ outcome }) => outcome)).toEqual(['failed']);
    expect(scene.timesAsked('huge')).toBe(1);
  });

  it('an endless loop of calls ends with turn_limit_exceeded', async () => {
    const told = await scene.told('endless');
    expect(told.snapshot.error?.code).toBe('turn_limit_exceeded');
    expect(payloads(told, 'agent.toolCalled').length).toBe(64);
    expect(told.brackets.map(({ outcome }) => outcome)).toEqual(['failed']);
  });
}

function closesItsSocket(scene: Scene): void {
  it('architecture §4 cancel while the model streams closes its socket; shown text is sealed, the run cancelled', async () => {
    const { journey, server } = scene;
    const runId = await scene.start('cancelled');
    await until(
      async () => (await journey.rows(runId)).some(({ type }) => type.endsWith('.delta')),
      'the agent speaks',
    );
    const before = server.aborted();
    expect((await journey.host.api(`/v1/runs/${runId}/cancel`, { body: {} })).status).toBe(200);
    await until(() => server.aborted() > before, 'the socket is closed');
    const told = await journey.told(runId);
    expect(told.snapshot.status).toBe('cancelled');
    expect(told.types.slice(-5)).toEqual([
      'agent.reasoning.delta',
      'agent.reasoned',
      'agent.invocation.completed',
      'node.cancelled',
      'run.cancelled',
    ]);
    expect(deltasOf(told.events)).toMatch(new RegExp(`^(${PIECE})+$`));
    expect(scene.timesAsked('cancelled')).toBe(1);
  });
}

function leavesOrder(scene: Scene): void {
  it('architecture §8 the invariants hold of every run; nothing unclear was paid, no log line has the key, no request broke the rules', async () => {
    const { journey, server } = scene;
    await checkInvariants(journey.host, journey.runs);
    const paid = (await journey.refunds()).map(({ amountCents }) => amountCents);
    expect(NEVER_PAID.filter((amount) => paid.includes(amount))).toEqual([]);
    expect(journey.host.logs.join('\n')).not.toContain(CANARY);
    expect(server.refused).toEqual([]);
  });
}
