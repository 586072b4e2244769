// The journeys of agents on Anthropic's Messages API, as strict as its documents: with thoughts as the reasoning and
// without; a short one for a model that thinks by a budget, where turns that answer calls go without.
import { DECISION_TOOL } from '../../src/adapters/models/decision-tool.ts';
import { functionNameOf } from '../../src/adapters/models/tool-names.ts';
import {
  begin,
  blockDelta,
  blockStart,
  callingTools,
  end,
  errorEvent,
  failing,
  spoken,
  startAnthropicServer,
  streaming,
  toolBlock,
  using,
} from '../support/anthropic-server.ts';
import {
  modelJourneys,
  shortModelJourney,
  type EndpointAnswer,
  type JourneyEndpoint,
  type ToolCall,
} from './model-journeys.ts';
import { CANARY } from './journey-workflows.ts';
import { takes } from '../support/waiting.ts';

const OVERLOADED = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } };

const inputOf = (final: unknown): string =>
  typeof final === 'string' ? final : JSON.stringify(final);
const decision = (final: unknown) => ({ name: DECISION_TOOL, input: inputOf(final) });
const named = ({ toolId, arguments: sent }: ToolCall, cut = 0) => {
  const input = JSON.stringify(sent);
  return { name: functionNameOf(toolId), input: input.slice(0, input.length - cut) };
};

/** The beginning of an answer, whose block of text stays open. */
const open: EndpointAnswer = (response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.write(begin() + blockStart(0, { type: 'text', text: '' }));
};
const say = (text: string): string => blockDelta(0, { type: 'text_delta', text });

/** The pieces, then what is made of the request. */
const saying =
  (pieces: readonly string[], rest: string): EndpointAnswer =>
  (response, body, request) =>
    streaming(begin(), spoken(pieces, body), rest)(response, body, request);

const answers: Omit<JourneyEndpoint, 'name' | 'env'> = {
  provider: 'anthropic',
  start: (answerOf) => startAnthropicServer({ answerOf, key: CANARY }),
  callingTools,
  deciding: (pieces, final, held) =>
    held === undefined
      ? using(pieces, [decision(final)])
      : (response, body) => {
          response.writeHead(200, { 'content-type': 'text/event-stream' });
          response.write(begin() + spoken(pieces, body));
          const rest = toolBlock(1, DECISION_TOOL, inputOf(final)) + end('tool_use');
          void held.then(() => response.end(rest));
        },
  decidingTwice: (pieces, final) => using(pieces, [decision(final), decision(final)]),
  decidingBeside: (pieces, final, call) => using(pieces, [named(call), decision(final)]),
  callingByHalf: (pieces, call) => using(pieces, [named(call, 5)]),
  empty: () => streaming(begin(), end('end_turn')),
  refusing: (pieces) =>
    streaming(
      begin(),
      end('refusal', { stop_details: { type: 'refusal', explanation: pieces.join('') } }),
    ),
  refusalText: (pieces) => pieces.join(''),
  filtered: (pieces) => saying(pieces, end('refusal')),
  dropping:
    (...pieces) =>
    (response, body, request) => {
      open(response, body, request);
      const text = pieces.map(say).join('');
      response.write(text, () => void takes(100).then(() => response.destroy()));
    },
  talking: (piece, everyMs) => (response, body, request) => {
    open(response, body, request);
    const timer = setInterval(() => response.write(say(piece)), everyMs);
    response.on('close', () => clearInterval(timer));
  },
  repeating: (piece, times) => (response, body, request) => {
    open(response, body, request);
    for (let said = 0; said < times; said++) response.write(say(piece));
    response.end(end('end_turn'));
  },
  busy: (seconds) =>
    failing(429, 'rate_limit_error', { headers: { 'retry-after': String(seconds) } }),
  overloaded: () => failing(529, 'overloaded_error'),
  rejectingKey: (message) => failing(401, 'authentication_error', { message }),
  failingInside: (pieces) =>
    pieces === undefined
      ? (response) => {
          response.writeHead(200, { 'content-type': 'application/json' });
          response.end(JSON.stringify(OVERLOADED));
        }
      : saying(pieces, errorEvent('overloaded_error')),
  resultsIn: ({ messages = [] }) => {
    const turn = (messages as { content: Record<string, unknown>[] }[]).at(-1);
    return (turn?.content ?? [])
      .filter(({ type }) => type === 'tool_result')
      .map(({ tool_use_id, content }) => ({ callId: String(tool_use_id), text: String(content) }));
  },
};

function endpoint(name: string, more: Record<string, string> = {}): JourneyEndpoint {
  return {
    ...answers,
    name: `Anthropic's Messages API: ${name}`,
    env: (url) => ({
      // The key of another provider does not make it the one that is asked.
      OPENWOP_MODEL_PROVIDER: 'anthropic',
      ANTHROPIC_API_KEY: CANARY,
      ANTHROPIC_BASE_URL: url,
      ...more,
    }),
  };
}

modelJourneys(endpoint('thinking as the model sees fit'));
modelJourneys(endpoint('without thinking', { ANTHROPIC_THINKING_TOKENS: 'off' }));
shortModelJourney(
  endpoint('thinking by a budget', {
    ANTHROPIC_MODEL: 'claude-haiku-4-5',
    ANTHROPIC_THINKING_TOKENS: '2048',
  }),
  'SPcdRuTtdRuDC',
);
