// What is said of a question that the record of a fork's source is asked about (replay.md §Modes).
import { expect, it } from 'vitest';
import { recordedAnswers } from '../../activities/recorded-answers.ts';
import type { RecordedAnswersInput } from '../../activities/contract.ts';
import type { ActivityPorts } from '../../activities/ports.ts';

// [I73]
it('a question about a call that may be performed again stays one in the record of the fork', async () => {
  const noted: unknown[] = [];
  const noteAsks = async (...asks: unknown[]) => void noted.push(asks.slice(0, 2));
  const ports = { stores: { cohorts: { noteAsks } } } as unknown as ActivityPorts;
  const asked = {
    context: { tenant: 'default', runId: 'run-1', nodeId: 'pay' },
    ...{ interruptId: 'int-1', isLeft: true, question: { kind: 'approval', data: {} } },
  } as unknown as RecordedAnswersInput;
  const told = { interruptId: 'int-1', answers: [] };
  expect((await recordedAnswers(ports, asked)).output).toEqual(told);
  const { output } = await recordedAnswers(ports, { ...asked, mayRepeat: true });
  expect(output).toEqual({ ...told, mayRepeat: true });
  expect(noted).toEqual([1, 2].map(() => ['default', 'run-1']));
});
