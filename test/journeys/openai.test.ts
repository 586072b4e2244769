// The refund desk on an OpenAI-compatible endpoint that the test serves: real sockets, streamed reasoning, calls and
// structured output, and every way in which an endpoint goes wrong.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GET_ORDER, REFUND_ORDER } from '../../src/demo/order-tools.ts';
import type { JsonObject } from '../../src/rules/json.ts';
import { until } from '../support/host.ts';
import { checkInvariants } from '../support/invariants.ts';
import {
  callingTools,
  chunk,
  deciding,
  dropping,
  failing,
  startOpenAiServer,
  streaming,
  type OpenAiServer,
  type ServerAnswer,
} from '../support/openai-server.ts';
import { bracketsOf, deltasOf, payloadOf, shapeOf, textOf } from './brackets.ts';
import { ended, Journey, waiting, type Told } from './journey.ts';
import { CANARY, REFUND_DESK } from './journey-workflows.ts';

const LIMIT_MS = 120_000;
const MIB = 1024 * 1024;

const reads = callingTools(
  ['I need ', 'to read ', 'the order. '],
  [{ toolId: GET_ORDER, arguments: { orderId: 'A-1007' } }],
);
const SPEECH = ['It is ', 'too ', 'late for ', 'a refund. '];
const final = (tag: string, action: 'refund' | 'decline', confidence: number): JsonObject => ({
  decision: {
    action,
    orderId: 'A-1007',
    amountCents: action === 'refund' ? 6490 : 0,
    reason: `[[${tag}]] So it is.`,
  },
  confidence,
});
const declines = (tag: string): ServerAnswer => deciding(SPEECH, final(tag, 'decline', 0.9));

