// tellReasoning: a text that is known whole is told in pieces, as a model's reasoning is (RFC 0024): live deltas, each
// piece one of them, and the closing event. Of agents that are scripted node by node (RFC 0023), in test mode.
import type { StepResult } from '../src/rules/journal.ts';
import type { RedactorStream } from '../src/rules/redaction.ts';
import type { TellReasoningInput, TellReasoningOutput } from './contract.ts';
import { beating } from './heartbeat.ts';
import type { ActivityPorts } from './ports.ts';
import { openReasoning, reasonedEvent } from './reasoning-writer.ts';

/** What holds no secret as a whole holds none in pieces: nothing of it needs to be held back. */
const asItIs: RedactorStream = { push: (piece) => piece, end: () => '', cut: () => '' };

export async function tellReasoning(
  ports: ActivityPorts,
  input: TellReasoningInput,
): Promise<StepResult<TellReasoningOutput>> {
  return beating(async () => {
    const { agentId, chunks, verbosity, context, causedBy } = input;
    const whole = chunks.join('');
    const isClean = ports.redactor.text(whole) === whole;
    const speaker = { agent: { agentId }, context, verbosity };
    const live = await openReasoning(ports, speaker, isClean ? asItIs : ports.redactor.stream());
    try {
      for (const chunk of chunks) live.push(chunk);
      const deltas = await live.close();
      const reasoned = reasonedEvent({ agentId, context }, verbosity, live.text);
      return {
        output: { told: true },
        events: [{ ...reasoned, causedBy }],
        ...(deltas ? { deltas } : {}),
      };
    } catch (error) {
      await live.abandon();
      throw error;
    }
  });
}
