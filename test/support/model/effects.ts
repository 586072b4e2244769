// What a tool outside would count of a generated run and of its forks (architecture §5, I91): nothing that a fork's log has
// from its source is performed for it again, but where its ledger is told of that first.
import { digestOf } from '../../../src/rules/ids.ts';
import { canonicalJson, type JsonObject } from '../../../src/rules/json.ts';
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

/** Calls that a fork performs though its log has them from its source, by activity. */
export function repeatedBy(
  prefix: readonly RecordedEntry[],
  called: readonly Called[],
): readonly string[] {
  const effects = effectsOf(prefix);
  const returned = new Set(
    prefix.flatMap(({ key, type }) => (type === 'agent.toolReturned' ? [key.split('#')[0]] : [])),
  );
  return called.flatMap(({ activityId, input }) => {
    const { context, call, calledKey, resolution, sourceLength } = input;
    if (calledKey === undefined || resolution) return [];
    const { nodeId, visit, attempt } = context;
    const { toolId, argsHash, occurrence } = call;
    const before = effects.get(`${nodeId} ${visit} ${toolId} ${argsHash} ${occurrence}`);
    const isKnown = before && (before.isAnswered || before.attempt < attempt);
    const isRepeated = returned.has(activityId) || (isKnown && sourceLength === undefined);
    return isRepeated ? [activityId] : [];
  });
}
