// src/opensentience/session/call-outcomes.ts: what a result, or its error, says of a call (seed 004 §3.3, §4.3.3).
import { describe, expect, it } from 'vitest';
import { errorOfTool, ToolError } from '../../../src/agent-sdk/errors.ts';
import type { JsonMap, ProtocolError } from '../../../src/opensentience/messages.ts';
import { Desk, IDS, T0, told } from '../../support/opensentience/call-desk.ts';
import { CANARY, message } from '../../support/opensentience/wire.ts';

describe('seed 004 §4.3.3: what a result means', () => {
  // [I99] What is not final is unknown: of a tool with effects it goes into doubt.
  const failures: readonly [string, ProtocolError | undefined, string, string?][] = [
    ['an error of the tool’s own', { code: 'notes.locked', message: '' }, 'tool_failed sent final'],
    ['no error', undefined, 'tool_failed sent', 'tool_failed sent final'],
    [
      'one that may be asked again',
      { code: 'notes.busy', message: '', retryable: true },
      'tool_failed sent',
    ],
    [
      'tool.invalid_input',
      { code: 'tool.invalid_input', message: '' },
      'tool_invalid_input sent final',
    ],
    [
      'tool.input_too_large',
      { code: 'tool.input_too_large', message: '' },
      'payload_too_large sent final',
    ],
    ['tool.not_found', { code: 'tool.not_found', message: '' }, 'tool_not_found sent final'],
    [
      'tool.timeout',
      { code: 'tool.timeout', message: '' },
      'tool_timeout sent',
      'tool_timeout sent final',
    ],
    [
      'tool.canceled',
      { code: 'tool.canceled', message: '', details: { stopped: false } },
      'tool_failed sent',
      'tool_failed sent final',
    ],
    [
      'a throw that nobody foresaw',
      errorOfTool(new TypeError('fetch failed')),
      'tool_failed sent',
      'tool_failed sent final',
    ],
    [
      'a throw of the tool’s own',
      errorOfTool(new ToolError('notes.locked', 'It is locked.')),
      'tool_failed sent final',
    ],
    [
      'a code of the protocol’s that is not known',
      { code: 'tool.crashed', message: '' },
      'tool_failed sent',
      'tool_failed sent final',
    ],
    [
      'tool.invalid_output',
      { code: 'tool.invalid_output', message: '' },
      'tool_invalid_output sent final happened',
    ],
    [
      'tool.output_too_large',
      { code: 'tool.output_too_large', message: '' },
      'payload_too_large sent final happened',
    ],
    ['tool.overloaded: not now', { code: 'tool.overloaded', message: '' }, 'rate_limited sent'],
    [
      'protocol.draining: not now',
      { code: 'protocol.draining', message: '' },
      'agent_unavailable sent',
    ],
    [
      'a code that is no code',
      { code: `Oh no ${CANARY}`, message: '' },
      'tool_failed sent',
      'tool_failed sent final',
    ],
    [
      'a code that an object has',
      { code: 'constructor', message: '' },
      'tool_failed sent',
      'tool_failed sent final',
    ],
  ];
  for (const [what, error, expected, ofReader = expected] of failures)
    for (const [kind, sideEffects, outcome] of [
      ['a tool with effects', true, expected],
      ['a tool that reads', false, ofReader],
    ] as const)
      it(`${kind} failed, ${what}: ${outcome}`, () => {
        const desk = new Desk();
        desk.add('a', { sideEffects });
        desk.effects = [];
        desk.result('a', { status: 'failed', ...(error && { error }) });
        expect(told(desk.outcome())).toBe(outcome);
        expect(JSON.stringify(desk.effects)).not.toContain(CANARY);
      });
  it('canceled by nobody’s wish, with a code of the tool’s own: it says how it ended', () => {
    const desk = new Desk();
    desk.add('a');
    desk.effects = [];
    desk.result('a', { status: 'canceled', error: { code: 'notes.undone', message: 'undone' } });
    expect(told(desk.outcome())).toBe('tool_failed sent final');
  });
  for (const [code, expected] of [
    ['notes.locked', 'tool_failed sent'],
    ['tool.not_found', 'tool_not_found sent final'],
  ] as const)
    it(`an error in the place of a result, ${code}: ${expected}`, () => {
      const desk = new Desk();
      desk.add('a');
      desk.effects = [];
      desk.calls.onError('m-a', { code, message: '' }, T0);
      expect(told(desk.outcome())).toBe(expected);
    });
  it('the agent’s words are redacted and bounded', () => {
    const desk = new Desk();
    desk.add('a');
    desk.effects = [];
    desk.result('a', {
      status: 'failed',
      error: { code: 'notes.locked', message: `${CANARY} `.repeat(1_000) },
    });
    const { reason, agentCode } = desk.outcome().details;
    expect(agentCode).toBe('notes.locked');
    expect(reason).not.toContain(CANARY);
    expect((reason as string).length).toBeLessThanOrEqual(2_000);
  });
  it('an error at the top level counts where the payload has none (§3.3)', () => {
    const desk = new Desk();
    desk.add('a');
    desk.effects = [];
    const payload = { call_id: 'a', status: 'failed' as const };
    const error = { code: 'tool.overloaded', message: 'later' };
    desk.calls.onResult(message('agent.tool.result', payload, { ...IDS, error }), T0);
    expect(desk.outcome().code).toBe('rate_limited');
  });
  it('an output that breaks its schema or its limit is final: the tool has had its effect', () => {
    for (const [more, output, code] of [
      [{}, { n: 'one' }, 'tool_invalid_output'],
      [{ maxOutputBytes: 10 }, { n: 1, text: 'xxxxxxxxx' }, 'payload_too_large'],
    ] as const) {
      const desk = new Desk();
      desk.add('a', more);
      desk.effects = [];
      desk.result('a', { output });
      expect(told(desk.outcome())).toBe(`${code} sent final happened`);
      expect(desk.said()[0]).toBe('call.refused_output');
    }
  });
  it('[I103] an output with a number that cannot be kept exactly is refused at its place', () => {
    const desk = new Desk();
    desk.add('a');
    desk.effects = [];
    desk.result('a', { output: { order: { id: NaN } } });
    expect(told(desk.outcome())).toBe('tool_invalid_output sent final happened');
    expect(desk.outcome()).toMatchObject({
      details: {
        pointer: '/order/id',
        reason: expect.stringContaining('/order/id is a number that cannot be kept') as unknown,
      },
    });
  });
  it('[I103] an output with a member named __proto__ is refused', () => {
    const desk = new Desk();
    desk.add('a');
    desk.effects = [];
    desk.result('a', { output: JSON.parse('{"a":[{"__proto__":{}}]}') as JsonMap });
    expect(desk.outcome()).toMatchObject({ details: { pointer: '/a/0/__proto__', final: true } });
  });
  it('§7.2: the output is redacted', () => {
    const desk = new Desk();
    desk.add('a');
    desk.effects = [];
    desk.result('a', { output: { text: `it is ${CANARY}` } });
    expect(desk.effects[0]).toMatchObject({
      outcome: { ok: true, output: { text: 'it is [REDACTED:canary]' } },
    });
  });
});
