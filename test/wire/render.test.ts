// A stored row as the wire shows it, and the one table of twin names (run-event.schema.json; architecture §9).
import { describe, expect, test } from 'vitest';
import type { LogRow } from '../../src/ports/log.ts';
import { EVENT_TYPES } from '../../src/rules/events.ts';
import { renderEventText } from '../../src/wire/render.ts';
import { shownEvent } from '../support/shown-event.ts';
import { validateEvent } from '../../src/wire/validators.ts';

const row = (type: string, payload: string, more: Partial<LogRow> = {}): LogRow => ({
  ...{
    runId: 'run-1',
    sequence: 3,
    eventId: 'evt-1',
    key: 'k',
    type,
    payload,
    timestampMs: 1_700_000_000_123,
  },
  ...more,
});

const TWIN_CASES: Record<string, { stored: object; added: object }> = {
  'agent.toolCalled': {
    stored: { agentId: 'core.a', toolName: 'core:clock', callId: 'c', inputs: { x: 1 } },
    added: { toolId: 'core:clock', arguments: { x: 1 } },
  },
  'agent.toolReturned': {
    stored: { agentId: 'core.a', toolName: 'core:clock', callId: 'c', outcome: null, status: 'ok' },
    added: { toolId: 'core:clock', result: null },
  },
  'agent.handoff': {
    stored: { fromAgentId: 'core.a', toAgentId: 'core.b' },
    added: { from: { agentId: 'core.a' }, to: { agentId: 'core.b' } },
  },
};

describe('architecture §9 twin names', () => {
  test('the table has these types and no other', () => {
    // Beside them fields may be shown in another form under their own name (test/rules/subject).
    const named = Object.entries(EVENT_TYPES).filter(([, { twins }]) =>
      twins.some(({ from, to }) => from !== to),
    );
    expect(named.map(([type]) => type).sort()).toEqual(Object.keys(TWIN_CASES).sort());
  });

  test.each(Object.entries(TWIN_CASES))(
    '%s is shown under both names and stays valid',
    (type, { stored, added }) => {
      const doc = shownEvent(row(type, JSON.stringify(stored), { nodeId: 'n' }));
      expect(doc.payload).toEqual({ ...stored, ...added });
      expect(validateEvent(doc)).toMatchObject({ ok: true });
    },
  );

  test('the error of a tool has code and error', () => {
    const stored = {
      agentId: 'core.a',
      toolName: 't',
      callId: 'c',
      error: { code: 'tool_failed', message: 'm' },
    };
    const doc = shownEvent(row('agent.toolReturned', JSON.stringify(stored)));
    expect(doc.payload).toEqual({
      ...stored,
      toolId: 't',
      error: { code: 'tool_failed', message: 'm', error: 'tool_failed' },
    });
    expect(validateEvent(doc)).toMatchObject({ ok: true });
  });

  test('a twin that is stored already stays, and absent names get none', () => {
    const stored = { agentId: 'core.a', toolName: 't', toolId: 'own', callId: 'c' };
    expect(shownEvent(row('agent.toolCalled', JSON.stringify(stored))).payload).toEqual(stored);
  });
});

describe('run-event.schema.json: the envelope', () => {
  test('has exactly the ten fields', () => {
    const doc = shownEvent(
      row('variable.changed', '{"name":"v","next":"m"}', { nodeId: 'n', causationId: 'evt-0' }),
    );
    expect(doc).toEqual({
      ...{
        eventId: 'evt-1',
        runId: 'run-1',
        type: 'variable.changed',
        payload: { name: 'v', next: 'm' },
      },
      ...{ timestamp: '2023-11-14T22:13:20.123Z', sequence: 3, nodeId: 'n', causationId: 'evt-0' },
      ...{ schemaVersion: 1, engineVersion: '1' },
    });
    expect(validateEvent(doc)).toMatchObject({ ok: true });
  });

  test('leaves out nodeId and causationId where there is none', () => {
    expect(Object.keys(shownEvent(row('run.completed', '{}')))).not.toContain('nodeId');
    expect(Object.keys(shownEvent(row('run.completed', '{}')))).not.toContain('causationId');
  });

  // [I97]
  test.each([9e15, -9e15, Number.NaN])('says of %d, which is no time, that it is none', (time) => {
    const doc = shownEvent(row('run.completed', '{}', { timestampMs: time }));
    expect(doc).toMatchObject({
      timestamp: '1970-01-01T00:00:00.000Z',
      unreadable: { code: 'history_undecodable' },
    });
    expect(validateEvent(doc)).toMatchObject({ ok: true });
  });

  test('keeps a payload without twins byte for byte', () => {
    const payload = '{"b":1.0,"a":{"10":1,"2":[]},"u":"\\u00e9"}';
    expect(renderEventText(row('run.completed', payload))).toContain(`"payload":${payload},`);
  });

  test('is one line', () => {
    const text = renderEventText(
      row('variable.changed', JSON.stringify({ name: 'v', next: 'a\nb\r\u2028' })),
    );
    expect(text).not.toMatch(/[\n\r]/);
  });

  test.each([
    [128, 128],
    [129, 71],
  ])('a nodeId of %i characters is shown with %i', (length, shown) => {
    const doc = shownEvent(row('run.completed', '{}', { nodeId: 'n'.repeat(length) }));
    expect(doc.nodeId).toHaveLength(shown);
    expect(validateEvent(doc)).toMatchObject({ ok: true });
  });
});
