// JSON logs: one object per line, with fields, without secrets.
import { describe, expect, it } from 'vitest';
import { createLogger } from '../../src/app/logger.ts';

function logged(fields: Record<string, unknown>): Record<string, unknown> {
  const lines: string[] = [];
  createLogger({ level: 'debug', write: (line) => lines.push(line) }).info('it happened', fields);
  expect(lines).toHaveLength(1);
  return JSON.parse(lines[0] as string) as Record<string, unknown>;
}

describe('a log line', () => {
  it('is one JSON object with time, level, message and fields', () => {
    expect(logged({ runId: 'run-1' })).toMatchObject({
      level: 'info',
      message: 'it happened',
      runId: 'run-1',
    });
  });

  it.each([
    'authorization',
    'apiKey',
    'api_key',
    'cookie',
    'password',
    'clientSecret',
    'pageToken',
  ])('never has the field %s', (name) => {
    expect(logged({ [name]: 'hunter2' })).not.toHaveProperty(name);
  });

  it('writes an error with code, stack and cause', () => {
    const error = Object.assign(new Error('outer', { cause: new Error('inner') }), {
      code: 'not_found',
    });
    expect(logged({ error })).toMatchObject({
      error: { code: 'not_found', cause: { message: 'inner' } },
    });
  });

  it('survives values that are not JSON, and cuts long ones', () => {
    const ring: Record<string, unknown> = {};
    ring.self = ring;
    const line = logged({ ring, big: 10n, long: 'x'.repeat(100_000) });
    expect(line).toMatchObject({ ring: '(not JSON)', big: '10' });
    expect((line.long as string).length).toBeLessThan(5_000);
  });

  it('below the level is not written', () => {
    const lines: string[] = [];
    const logger = createLogger({ level: 'warn', write: (line) => lines.push(line) });
    logger.debug('a');
    logger.info('b');
    logger.warn('c');
    logger.error('d');
    expect(lines.map((line) => (JSON.parse(line) as { message: string }).message)).toEqual([
      'c',
      'd',
    ]);
  });
});
