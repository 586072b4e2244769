// The journeys of agents on an OpenAI-compatible endpoint as strict as the documented API, with the decision as a tool's
// arguments; a short one for each other way of asking, on endpoints that take no better one.
import { DECISION_TOOL } from '../../src/adapters/models/decision-tool.ts';
import { functionNameOf } from '../../src/adapters/models/tool-names.ts';
import {
  callChunks,
  chunk,
  callingTools,
  decisionChunks,
  deciding,
  dropping,
  failing,
  finish,
  prose,
  startOpenAiServer,
  streaming,
  type OpenAiServerOptions,
} from '../support/openai-server.ts';
import {
  modelJourneys,
  shortModelJourney,
  type EndpointAnswer,
  type JourneyEndpoint,
} from './model-journeys.ts';

const open: EndpointAnswer = (response) =>
  void response.writeHead(200, { 'content-type': 'text/event-stream' });

const named = (toolId: string, sent: string) => ({
  name: functionNameOf(toolId),
  arguments: sent,
});

/** Calls of functions by name, after the pieces, in one answer. */
const calling =
  (pieces: readonly string[], calls: Parameters<typeof callChunks>[0]): EndpointAnswer =>
  (response, body, request) =>
    streaming(prose(pieces, body), callChunks(calls), finish('tool_calls', body))(
      response,
      body,
      request,
    );

const decision = (final: unknown) => ({ name: DECISION_TOOL, arguments: JSON.stringify(final) });

function endpoint(name: string, options: OpenAiServerOptions, decide = 'tool'): JourneyEndpoint {
  return {
    name: `an OpenAI-compatible endpoint: ${name}`,
    provider: 'openai',
    env: (url) => ({ OPENAI_BASE_URL: url, OPENAI_DECISION: decide }),
    start: (answerOf) => startOpenAiServer(answerOf, { ...options, strict: true }),
    callingTools,
    deciding: (pieces, final, held) =>
      held === undefined
        ? deciding(pieces, final)
        : (response, body, request) => {
            open(response, body, request);
            response.write(prose(pieces, body));
            void held.then(() => response.end(decisionChunks(final, body)));
          },
    decidingBeside: (pieces, final, call) =>
      calling(pieces, [named(call.toolId, JSON.stringify(call.arguments)), decision(final)]),
    empty: () => (response, body, request) =>
      streaming(chunk({ role: 'assistant', content: '' }), finish('stop', body))(
        response,
        body,
        request,
      ),
    refusing: (pieces) => (response, body, request) => {
      const said = pieces.map((refusal) => chunk({ refusal }));
      streaming(...said, finish('stop', body))(response, body, request);
    },
    refusalText: (pieces) => pieces.join(''),
    dropping,
    talking: (content, everyMs) => (response, body, request) => {
      open(response, body, request);
      const timer = setInterval(() => response.write(chunk({ content })), everyMs);
      response.on('close', () => clearInterval(timer));
    },
    busy: (seconds) =>
      failing(429, { code: 'rate_limit_exceeded' }, { 'retry-after': String(seconds) }),
    rejectingKey: (message) => failing(401, { code: 'invalid_api_key', message }),
    resultsIn: ({ messages = [] }) =>
      (messages as Record<string, unknown>[])
        .filter(({ role }) => role === 'tool')
        .map(({ tool_call_id, content }) => ({
          callId: String(tool_call_id),
          text: String(content),
        })),
  };
}

modelJourneys(endpoint('the decision by its tool', {}));
shortModelJourney(endpoint('JSON by its schema', {}, 'json_schema'), 'SPcRuTtRuDC');
shortModelJourney(endpoint('JSON as text', { without: ['json_schema'] }, 'text'), 'SPcdRuTtdRuDC');
