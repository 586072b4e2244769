// What became of a question that is not open any more (interrupt.md), as the run's log tells it.
import { eventRow } from '../rules/events.ts';
import { isJsonObject, type JsonObject } from '../rules/json.ts';
import { asSubject, principalOf } from '../rules/subject.ts';
import type { LogRow } from '../ports/log.ts';
import type { RunRef } from '../ports/runs.ts';
import type { Log } from '../log/log.ts';

/** The question that an answer means: of a node, and the one that its sender saw; absent: the node's last one. */
export interface Meant {
  readonly nodeId: string;
  readonly interruptId?: string;
}

export interface Fate {
  readonly code:
    | 'interrupt_not_found'
    | 'interrupt_already_resolved'
    | 'interrupt_expired'
    | 'interrupt_gone'
    | 'interrupt_cancelled';
  readonly interruptId?: string;
  readonly key?: string;
  readonly kind?: string;
  readonly resumeSchema?: JsonObject;
  /** Principal. */
  readonly resolvedBy?: string;
}

/** What became of the meant interrupt, or of the node's last one, that is not open now, as the log tells it. */
export async function fateOf(
  log: Pick<Log, 'questions'>,
  run: RunRef,
  meant: Meant,
): Promise<Fate> {
  let fate: Fate = { code: 'interrupt_not_found' };
  for await (const rows of log.questions(run, meant.nodeId))
    for (const row of rows) fate = nextFate(fate, row, meant);
  return fate;
}

type FateRow = Pick<LogRow, 'type' | 'nodeId' | 'payload'>;

function nextFate(fate: Fate, row: FateRow, meant: Meant): Fate {
  const { part, run } = eventRow(row.type);
  if (run === 'cancelled')
    return fate.code === 'interrupt_gone' ? { ...fate, code: 'interrupt_cancelled' } : fate;
  if (row.nodeId !== meant.nodeId) return fate;
  switch (part) {
    case 'wait-opens': {
      const { interruptId, key, kind } = payloadOf(row);
      if (typeof interruptId !== 'string' || typeof key !== 'string') return fate;
      const isOther = meant.interruptId !== undefined && meant.interruptId !== interruptId;
      const asked = { interruptId, key, ...(typeof kind === 'string' ? { kind } : {}) };
      return isOther ? fate : { code: 'interrupt_gone', ...asked };
    }
    case 'wait-asks': {
      const { key, resumeSchema } = payloadOf(row);
      return key === fate.key && isJsonObject(resumeSchema) ? { ...fate, resumeSchema } : fate;
    }
    case 'wait-ends': {
      const { interruptId, reason, resolvedBy } = payloadOf(row);
      const answeredBy = asSubject(resolvedBy);
      if (interruptId !== fate.interruptId) return fate;
      if (answeredBy !== undefined)
        return {
          ...fate,
          code: 'interrupt_already_resolved',
          resolvedBy: principalOf(answeredBy),
        };
      // Its own time was over or its node's, whichever timer was first; else its node ended, and nobody answered.
      const isExpired = reason === 'timeout' || reason === 'node_timeout';
      return isExpired ? { ...fate, code: 'interrupt_expired' } : fate;
    }
    default:
      return fate;
  }
}

function payloadOf({ payload }: FateRow): JsonObject {
  return JSON.parse(payload) as JsonObject;
}
