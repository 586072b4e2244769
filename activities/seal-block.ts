// sealBlock: closes the delta block of a model call or a tool call that ended without a result (architecture §3.5), so
// that history knows what the log already showed.
import type { StepResult } from '../src/rules/journal.ts';
import type { SealBlockInput, SealBlockOutput } from './contract.ts';
import type { ActivityPorts } from './ports.ts';
import { reasonedEvent } from './reasoning-writer.ts';
import { deltaTexts, recordDeltas } from './recorded-deltas.ts';

export async function sealBlock(
  ports: ActivityPorts,
  input: SealBlockInput,
): Promise<StepResult<SealBlockOutput>> {
  const { tenant, runId } = input.context;
  const run = ports.stores.runs.ref(tenant, runId);
  const rows = await ports.stores.log.closeBlock(run, input.sealedActivityId);
  const deltas = recordDeltas(input.sealedActivityId, rows);
  if (!deltas) return { output: { deltas: 0 }, events: [] };
  const output = { deltas: rows.length };
  // A tool's progress has no closing event: agent.toolReturned says how the call ended.
  if (input.kind === 'tool') return { output, events: [], deltas };
  const partial = reasonedEvent(
    { agentId: input.agentId, context: input.context },
    input.verbosity,
    [...deltaTexts(rows).values()].join(''),
  );
  return { output, events: [partial], deltas };
}
