// A row of `runs` as it is stored and read.
import { erasedInput } from '../../rules/erased.ts';
import { HostError } from '../../rules/errors.ts';
import type { RunInput } from '../../rules/run-input.ts';
import type { NewRun, RunRow, StartFailure } from '../../ports/runs.ts';
import { refOf } from './run-ref.ts';
import { PLACES, type Opener, type Seal, type Seals } from './seals.ts';

export interface RunRecord {
  readonly run_id: string;
  readonly tenant_id: string;
  readonly workflow_id: string;
  readonly input: string;
  readonly created_at_ms: number;
  readonly temporal_run_id: string | null;
  readonly start_failure: string | null;
  readonly subject_key: string | null;
}

export const RUN_COLUMNS = [
  ...(['run_id', 'tenant_id', 'workflow_id', 'input'] as const),
  ...(['created_at_ms', 'temporal_run_id', 'start_failure', 'subject_key'] as const),
] satisfies readonly (keyof RunRecord)[];

/** As it is stored where the run has a subject: the structure, and beside it the whole, sealed. */
type StoredInput = RunInput & { readonly sealed?: string };

export function storedInput({ runId, input }: NewRun, seal: Seal | undefined): string {
  const text = JSON.stringify(input);
  if (!seal) return text;
  const sealed = seal.text(PLACES.input(runId), text);
  return JSON.stringify({ ...erasedInput(input), sealed } satisfies StoredInput);
}

function readInput(
  runId: string,
  { sealed, ...kept }: StoredInput,
  open: Opener,
): Pick<RunRow, 'input' | 'erasedAtMs'> {
  if (sealed === undefined) return { input: kept };
  const { text, erasedAtMs } = open(PLACES.input(runId), sealed);
  return erasedAtMs === undefined
    ? { input: JSON.parse(text) as RunInput }
    : { input: kept, erasedAtMs };
}

export async function runsOf(seals: Seals, records: readonly RunRecord[]): Promise<RunRow[]> {
  const inputs = records.map(({ input }) => JSON.parse(input) as StoredInput);
  const open = await seals.opener(inputs.map(({ sealed }) => sealed));
  return records.map((record, at) => {
    const input = inputs[at];
    if (!input) throw new HostError('internal_error');
    return runOf(record, readInput(record.run_id, input, open));
  });
}

function runOf(record: RunRecord, input: Pick<RunRow, 'input' | 'erasedAtMs'>): RunRow {
  return {
    ...refOf(record.tenant_id, record.run_id),
    workflowId: record.workflow_id,
    ...input,
    createdAtMs: record.created_at_ms,
    ...(record.temporal_run_id === null ? {} : { temporalRunId: record.temporal_run_id }),
    ...(record.start_failure === null
      ? {}
      : { startFailure: JSON.parse(record.start_failure) as StartFailure }),
    ...(record.subject_key === null ? {} : { subjectKey: record.subject_key }),
  };
}
