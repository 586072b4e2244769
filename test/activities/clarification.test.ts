// The envelope `clarification.request` in a model's output (capabilities.md): found in either place, bounded, words
// alone.
import { describe, expect, test } from 'vitest';
import { outputSchema, parseDecision } from '../../activities/decision.ts';

const envelope = (questions: unknown) => ({
  type: 'clarification.request',
  payload: { questions },
});
const SIZE = { id: 'size', question: 'Which size?' };
const parsed = (output: unknown) => parseDecision(JSON.stringify(output));

describe('clarification.request', () => {
  test.each([
    ['as the output', envelope([SIZE])],
    ['in the place of the decision', { decision: envelope([SIZE]), confidence: 1 }],
    ['with more than the words', envelope([{ ...SIZE, schema: { $ref: 'http://x' } }])],
  ])('%s', (_name, output) => {
    expect(parsed(output)).toEqual({ ok: true, kind: 'clarification', questions: [SIZE] });
  });

  test.each([
    ['no questions', envelope([])],
    ['no list', envelope('Which size?')],
    ['no payload', { type: 'clarification.request' }],
    ['a question without words', envelope([{ id: 'a', question: ' ' }])],
    ['an id twice', envelope([SIZE, SIZE])],
    ['an id that every object has', envelope([{ ...SIZE, id: '__proto__' }])],
    ['a long question', envelope([{ id: 'a', question: 'x'.repeat(2_001) }])],
    [
      'many questions',
      envelope(Array.from({ length: 11 }, (_, at) => ({ ...SIZE, id: `q${at}` }))),
    ],
  ])('%s is given back to the model', (_name, output) => {
    expect(parsed(output)).toMatchObject({
      ok: false,
      message: expect.stringContaining('payload.questions') as unknown,
    });
  });

  test.each([
    ['{"decision":{"order":9007199254740993}}', '/decision/order is a number'],
    ['So: {"decision":1e400}.', '/decision is a number'],
    ['{"decision":{"__proto__":1}}', '/decision/__proto__ is a name'],
    [`{"decision":${'['.repeat(129)}${']'.repeat(129)}}`, 'nested deeper than 128 levels'],
    ['{"decision":', 'not one JSON object'],
    ['[9007199254740993', 'not one JSON object'],
    ['{"id":9007199254740993}', '/id is a number'],
  ])('[I103] %s is given back to the model, with the place', (output, words) => {
    expect(parseDecision(output)).toEqual({
      ok: false,
      message: expect.stringContaining(words) as unknown,
    });
  });

  test('brackets in prose are no depth of the output', () => {
    const output = `${'['.repeat(130)}\nSo: {"decision":{"a":1}}`;
    expect(parseDecision(output)).toMatchObject({ kind: 'decision', decision: { a: 1 } });
  });

  test.each([
    ['{"decision":1}'],
    ['```json\n{"decision":1}\n```'],
    ['So: {"decision":1}'],
    ['{"id":"A"}\nSo:\n{"decision":1}\nThat is all {for now}.'],
    ['{"decision":1} {"decision":1}'],
    ['"{\\"decision\\":1}"'],
  ])('the one decision of a text is read: %s', (output) => {
    expect(parseDecision(output)).toEqual({ ok: true, kind: 'decision', decision: 1 });
  });

  test.each([
    ['{"decision":1}\n{"decision":2}', 'two final outputs'],
    ['{"id":"A"}', 'no member "decision"'],
    ['{"plan":{"decision":1}}', 'no member "decision"'],
    ['{"id":"A"} {"id":"B"}', 'not one JSON object'],
    ['', 'not one JSON object'],
    ['So {"decision":1} it is.', 'give it alone'],
    ['The case is {"case":7,"decision":1}.', 'not one JSON object'],
    ['{"decision":1}\n{"decision":2,}', 'cannot be read'],
  ])('of a text without one the model is told: %s', (output, words) => {
    expect(parseDecision(output)).toEqual({
      ok: false,
      message: expect.stringContaining(words) as unknown,
    });
  });

  test('a decision stays one, and the schema for the provider permits both', () => {
    expect(parsed({ decision: { type: 'refund' } })).toMatchObject({ kind: 'decision' });
    const returns = { type: 'object', properties: { a: { $ref: '#/$defs/a' } }, $defs: { a: {} } };
    expect(outputSchema(returns)).toMatchObject({
      properties: {
        decision: {
          anyOf: [
            { properties: { a: { $ref: '#/properties/decision/anyOf/0/$defs/a' } } },
            { properties: { type: { const: 'clarification.request' } } },
          ],
        },
      },
    });
  });
});
