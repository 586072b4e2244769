// What endpoints say when they refuse, in the shapes that their families have for it: shape → the sentence for a person,
// the names of the fault, and the status that an error without one has.
import { describe, expect, test } from 'vitest';
import {
  statusOfError,
  wordsIn,
  wordsOf,
  type Words,
} from '../../src/adapters/models/endpoint/refusal-words.ts';

function said(body: unknown, headers: Record<string, string> = {}): Words {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return wordsIn(text, new Headers(headers));
}

const SCHEMA = "Invalid schema for function 'look': object schema missing properties.";

describe('a refusal in the words of its family', () => {
  test.each<[family: string, body: unknown, words: Words]>([
    [
      'OpenAI',
      {
        error: {
          message: SCHEMA,
          type: 'invalid_request_error',
          param: 'tools[0].function.parameters',
          code: 'invalid_function_parameters',
        },
      },
      {
        text: SCHEMA,
        code: 'invalid_function_parameters',
        type: 'invalid_request_error',
        param: 'tools[0].function.parameters',
      },
    ],
    [
      'Azure: the filter',
      {
        error: {
          message: 'The response was filtered.',
          code: 'content_filter',
          status: 400,
          innererror: { code: 'ResponsibleAIPolicyViolation' },
        },
      },
      { text: 'The response was filtered.', code: 'content_filter' },
    ],
    [
      'Azure: no such deployment',
      { error: { code: 'DeploymentNotFound', message: 'No such deployment.' } },
      { text: 'No such deployment.', code: 'DeploymentNotFound' },
    ],
    ['Azure: its door', { statusCode: 401, message: 'Access denied.' }, { text: 'Access denied.' }],
    [
      'Anthropic',
      { type: 'error', error: { type: 'not_found_error', message: 'model: x' }, request_id: 'r' },
      { text: 'model: x', type: 'not_found_error' },
    ],
    [
      'Gemini: a list',
      [{ error: { code: 400, message: 'Unknown name "strict".', status: 'INVALID_ARGUMENT' } }],
      { text: 'Unknown name "strict".', type: 'INVALID_ARGUMENT' },
    ],
    [
      'Mistral: a sentence',
      { object: 'error', message: 'Invalid model: x', type: 'invalid_model', code: '1500' },
      { text: 'Invalid model: x', type: 'invalid_model' },
    ],
    [
      'Mistral: what was sent is not repeated',
      {
        object: 'error',
        message: {
          detail: [
            {
              type: 'extra_forbidden',
              loc: ['body', 'stream_options'],
              msg: 'Extra inputs are not permitted',
              input: { secret: 'of the conversation' },
            },
          ],
        },
      },
      {
        text: 'body.stream_options: Extra inputs are not permitted',
        type: 'extra_forbidden',
        param: 'body.stream_options',
      },
    ],
    [
      'FastAPI: three faults of five, each with its place',
      {
        detail: Array.from({ length: 5 }, (_, at) => ({
          loc: ['body', 'tools', at],
          msg: 'field required',
        })),
      },
      {
        text: 'body.tools.0: field required; body.tools.1: field required; body.tools.2: field required',
        param: 'body.tools.0',
      },
    ],
    ['FastAPI: a sentence', { detail: 'Not Found' }, { text: 'Not Found' }],
    [
      'Databricks',
      { error_code: 'BAD_REQUEST', message: 'Bad request: tools' },
      { text: 'Bad request: tools', code: 'BAD_REQUEST' },
    ],
    [
      'vLLM, older',
      { object: 'error', message: 'Too long.', type: 'BadRequestError', param: null, code: 400 },
      { text: 'Too long.', type: 'BadRequestError' },
    ],
    [
      'vLLM, newer',
      { error: { message: 'Too long.', type: 'BadRequestError', param: 'messages', code: 400 } },
      { text: 'Too long.', type: 'BadRequestError', param: 'messages' },
    ],
    [
      'Ollama',
      { error: 'registry.local/x does not support tools' },
      { text: 'registry.local/x does not support tools' },
    ],
    [
      'Ollama, compatible',
      { error: { message: 'model "x" not found', type: 'not_found_error', param: null } },
      { text: 'model "x" not found', type: 'not_found_error' },
    ],
    [
      'LiteLLM: what is behind it, as text',
      {
        error: {
          message: 'litellm.BadRequestError: top_k is not permitted',
          type: null,
          param: null,
          code: '400',
        },
      },
      { text: 'litellm.BadRequestError: top_k is not permitted' },
    ],
    [
      'OpenRouter: what stands behind it',
      {
        error: {
          code: 400,
          message: 'Provider returned error',
          metadata: {
            raw: '{"error":{"message":"tools.0: too long","type":"invalid_request_error"}}',
            provider_name: 'Anthropic',
          },
        },
      },
      { text: 'Provider returned error: Anthropic: tools.0: too long' },
    ],
    [
      'text generation inference',
      { error: 'Input validation error', error_type: 'validation' },
      { text: 'Input validation error' },
    ],
    [
      'problem details',
      { title: 'Bad Request', detail: 'no model', status: 400 },
      { text: 'no model' },
    ],
    [
      'a name beside a sentence',
      { status: 400, error: 'Bad Request', message: 'tools is not supported by model m' },
      { text: 'tools is not supported by model m' },
    ],
    [
      'OAuth',
      { error: 'invalid_token', error_description: 'The token expired.' },
      { text: 'The token expired.', code: 'invalid_token' },
    ],
    [
      'a yes beside a sentence',
      { error: true, message: 'invalid model', code: 400 },
      { text: 'invalid model' },
    ],
    ['a list of sentences', { errors: ['one', 'two'] }, { text: 'one; two' }],
    ['a page', '<html><head><title>502 Bad\nGateway</title>', { text: '502 Bad Gateway' }],
    ['a page without a title', '<p>Sign <b>in</b></p><script>let x</script>', { text: 'Sign in' }],
    ['a sentence', 'upstream connect error', { text: 'upstream connect error' }],
    ['nothing', '', { text: '' }],
    ['half of JSON', '{"error":', { text: '{"error":' }],
    [
      'a code alone',
      { error: { code: 'insufficient_quota' } },
      { text: '', code: 'insufficient_quota' },
    ],
  ])('%s', (_family, body, words) => {
    expect(said(body)).toEqual(words);
  });

  test('Bedrock: a message, and the fault in a header', () => {
    const headers = {
      'x-amzn-errortype': 'ValidationException:http://x/',
      'x-amzn-requestid': 'a-1',
    };
    const words = { text: 'No such model.', type: 'ValidationException', requestId: 'a-1' };
    expect(said({ message: 'No such model.' }, headers)).toEqual(words);
  });

  test('what would be hidden, or be obeyed by a terminal, is a blank', () => {
    expect(said({ message: ' a\u001b[2J\u202eb\r\n\tc\u200b ' }).text).toBe('a [2J b c');
  });

  test('what is nested deeper than a person would read, and what is endless, is bounded', () => {
    let deep: unknown = 'x';
    for (let level = 0; level < 50; level++) deep = { error: deep };
    expect(wordsOf(deep).text).toBe('');
    expect(said('y'.repeat(100_000)).text.length).toBe(8_192);
    expect(said(`<script ${'<style '.repeat(9_000)}`).text).toBe('');
  });
});

