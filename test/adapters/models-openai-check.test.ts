// Whether an OpenAI-compatible endpoint answers, by its list of models.
import { afterEach, describe, expect, test } from 'vitest';
import { checkOpenAi } from '../../src/adapters/models/openai.ts';
import { startOpenAiServer, type OpenAiServer } from '../support/openai-server.ts';

let server: OpenAiServer | undefined;
afterEach(async () => {
  await server?.stop();
  server = undefined;
});

describe('whether an endpoint answers', () => {
  const signal = new AbortController().signal;

  test('its list of models, and which of ours are not in it', async () => {
    server = await startOpenAiServer(() => undefined, { models: ['a', 'b'], key: 'k' });
    const config = { apiKey: 'k', baseUrl: server.url };
    const state = { kind: 'answers', count: 2, missing: ['c'] };
    expect(await checkOpenAi(config, ['a', 'c'], signal)).toEqual(state);
    const wrong = await checkOpenAi({ ...config, apiKey: 'other' }, ['a'], signal);
    expect(wrong).toEqual({ kind: 'refuses', status: 401, said: '' });
    expect(server.requests).toEqual([]);
  });

  test('nobody listens', async () => {
    server = await startOpenAiServer(() => undefined);
    const { url } = server;
    await server.stop();
    server = undefined;
    expect(await checkOpenAi({ baseUrl: url }, [], signal)).toEqual({ kind: 'silent' });
  });
});
