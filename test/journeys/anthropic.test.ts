// The journeys of agents on Anthropic's Messages API, as strict as its documents, with thoughts as the reasoning; a short
// one without thoughts, and for a model that thinks by a budget, where turns that answer calls go without.
import { DECISION_TOOL } from '../../src/adapters/models/decision-tool.ts';
import { functionNameOf } from '../../src/adapters/models/tool-names.ts';
import {
  begin,
  blockDelta,
  blockStart,
  callingTools,
  end,
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

const inputOf = (final: unknown): string =>
  typeof final === 'string' ? final : JSON.stringify(final);
const decision = (final: unknown) => ({ name: DECISION_TOOL, input: inputOf(final) });
const named = ({ toolId, arguments: sent }: ToolCall) => ({
  name: functionNameOf(toolId),
  input: JSON.stringify(sent),
});

/** The beginning of an answer, whose block of text stays open. */
const open: EndpointAnswer = (response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.write(begin() + blockStart(0, { type: 'text', text: '' }));
};
const say = (text: string): string => blockDelta(0, { type: 'text_delta', text });

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
  decidingBeside: (pieces, final, call) => using(pieces, [named(call), decision(final)]),
  empty: () => streaming(begin(), end('end_turn')),
  refusing: (pieces) =>
    streaming(
      begin(),
      end('refusal', { stop_details: { type: 'refusal', explanation: pieces.join('') } }),
    ),
  refusalText: (pieces) => pieces.join(''),
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
  busy: (seconds) =>
    failing(429, 'rate_limit_error', { headers: { 'retry-after': String(seconds) } }),
  rejectingKey: (message) => failing(401, 'authentication_error', { message }),
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
shortModelJourney(
  endpoint('without thinking', { ANTHROPIC_THINKING_TOKENS: 'off' }),
  'SPcdRuTtdRuDC',
);
shortModelJourney(
  endpoint('thinking by a budget', {
    ANTHROPIC_MODEL: 'claude-haiku-4-5',
    ANTHROPIC_THINKING_TOKENS: '2048',
  }),
  'SPcdRuTtdRuDC',
);
