// What a tool outside would count of a generated run and of its forks (architecture §5, I91): nothing that a fork's log has
// from its source is performed for it again, but where its ledger is told of that first.
import { digestOf } from '../../../src/rules/ids.ts';
import { canonicalJson, isJsonObject, type JsonObject } from '../../../src/rules/json.ts';
import type { RecordedEntry } from '../../../src/rules/recording.ts';
import type { Called } from './case.ts';

/** Of one node visit: tool, arguments and the n-th such call of an attempt. */
type Effects = Map<string, { readonly attempt: number; readonly isAnswered: boolean }>;

/** Calls in a log that came back with an outcome of their own, and those of which nobody knows. */
function effectsOf(rows: readonly RecordedEntry[]): Effects {
  const answered = new Set<unknown>();
  for (const { key, type, payload } of rows)
    if (type === 'agent.toolReturned' && !key.startsWith(`${type}|`))
      answered.add((JSON.parse(payload) as JsonObject).callId);
  const effects: Effects = new Map();
  const visits = new Map<string, { visit: number; attempt: number; calls: string[] }>();
  for (const { type, nodeId = '', payload: text } of rows) {
    const payload = JSON.parse(text) as JsonObject;
    const at = visits.get(nodeId) ?? { visit: 0, attempt: 0, calls: [] };
    visits.set(nodeId, at);
    if (type === 'node.started') {
      at.attempt = payload.attempt as number;
      at.calls = [];
      if (at.attempt === 0) at.visit++;
    } else if (type === 'agent.toolCalled') {
      const argsHash = digestOf(canonicalJson(payload.inputs ?? null));
      const equal = `${payload.toolName as string} ${argsHash}`;
      const occurrence = at.calls.filter((call) => call === equal).length;
      at.calls.push(equal);
      const isAnswered = answered.has(payload.callId);
      effects.set(`${nodeId} ${at.visit} ${equal} ${occurrence}`, {
        attempt: at.attempt,
        isAnswered,
      });
    }
  }
  return effects;
}

/** Nodes at which somebody who was asked by the fork itself had a call performed. */
function permittedIn(rows: readonly RecordedEntry[]): Set<string | undefined> {
  const isPermit = ({ type, payload }: RecordedEntry) => {
    if (type !== 'interrupt.resolved') return false;
    const { resumeValue } = JSON.parse(payload) as JsonObject;
    return isJsonObject(resumeValue) && resumeValue.action === 'accept';
  };
  return new Set(rows.filter(isPermit).map(({ nodeId }) => nodeId));
}

/**
 * Calls that a branch performs though its log has them from its source (its first `length` rows), by activity. A word that was
 * given to its source permits nothing in the branch.
 */
export function repeatedBy(
  { rows, called }: { readonly rows: readonly RecordedEntry[]; readonly called: readonly Called[] },
  length: number,
): readonly string[] {
  const prefix = rows.slice(0, length);
  const effects = effectsOf(prefix);
  const permitted = permittedIn(rows.slice(length));
  const returned = new Set(
    prefix.flatMap(({ key, type }) => (type === 'agent.toolReturned' ? [key.split('#')[0]] : [])),
  );
  return called.flatMap(({ activityId, input }) => {
    const { context, call, calledKey, resolution, sourceLength } = input;
    if (calledKey === undefined) return [];
    if (resolution?.kind === 'skip' || resolution?.kind === 'happened') return [];
    const { nodeId, visit, attempt } = context;
    const { toolId, argsHash, occurrence } = call;
    const before = effects.get(`${nodeId} ${visit} ${toolId} ${argsHash} ${occurrence}`);
    if (resolution?.kind === 'perform') return before && !permitted.has(nodeId) ? [activityId] : [];
    const isKnown = before && (before.isAnswered || before.attempt < attempt);
    const isRepeated = returned.has(activityId) || (isKnown && sourceLength === undefined);
    return isRepeated ? [activityId] : [];
  });
}
