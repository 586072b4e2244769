// What the commands say of models: whom agents ask, and whether each endpoint answers.
import { expect, test } from 'vitest';
import { sayModels } from '../../src/app/model-lines.ts';
import type { EndpointState } from '../../src/ports/models.ts';

async function linesOf(state: EndpointState | undefined): Promise<string[]> {
  const lines: string[] = [];
  const endpoint = { provider: 'openai', models: ['m', 'c'], check: async () => state! };
  const models = { endpoints: () => (state ? [endpoint] : []) };
  await sayModels({ models, say: (line) => void lines.push(line.replace(/ {2,}/, ': ')) });
  return lines;
}

test.each<[EndpointState, string]>([
  [{ kind: 'answers', count: 12, missing: [] }, 'answers (12 models; m, c are among them)'],
  [{ kind: 'answers', count: 1, missing: ['c'] }, 'answers (1 model; c is not among them)'],
  [{ kind: 'refuses', status: 401, said: '' }, 'refuses the key (401)'],
  [
    { kind: 'refuses', status: 401, said: 'No such \u001b[2Jkey.' },
    'refuses the key (401): No such \\u001b[2Jkey.',
  ],
  [{ kind: 'refuses', status: 404, said: '' }, 'answers, but not with its models (404)'],
  [{ kind: 'silent' }, 'does not answer'],
])('%j: one line', async (state, text) => {
  expect(await linesOf(state)).toEqual(['Models: openai (m, c)', `Endpoint: openai ${text}`]);
});

test('of several providers the first is asked; none is promised to follow where it fails', async () => {
  const lines: string[] = [];
  const check = async (): Promise<EndpointState> => ({ kind: 'silent' });
  const endpoints = ['anthropic', 'openai'].map((provider) => ({ provider, models: ['m'], check }));
  await sayModels({ models: { endpoints: () => endpoints }, say: (line) => void lines.push(line) });
  expect(lines[0]).toMatch(/^Models +anthropic \(m\); for runs that name it openai \(m\)$/);
});

test('no provider: agents play their scripts', async () => {
  expect(await linesOf(undefined)).toEqual(['Models: scripted: no endpoint is asked']);
});
