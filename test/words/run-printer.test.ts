// A run's events as lines of a terminal: nothing twice, and nothing behind the last word.
import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/rules/json.ts';
import { createRunPrinter } from '../../src/words/run-printer.ts';

function printed(type: string, payload: JsonObject): string {
  let text = '';
  const printer = createRunPrinter((piece) => void (text += piece));
  printer.print([{ sequence: 7, type, nodeId: 'pay', payload }]);
  return text;
}

describe('a line of the log', () => {
  it('ends with its last word', () => {
    expect(printed('node.started', {})).toMatch(/^ {5}7 {2}node\.started +\[pay\]\n$/);
  });

  it('names a tool once, and both of its names where they differ', () => {
    const line = (toolName: string): string =>
      printed('agent.toolCalled', { toolId: 'shop/pay', toolName });
    expect(line('shop/pay')).toMatch(/\[pay\] toolId=shop\/pay\n$/);
    expect(line('Pay')).toMatch(/\[pay\] toolId=shop\/pay toolName=Pay\n$/);
  });

  it('shows why a run ended whole, and cuts what is said on the way', () => {
    const error = { code: 'model_rejected_request', message: `${'x'.repeat(500)} the end` };
    expect(printed('run.failed', { error })).toContain('the end');
    expect(printed('node.failed', { error })).toMatch(/x…\n$/);
  });
});
