// Reasoning of one model call as it comes (RFC 0024, architecture §3.5): live deltas, bounded by verbosity, and the
// whole text for the closing event.
import { Context } from '@temporalio/activity';
import type { ActivityEvent, RecordedDeltas } from '../src/rules/journal.ts';
import { REASONING_TOKEN_LIMIT } from '../src/rules/limits.ts';
import type { RedactorStream } from '../src/rules/redaction.ts';
import { BYTES_PER_TOKEN, boundText } from '../src/rules/tokens.ts';
import type { InferTurnInput, StepContext } from './contract.ts';
import { DeltaWriter } from './delta-writer.ts';
import type { ActivityPorts } from './ports.ts';
import { placeOf } from './place.ts';
import { recordDeltas } from './recorded-deltas.ts';

/** Bound of a `full` reasoning trace in bytes: it stands in history twice, as deltas and as the closing event. */
const FULL_REASONING_BYTES = 24 * 1024;

type Verbosity = InferTurnInput['verbosity'];

/** Bound in bytes of a reasoning trace of this verbosity. */
export function reasoningBytes(verbosity: Verbosity): number {
  return verbosity === 'full' ? FULL_REASONING_BYTES : REASONING_TOKEN_LIMIT * BYTES_PER_TOKEN;
}

/** Payload of the closing event of a reasoning block. */
export function reasonedEvent(
  { agentId, context }: { agentId: string; context: StepContext },
  verbosity: Verbosity,
  text: string,
): ActivityEvent {
  const reasoning = boundText(text, reasoningBytes(verbosity));
  const payload = { agentId, reasoning, verbosity };
  return { type: 'agent.reasoned', ...placeOf(context), payload };
}

/** Keeps what a redactor's stream lets through. */
class KeptStream implements RedactorStream {
  text = '';

  readonly #stream: RedactorStream;

  constructor(stream: RedactorStream) {
    this.#stream = stream;
  }

  push(piece: string): string {
    return this.#keep(this.#stream.push(piece));
  }

  end(): string {
    return this.#keep(this.#stream.end());
  }

  cut(): string {
    return this.#keep(this.#stream.cut());
  }

  #keep(shown: string): string {
    this.text += shown;
    return shown;
  }
}

export interface LiveReasoning {
  /** All that was said so far, redacted; whole after `close`. */
  readonly text: string;
  push(piece: string): void;
  /** Throws when the log cannot be written. */
  close(): Promise<RecordedDeltas | undefined>;
  /** After a failure: the block stays open for the next try. Never throws. */
  abandon(): Promise<void>;
}

/** Whose reasoning it is, where it stands, and how much of it is shown. */
type Speaker = Pick<InferTurnInput, 'context' | 'verbosity'> & {
  readonly agent: Pick<InferTurnInput['agent'], 'agentId'>;
};

/** A later try takes the block over here, before it asks the model. */
export async function openReasoning(
  ports: ActivityPorts,
  { agent, context, verbosity }: Speaker,
  redacted: RedactorStream = ports.redactor.stream(),
): Promise<LiveReasoning> {
  const { tenant, runId, activityId } = context;
  const kept = new KeptStream(redacted);
  const writer = new DeltaWriter(
    {
      log: ports.stores.log,
      catchUp: (run) => ports.log.catchUp(run),
      redacted: () => kept,
      logger: ports.logger,
    },
    {
      run: ports.stores.runs.ref(tenant, runId),
      activityId,
      ...placeOf(context),
      tryNumber: Context.current().info.attempt,
      type: 'agent.reasoning.delta',
      base: { agentId: agent.agentId, verbosity },
      maxBytes: reasoningBytes(verbosity),
    },
  );
  await writer.adopt();
  return {
    get text() {
      return kept.text;
    },
    push: (text) => writer.push({ text }),
    close: async () => recordDeltas(activityId, await writer.close()),
    abandon: () => writer.abandon(),
  };
}
