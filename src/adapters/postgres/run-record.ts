// A row of `runs` as it is stored and read.
import { erasedInput } from '../../rules/erased.ts';
import { isAmount, isCount, isText, listOf, mapOf, members, optional } from '../../rules/forms.ts';
import type { ForkOf, PinnedAgent, RunInput } from '../../rules/run-input.ts';
import type { NewRun, RunRow, StartFailure } from '../../ports/runs.ts';
import { refOf } from './run-ref.ts';
import { damagedAt, parsedAt, PLACES, type Opener, type Seal, type Seals } from './seals.ts';

export interface RunRecord {
  readonly run_id: string;
  readonly tenant_id: string;
  readonly workflow_id: string;
  readonly input: string;
  readonly created_at_ms: number;
  readonly temporal_run_id: string | null;
  readonly start_failure: string | null;
  readonly subject_key: string | null;
  readonly retold_from: number | null;
}

export const RUN_COLUMNS = [
  ...(['run_id', 'tenant_id', 'workflow_id', 'input'] as const),
  ...(['created_at_ms', 'temporal_run_id', 'start_failure', 'subject_key'] as const),
  'retold_from',
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
  const place = PLACES.input(runId);
  if (sealed === undefined) return { input: wholeAt(place, kept) };
  const { text, erasedAtMs } = open(place, sealed);
  return erasedAtMs === undefined
    ? { input: wholeAt(place, parsedAt(place, text, 'object')) }
    : { input: wholeAt(place, kept), erasedAtMs };
}

type WorkflowDefinition = RunInput['definition'];
type WorkflowNode = WorkflowDefinition['nodes'][number];

const isObject = members({});

/** What readers of a run rely on, whoever they are: lists, conversations, cohorts, the erasure of its subject. */
const isInput = members<RunInput>({
  header: members<RunInput['header']>({
    ...{ sessionId: isText, correlationId: isText },
    ...{ parentRunId: optional(isText), parentNodeId: optional(isText) },
  }),
  definition: members<WorkflowDefinition>({
    nodes: listOf(
      members<WorkflowNode>({
        ...{ id: isText, settings: optional(isObject) },
        agent: optional(members<NonNullable<WorkflowNode['agent']>>({ agentId: isText })),
      }),
    ),
    settings: isObject,
    channels: optional(mapOf(isObject)),
  }),
  agents: mapOf(members<PinnedAgent>({ agentId: isText, toolAllowlist: listOf(isText) })),
  limits: members<RunInput['limits']>({
    ...{ maxNodeExecutions: isAmount, maxRunDurationMs: isAmount, interruptTimeoutMs: isAmount },
  }),
  fork: optional(members<ForkOf>({ sourceRunId: isText, clocks: listOf(mapOf(isAmount)) })),
  subject: members<RunInput['subject']>({ subjectId: isText }),
  ...{ variables: isObject, configurable: isObject, policy: isObject },
  ...{ idSeed: isText, era: isCount, tags: optional(listOf(isText)) },
});

/** Throws HostError history_undecodable of what lacks what the readers of a run need. */
function wholeAt(place: string, input: RunInput): RunInput {
  if (!isInput(input)) throw damagedAt(place);
  return input;
}

/**
 * Reads each of these records by itself, with their keys asked for once. What comes of it throws HostError
 * history_undecodable or key_unavailable of the one that cannot be read.
 */
export async function runReader(
  seals: Seals,
  records: readonly RunRecord[],
): Promise<(record: RunRecord) => RunRow> {
  const open = await seals.opener(records.map(({ input }) => sealedIn(input)));
  return (record) => {
    const { run_id: runId, input } = record;
    const stored = parsedAt<StoredInput>(PLACES.input(runId), input, 'object');
    return runOf(record, readInput(runId, stored, open));
  };
}

/** What stays readable of a row whatever becomes of its key. Throws HostError history_undecodable: it is no JSON. */
export function keptRow(record: RunRecord): RunRow {
  const { run_id: runId, input } = record;
  const stored = parsedAt<StoredInput>(PLACES.input(runId), input, 'object');
  const { input: kept } = readInput(runId, stored, () => ({ text: '', erasedAtMs: 0 }));
  return runOf(record, { input: kept });
}

/** Undefined, too, of what is no JSON: whoever reads it is told. */
function sealedIn(input: string): string | undefined {
  try {
    return (JSON.parse(input) as StoredInput | null)?.sealed;
  } catch {
    return undefined;
  }
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
      : { startFailure: parsedAt<StartFailure>(`start ${record.run_id}`, record.start_failure) }),
    ...(record.subject_key === null ? {} : { subjectKey: record.subject_key }),
    ...(record.retold_from === null ? {} : { retoldFrom: record.retold_from }),
  };
}
