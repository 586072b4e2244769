// Words that a fork's source was given (architecture §5, I91): none has a call performed in the fork.
import { expect, test } from 'vitest';
import { INHERITED_EPOCH } from '../../src/rules/run-input.ts';
import { subjectOf } from '../../src/rules/subject.ts';
import type { ToolCall } from '../../workflows/agent-work.ts';
import { dropWords, withoutWord } from '../../workflows/former-words.ts';
import type { Interrupt, RunState } from '../../workflows/frames.ts';
import type { StepRequest } from '../../workflows/steps.ts';

const WORDS = [
  { kind: 'perform', epoch: 3 },
  { kind: 'skip', reason: 'no' },
  { kind: 'happened', outcome: 1 },
] as const;

// [I91]
test('a frame keeps none that performs, and no epoch of another ledger', () => {
  const doubt = { effectId: 'eff-1', reason: 'it broke' };
  const shown = (['eff-2', 'eff-3'] as const).map((effectId) => ({
    ...{ effectId, epoch: 1, why: 'attempt' as const },
  }));
  const calls: Partial<ToolCall>[] = [
    ...WORDS.map((resolution) => ({ resolution })),
    { doubt: { ...doubt, epoch: 3 } },
    { doubt: { ...doubt } },
    { doubt: { ...doubt, shown } },
  ];
  const state = {
    frames: { n: { data: { invocation: { calls } } }, other: { data: {} } },
    interrupts: {},
  };
  dropWords(state as unknown as RunState);
  expect(calls).toEqual([
    ...[{}, { resolution: WORDS[1] }, { resolution: WORDS[2] }],
    { doubt: { ...doubt, epoch: INHERITED_EPOCH } },
    { doubt },
    { doubt: { ...doubt, askedAbout: 2 } },
  ]);
});

// [I91]
test('an answer that its frame has not taken yet is marked, and one that is open stays so', () => {
  const resolvedBy = subjectOf('session', 'default', 'somebody');
  const resolution = { value: { action: 'accept' }, resolvedBy, key: 'k' };
  const interrupts: Record<string, Partial<Interrupt>> = {
    answered: { resolution },
    over: { resolution: 'timeout' },
    open: {},
  };
  dropWords({ frames: {}, interrupts } as unknown as RunState);
  expect(interrupts).toEqual({
    ...{ answered: { resolution: { ...resolution, isRecorded: true } } },
    ...{ over: { resolution: 'timeout' }, open: {} },
  });
});

// [I91]
test.each(WORDS)('a step that is begun again has no word that performs: $kind', (resolution) => {
  const request = { step: 'call', input: { agentId: 'a', resolution } };
  const again = withoutWord(request as unknown as StepRequest<'callTool'>);
  const isKept = resolution.kind !== 'perform';
  expect(again).toEqual({
    ...{ step: 'call', input: { agentId: 'a', ...(isKept ? { resolution } : {}) } },
  });
});
