// sealBlock: closes the delta block of a model call that ended without a result (design §3.5), so that history knows
// what the log already showed.
import type { StepResult } from '../src/core/journal.ts';
import type { SealBlockInput, SealBlockOutput } from './contract.ts';
import { reasonedEvent } from './infer-turn.ts';
import type { ActivityPorts } from './ports.ts';
import { deltaText, recordDeltas } from './recorded-deltas.ts';

export async function sealBlock(
  ports: ActivityPorts,
  input: SealBlockInput,
): Promise<StepResult<SealBlockOutput>> {
  const { runId, nodeId } = input.context;
  const rows = await ports.stores.log.closeBlock(runId, input.sealedActivityId);
  const deltas = recordDeltas(input.sealedActivityId, rows);
  if (!deltas) return { output: { deltas: 0 }, events: [] };
  const partial = reasonedEvent(
    { agentId: input.agentId, nodeId },
    input.verbosity,
    deltaText(rows),
  );
  return { output: { deltas: rows.length }, events: [partial], deltas };
}
