// The seed's envelope (seed 003 §3.2, §3.3): what a session's stream says of each event, a function of the run's header
// and the row. The payload is that of the run's own stream.
import { eventRow } from '../rules/events.ts';
import type { RunHeader } from '../rules/run-input.ts';
import { shownTime, type Unreadable } from '../rules/unreadable.ts';
import type { Era } from '../rules/versions.ts';
import type { LogRow } from '../ports/log.ts';
import { rowsShown } from '../wire/major.ts';
import type { ServedMajor } from './majors.ts';

/** Of a run, what is told with each of its events. */
export interface RunFacts {
  readonly tenant: string;
  readonly header: RunHeader;
  readonly input: { readonly era: Era };
  /** Why what it was started with cannot be read: its events are told without their payloads. */
  readonly unreadable?: Unreadable;
}

export interface ShownInSession {
  readonly eventType: string;
  /** One line of JSON. */
  readonly text: string;
}

export function inSession(major: ServedMajor, run: RunFacts, row: LogRow): ShownInSession {
  const { tenant, header } = run;
  const { sessionId, parentRunId, correlationId, causationId } = header;
  const shown = rowsShown(major, run);
  const { timestamp, ...time } = shownTime(row.timestampMs);
  const unreadable = run.unreadable ?? row.unreadable ?? time.unreadable;
  const eventType = eventRow(row.type).inSession ?? shown.typeOf(row.type);
  const runShown = (runId: string): string => major.ids.bind('run', runId, tenant);
  const envelope = {
    event_id: row.eventId,
    event_type: eventType,
    seq: row.sequence,
    timestamp,
    session_id: sessionId,
    run_id: runShown(row.runId),
    parent_run_id: parentRunId === undefined ? null : runShown(parentRunId),
    agent_level: parentRunId === undefined ? 'core' : 'subagent',
    correlation_id: runShown(correlationId),
    // Of the run: the call that spawned it. What caused the event itself is told by its causes.
    causation_id: causationId ?? null,
    ...(row.isErased ? { erased: true } : {}),
    ...(unreadable ? { unreadable } : {}),
  };
  const payload = run.unreadable ? '{}' : withSeedNames(row.type, shown.payloadOf(row));
  return { eventType, text: `${JSON.stringify(envelope).slice(0, -1)},"payload":${payload}}` };
}

/** Names that the seed's payloads have beside the published ones (seed 003 §3.3). */
const SEED_NAMES: Readonly<Record<string, string>> = {
  callId: 'call_id',
  toolName: 'tool_name',
  durationMs: 'duration',
};

function withSeedNames(type: string, payload: string): string {
  const { part } = eventRow(type);
  if (part !== 'call' && part !== 'return') return payload;
  const fields = JSON.parse(payload) as Record<string, unknown>;
  const twins = Object.entries(SEED_NAMES).filter(([name]) => fields[name] !== undefined);
  return JSON.stringify({
    ...fields,
    ...Object.fromEntries(twins.map(([name, twin]) => [twin, fields[name]])),
  });
}
