// The journeys of agents on a model that is asked over a network, alike for every provider: the refund desk on an endpoint
// that the test serves, with real sockets, streamed reasoning, calls, decisions, and each way in which a run can go on or
// end. What each failing body comes to is held at the adapters (test/adapters/models-*.test.ts).
import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Environment } from '../../src/app/config.ts';
import { GET_ORDER, REFUND_ORDER } from '../../src/demo/order-tools.ts';
import type { JsonObject } from '../../src/rules/json.ts';
import { until } from '../support/host.ts';
import { checkInvariants } from '../support/invariants.ts';
import { sharedDatabase } from '../support/shared-postgres.ts';
import { deltasOf, payloadOf, shapeOf, textOf } from './brackets.ts';
import { Journey, waiting, type Told } from './journey.ts';
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
  decidingBeside(pieces: readonly string[], final: unknown, call: ToolCall): EndpointAnswer;
  empty(): EndpointAnswer;
  refusing(pieces: readonly string[]): EndpointAnswer;
  /** What `refusing` comes to in `envelope.refusal`. */
  refusalText(pieces: readonly string[]): string;
  /** Says the pieces, then closes the connection. */
  dropping(...pieces: string[]): EndpointAnswer;
  /** Begins an answer, and says a piece again and again. */
  talking(piece: string, everyMs: number): EndpointAnswer;
  /** 429 with Retry-After. */
  busy(seconds: number): EndpointAnswer;
  /** 401, and a message that repeats the key. */
  rejectingKey(message: string): EndpointAnswer;
  /** The last results of tools in a request: the id of each call as the conversation has it, and the text. */
  resultsIn(body: Body): readonly { callId: string; text: string }[];
}

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
const pays = (amountCents: number, reason = 'So it is.'): ToolCall => ({
  toolId: REFUND_ORDER,
  arguments: { orderId: 'A-1007', amountCents, reason },
});
/** What is said of a key that an endpoint refuses and repeats. */
const REJECTED = /HTTP 401: .*Incorrect API key provided: \[REDACTED/;
/** What no answer may have paid. */
const NEVER_PAID = 2;
/** What is paid, once each, after too much at once. */
const PAID_AFTER = { large: 501, many: 502 } as const;

/** Answers of each run by the tag in its customer's message, in the order of asking; the last one for ever. */
function answersOf(
  by: JourneyEndpoint,
  held: Promise<unknown>,
): Readonly<Record<string, readonly EndpointAnswer[]>> {
  const declines = (tag: string) => by.deciding(SPEECH, final(tag, 'decline', 0.9));
  const sure = (tag: string) => by.deciding(SPEECH, final(tag, 'refund', 0.9));
  const paysLarge = by.callingTools(['I pay. '], [pays(NEVER_PAID, 'x'.repeat(40_000))]);
  const paysOften = by.callingTools(['I pay. '], Array<ToolCall>(40).fill(pays(NEVER_PAID)));
  const receipt = { decision: { status: 'refunded', refundId: 'R-1' }, confidence: 0.95 };
  const paid = (amountCents: number) => [
    by.callingTools(['I pay. '], [pays(amountCents)]),
    by.deciding(['Paid. '], receipt),
  ];
  const readsFirst = by.callingTools(['I need ', 'to read ', 'the order. '], [reads]);
  return {
    desk: [readsFirst, by.deciding(SPEECH, final('desk', 'refund', 0.55)), ...paid(6490)],
    held: [by.deciding(SPEECH, final('held', 'decline', 0.9), held)],
    busy: [by.busy(1), declines('busy')],
    dropped: [by.dropping(SPEECH[0] ?? '', SPEECH[1] ?? ''), declines('dropped')],
    refusal: [by.refusing(['I will ', 'not.'])],
    repaired: [
      by.deciding(['Hm. '], '{"decision": {"action": '),
      by.deciding(['Hm, hm. '], '{"decision": {"action": "perhaps"}}'),
      declines('repaired'),
    ],
    unclear: [
      by.empty(),
      by.decidingBeside(['Hm. '], final('unclear', 'refund', 0.9), pays(NEVER_PAID)),
      declines('unclear'),
    ],
    large: [sure('large'), paysLarge, ...paid(PAID_AFTER.large)],
    many: [sure('many'), paysOften, ...paid(PAID_AFTER.many)],
    alwaysLarge: [sure('alwaysLarge'), paysLarge],
    alwaysMany: [sure('alwaysMany'), paysOften],
    invalid: [by.deciding(['Hm. '], '{"verdict": 1}')],
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
    const databaseUrl = await sharedDatabase();
    const database = databaseUrl === undefined ? {} : { databaseUrl };
    this.#journey = new Journey(async () => ({ ...database, env: this.#by.env(server.url) }));
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
      tellsOfExcess(scene);
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

  it('a connection dropped in mid-stream: the next try adopts what was shown (architecture §3.5)', async () => {
    const told = await scene.told('dropped');
    expect(shapes(told)).toEqual(['SPcdRuDC']);
    expect(deltasOf(told.events).trim()).toBe(SPEECH.join('').trim());
    expect(scene.timesAsked('dropped')).toBe(2);
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

  it("a key that is not accepted: not tried again; the endpoint's words are in the error and in one line of the log, without the key", async () => {
    const told = await scene.told('rejected');
    expect(told.snapshot.error?.code).toBe('model_rejected_request');
    expect(told.snapshot.error?.message).toMatch(REJECTED);
    // The SDK's own line of it is for debugging.
    const said = scene.journey.host.logs.filter((line) => REJECTED.test(line));
    const lines = said.filter((line) => !line.includes('"level":"debug"'));
    expect(lines).toHaveLength(1);
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

  it('an empty answer, then a decision beside a call: no call is performed, and the model is asked again', async () => {
    const told = await scene.told('unclear');
    expect(told.snapshot.status).toBe('completed');
    expect(shapes(told)).toEqual(['SPcRudRudRuDC']);
    expect(told.types).not.toContain('agent.toolCalled');
    expect(scene.timesAsked('unclear')).toBe(3);
    expect(JSON.stringify(scene.asked.get('unclear')?.[2])).toContain('beside calls of tools');
  });
}

function tellsOfExcess(scene: Scene): void {
  it.each([
    ['large', 'bytes; at most 32768 are permitted. No tool was called.'],
    ['many', 'There were 40 calls of tools in one turn; at most 32 are permitted. No tool was'],
  ] as const)(
    '[I54] %s, then one call as permitted: the model is told, and the refund is made once',
    async (tag, words) => {
      const told = await scene.told(tag);
      expect(told.snapshot).toMatchObject({
        status: 'completed',
        outputs: { receipt: { status: 'refunded' } },
      });
      expect(payloads(told, 'agent.toolCalled')).toHaveLength(1);
      const paid = (await scene.journey.refunds()).map(({ amountCents }) => amountCents);
      expect(paid.filter((amountCents) => amountCents === PAID_AFTER[tag])).toHaveLength(1);
      const sent = (scene.asked.get(tag) ?? []).map((body) => JSON.stringify(body));
      expect(sent.map((body) => body.includes(words))).toEqual([false, false, true, true]);
      expect(sent.at(-1)?.length).toBeLessThan(80_000);
    },
  );

  it.each([
    ['alwaysLarge', 'payload_too_large'],
    ['alwaysMany', 'tool_call_limit_exceeded'],
  ])('%s: told once, then the run fails with %s', async (tag, code) => {
    const told = await scene.told(tag);
    expect(told.snapshot).toMatchObject({ status: 'failed', error: { code } });
    expect(told.brackets.map(({ outcome }) => outcome)).toEqual(['handed-off', 'failed']);
    expect(told.types).not.toContain('agent.toolCalled');
    expect(scene.timesAsked(tag)).toBe(3);
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
    expect(paid).not.toContain(NEVER_PAID);
    expect(journey.host.logs.join('\n')).not.toContain(CANARY);
    expect(server.refused).toEqual([]);
  });
}
