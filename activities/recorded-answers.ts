// What people answered to the same question in the record of a fork's source (replay.md §Modes): read from its log and from
// what its tasks were given. Nobody is asked here, and silence is no answer.
import { shownText } from '../src/rules/cohort.ts';
import { payloadOf } from '../src/rules/damaged.ts';
import type { RecordedAnswer } from '../src/rules/heard.ts';
import type { StepResult } from '../src/rules/journal.ts';
import { answersTo, questionText } from '../src/rules/recorded-answers.ts';
import type { RecordedAnswersInput, RecordedAnswersOutput } from './contract.ts';
import { recordedRows } from './recorded-rows.ts';
import type { ActivityPorts } from './ports.ts';

export async function recordedAnswers(
  ports: ActivityPorts,
  input: RecordedAnswersInput,
): Promise<StepResult<RecordedAnswersOutput>> {
  const { interruptId, isLeft, mayRepeat } = input;
  const answers = isLeft ? [] : await found(ports, input);
  if (answers.length === 0) await noteUnanswered(ports, input);
  const asked = mayRepeat ? { interruptId, mayRepeat } : { interruptId };
  return { output: { ...asked, answers }, events: [] };
}

/** A cohort waits for nobody: it learns of what its fork asks, and ends it. */
async function noteUnanswered(
  { stores }: ActivityPorts,
  { context: { tenant, runId, nodeId }, question: { kind, data } }: RecordedAnswersInput,
): Promise<void> {
  await stores.cohorts.noteAsks(tenant, runId, { nodeId, kind, data: shownText(data) });
}

async function found(
  ports: ActivityPorts,
  { context, recordedBy, askedKey, interruptId, question }: RecordedAnswersInput,
): Promise<readonly RecordedAnswer[]> {
  const { tenant } = context;
  for await (const row of recordedRows(ports, tenant, recordedBy)) {
    if (row.key !== askedKey) continue;
    const asked = questionText(payloadOf(row));
    if (asked !== questionText(question)) return [];
    const { runId, length } = recordedBy;
    const { batches } = await ports.log.recording(ports.stores.runs.ref(tenant, runId), length);
    return answersTo(interruptId, batches);
  }
  return [];
}