describe('the status of an error that came without one', () => {
  test.each<[unknown, number]>([
    [{ code: 429 }, 429],
    [{ code: '400' }, 400],
    [{ status: 502, code: 400 }, 502],
    [{ code: 200 }, 503],
    [{ type: 'rate_limit_error' }, 429],
    [{ status: 'RESOURCE_EXHAUSTED' }, 429],
    [{ code: 'insufficient_quota' }, 429],
    [{ type: 'ThrottlingException' }, 429],
    [{ code: 'invalid_api_key', type: 'invalid_request_error' }, 401],
    [{ type: 'authentication_error' }, 401],
    [{ type: 'billing_error' }, 402],
    [{ type: 'permission_error' }, 403],
    [{ type: 'not_found_error' }, 404],
    [{ type: 'request_too_large' }, 413],
    [{ type: 'overloaded_error' }, 529],
    [{ type: 'timeout_error' }, 504],
    [{ type: 'api_error' }, 503],
    [{ code: 'context_length_exceeded' }, 400],
    [{ type: 'error', error: { type: 'invalid_request_error' } }, 400],
    ['overloaded', 503],
    [{ error: 'overloaded' }, 529],
    [{ error: 'Unauthorized', status: 401 }, 401],
    [{ error: true, code: 400 }, 400],
    [{ error: 402 }, 402],
    [{ error: '{"error":{"code":404}}' }, 404],
    [{ error: "invalid character '<' looking for beginning of value" }, 503],
    [{ error: 'CUDA device not found: unexpected EOF' }, 503],
    [null, 503],
  ])('%j is %i', (error, status) => {
    expect(statusOfError(error)).toBe(status);
  });
});
