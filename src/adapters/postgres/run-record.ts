// A row of `runs` as it is read.
import type { RunInput } from '../../rules/run-input.ts';
import type { RunRow, StartFailure } from '../../ports/runs.ts';
import { refOf } from './run-ref.ts';

export interface RunRecord {
  readonly run_id: string;
  readonly tenant_id: string;
  readonly workflow_id: string;
  readonly input: string;
  readonly created_at_ms: number;
  readonly temporal_run_id: string | null;
  readonly start_failure: string | null;
}

export const RUN_COLUMNS = [
  ...(['run_id', 'tenant_id', 'workflow_id', 'input'] as const),
  ...(['created_at_ms', 'temporal_run_id', 'start_failure'] as const),
] satisfies readonly (keyof RunRecord)[];

export function runOf(record: RunRecord): RunRow {
  return {
    ...refOf(record.tenant_id, record.run_id),
    workflowId: record.workflow_id,
    input: JSON.parse(record.input) as RunInput,
    createdAtMs: record.created_at_ms,
    ...(record.temporal_run_id === null ? {} : { temporalRunId: record.temporal_run_id }),
    ...(record.start_failure === null
      ? {}
      : { startFailure: JSON.parse(record.start_failure) as StartFailure }),
  };
}