/** Answers of each run by the tag in its customer's message, in the order of asking; the last one for ever. */
const ANSWERS: Readonly<Record<string, readonly ServerAnswer[]>> = {
  desk: [
    reads,
    deciding(SPEECH, final('desk', 'refund', 0.55)),
    callingTools(
      ['I pay. '],
      [
        {
          toolId: REFUND_ORDER,
          arguments: { orderId: 'A-1007', amountCents: 6490, reason: 'So it is.' },
        },
      ],
    ),
    deciding(['Paid. '], { decision: { status: 'refunded', refundId: 'R-1' }, confidence: 0.95 }),
  ],
  busy: [failing(429, { code: 'rate_limit_exceeded' }, { 'retry-after': '1' }), declines('busy')],
  dropped: [dropping(SPEECH[0] ?? '', SPEECH[1] ?? ''), declines('dropped')],
  changed: [dropping('It is ', 'another '), declines('changed')],
  page: [
    (response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<p>Busy</p>'),
    declines('page'),
  ],
  refusal: [
    streaming(chunk({ refusal: 'I will ' }), chunk({ refusal: 'not.' }), chunk({}, 'stop')),
  ],
  repaired: [
    deciding(['Hm. '], '{"decision": {"action": '),
    deciding(['Hm, hm. '], '{"decision": {"action": "perhaps"}}'),
    declines('repaired'),
  ],
  invalid: [deciding(['Hm. '], '{"verdict": 1}')],
  huge: [
    (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const piece = chunk({ content: 'x'.repeat(MIB / 2) });
      for (let said = 0; said < 20; said++) response.write(piece);
      response.end();
    },
  ],
  unknown: [
    callingTools(
      ['I try. '],
      [
        { toolId: 'demo:orders.destroy', arguments: {} },
        { toolId: REFUND_ORDER, arguments: { orderId: 'A-1007', amountCents: 1, reason: 'x' } },
      ],
    ),
    declines('unknown'),
  ],
  endless: [reads],
  cancelled: [
    (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const timer = setInterval(() => response.write(chunk({ content: 'on and ' })), 50);
      response.on('close', () => clearInterval(timer));
    },
  ],
  rejected: [
    failing(401, { code: 'invalid_api_key', message: `Incorrect API key provided: ${CANARY}` }),
  ],
};

const asked = new Map<string, Record<string, unknown>[]>();
const keys = new Map<string, string[]>();
let server: OpenAiServer;
let journey: Journey;

function answerOf(body: Record<string, unknown>, key: string): ServerAnswer | undefined {
  const tag = /\[\[(\w+)\]\]/.exec(JSON.stringify(body))?.[1] ?? '';
  const before = asked.get(tag) ?? [];
  asked.set(tag, [...before, body]);
  keys.set(tag, [...(keys.get(tag) ?? []), key]);
  const answers = ANSWERS[tag] ?? [];
  return answers[Math.min(before.length, answers.length - 1)];
}

beforeAll(async () => {
  server = await startOpenAiServer((body, _index, key) => answerOf(body, key));
  journey = new Journey(async () => ({ env: { OPENAI_BASE_URL: server.url } }));
  await journey.begin();
}, LIMIT_MS);

afterAll(async () => {
  await journey?.end();
  await server?.stop();
}, LIMIT_MS);

function start(tag: string): Promise<string> {
  return journey.run(REFUND_DESK, {
    inputs: { orderId: 'A-1007', message: `[[${tag}]] My kettle is cracked.` },
    configurable: { ai: undefined },
  });
}

const payloads = ({ events }: Pick<Told, 'events'>, type: string): JsonObject[] =>
  events.filter((event) => event.type === type).map(payloadOf);
const shapes = ({ brackets }: Told): string[] => brackets.map(shapeOf);
describe.concurrent('the refund desk on an OpenAI-compatible endpoint', () => {
  it('streams, calls tools, decides, waits for a human, pays: the same journey as with the script', async () => {
    const runId = await start('desk');
    const open = await journey.told(runId, waiting);
    expect(shapes(open)).toEqual(['SPcdRuTtdRuDC']);
    expect(payloads(open, 'agent.invocation.started')[0]).toMatchObject({
      resolvedProvider: 'openai',
    });
    expect(payloads(open, 'provider.usage')[0]).toMatchObject({
      provider: 'openai',
      model: 'served-1',
      inputTokens: 11,
      outputTokens: 7,
    });
    await journey.answer(runId, 'triage', { action: 'accept' });
    const told = await journey.told(runId);
    expect(told.brackets.map(({ outcome }) => outcome)).toEqual([
      'escalated',
      'handed-off',
      'completed',
    ]);
    expect(told.snapshot.outputs).toMatchObject({ receipt: { status: 'refunded' } });
    const [first, second] = asked.get('desk') ?? [];
    expect(first).toMatchObject({ stream: true, tool_choice: 'auto' });
    const [called] = payloads(told, 'agent.toolCalled');
    const messages = second?.messages as JsonObject[];
    expect(messages.at(-2)).toMatchObject({
      role: 'assistant',
      tool_calls: [{ id: called?.callId, type: 'function' }],
    });
    expect(messages.at(-1)).toMatchObject({ role: 'tool', tool_call_id: called?.callId });
    expect(textOf(messages.at(-1)?.content)).toContain('Glass kettle');
  });

  it('429 with Retry-After, then an answer: tried again under the same key, told once', async () => {
    const told = await journey.told(await start('busy'));
    expect(told.snapshot.status).toBe('completed');
    expect(shapes(told)).toEqual(['SPcdRuDC']);
    const sent = keys.get('busy') ?? [];
    expect([sent.length, new Set(sent).size]).toEqual([2, 1]);
  });

  it('a connection dropped in mid-stream: the next try adopts what was shown', async () => {
    const told = await journey.told(await start('dropped'));
    expect(shapes(told)).toEqual(['SPcdRuDC']);
    expect(deltasOf(told.events).trim()).toBe(SPEECH.join('').trim());
    expect(asked.get('dropped')?.length).toBe(2);
  });

  it('a next try that says something else: what was shown stays, the closing event has the truth (architecture §3.5)', async () => {
    const runId = await start('changed');
    await journey.host.waitFor(runId, ended);
    const { events } = await journey.events(runId);
    expect(bracketsOf(events).map(shapeOf)).toEqual(['SPcdRuDC']);
    expect(deltasOf(events)).toBe('It is another ');
    const [reasoned] = payloads({ events }, 'agent.reasoned');
    expect(textOf(reasoned?.reasoning).trim()).toBe(SPEECH.join('').trim());
  });

  it('a page in place of a stream is tried again', async () => {
    const told = await journey.told(await start('page'));
    expect(told.snapshot.status).toBe('completed');
    expect(asked.get('page')?.length).toBe(2);
  });

  it('RFC 0077 §F-4 a refusal: refused, envelope.refusal, the node fails with envelope_refusal, asked once', async () => {
    const told = await journey.told(await start('refusal'));
    expect(shapes(told)).toEqual(['SPcRuxC']);
    expect(told.brackets[0]?.outcome).toBe('refused');
    expect(payloads(told, 'envelope.refusal')).toMatchObject([{ refusalText: 'I will not.' }]);
    expect(payloads(told, 'node.failed')).toMatchObject([{ error: { code: 'envelope_refusal' } }]);
    expect(asked.get('refusal')?.length).toBe(1);
  });

  it('invalid JSON, then a decision against the schema, then a valid one: repaired in the same bracket', async () => {
    const told = await journey.told(await start('repaired'));
    expect(told.snapshot.status).toBe('completed');
    expect(shapes(told)).toEqual(['SPcdRudRudRuDC']);
    const [, second, third] = (asked.get('repaired') ?? []).map(({ messages }) =>
      JSON.stringify((messages as JsonObject[]).at(-1)),
    );
    expect(second).toContain('Your last output was not usable');
    expect(third).toContain('does not match the return schema');
  });

  it('always invalid: fails after the rounds of repair, cap.breached schema, bracket failed', async () => {
    const told = await journey.told(await start('invalid'));
    expect(told.snapshot).toMatchObject({
      status: 'failed',
      error: { code: 'agent_output_invalid' },
    });
    expect(payloads(told, 'cap.breached')).toMatchObject([
      { kind: 'schema', limit: 2, observed: 3 },
    ]);
    expect(told.brackets.map(({ outcome }) => outcome)).toEqual(['failed']);
    expect(asked.get('invalid')?.length).toBe(3);
  });

  it('10 MB: model_output_too_large, what was shown is bounded and sealed', async () => {
    const told = await journey.told(await start('huge'));
    expect(told.snapshot.error?.code).toBe('model_output_too_large');
    expect(Buffer.byteLength(deltasOf(told.events))).toBeLessThanOrEqual(2048);
    expect(told.brackets.map(({ outcome }) => outcome)).toEqual(['failed']);
    expect(asked.get('huge')?.length).toBe(1);
  });

  it('RFC 0077 §B step 3 a made-up tool, and one that is not on the list: refused, never called, told to the model', async () => {
    const paid = (await journey.refunds()).filter(({ amountCents }) => amountCents === 1);
    const told = await journey.told(await start('unknown'));
    expect(shapes(told)).toEqual(['SPcdRuttdRuDC']);
    expect(payloads(told, 'agent.toolReturned').map(({ status }) => status)).toEqual([
      'forbidden',
      'forbidden',
    ]);
    expect(JSON.stringify(asked.get('unknown')?.[1])).toContain('forbidden');
    expect(paid).toEqual([]);
    expect((await journey.refunds()).some(({ amountCents }) => amountCents === 1)).toBe(false);
  });

  it(
    'an endless loop of calls ends with turn_limit_exceeded',
    async () => {
      const told = await journey.told(await start('endless'));
      expect(told.snapshot.error?.code).toBe('turn_limit_exceeded');
      expect(payloads(told, 'agent.toolCalled').length).toBe(64);
      expect(told.brackets.map(({ outcome }) => outcome)).toEqual(['failed']);
    },
    LIMIT_MS,
  );

  it("a key that is not accepted: not tried again, and the endpoint's message, which repeats it, is nowhere", async () => {
    const told = await journey.told(await start('rejected'));
    expect(told.snapshot.error?.code).toBe('model_rejected_request');
    expect(asked.get('rejected')?.length).toBe(1);
    expect(JSON.stringify(told)).not.toContain(CANARY);
  });
});

describe('afterwards', () => {
  it(
    'architecture §4 cancel while the model streams closes its socket; shown text is sealed, the run cancelled',
    async () => {
      const runId = await start('cancelled');
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
      expect(deltasOf(told.events)).toMatch(/^(on and )+$/);
      expect(asked.get('cancelled')?.length).toBe(1);
    },
    LIMIT_MS,
  );

  it(
    'architecture §8 the invariants hold of every run; no log line has the key',
    async () => {
      await checkInvariants(journey.host, journey.runs);
      expect(journey.host.logs.join('\n')).not.toContain(CANARY);
      expect(server.requests.length).toBeGreaterThan(64);
    },
    LIMIT_MS,
  );
});
