// Puts the journal on commands that history records anyway (architecture §2.3). One hook, after all jobs of
// an activation: it sees the final commands and chooses the carrier. Loaded as workflow interceptor module.
import { defaultPayloadConverter, type Payload } from '@temporalio/common';
import {
  proxySinks,
  workflowInfo,
  type ConcludeActivationInput,
  type Sinks,
  type WorkflowInterceptorsFactory,
} from '@temporalio/workflow';
import { CARRIER_MEMO_FIELD, CARRIER_METADATA_KEY, type Carrier } from '../src/rules/journal.ts';
import { CARRIER_BYTES, SEGMENT_CARRIER_BYTES } from '../src/rules/limits.ts';
import {
  drainOutbox,
  endedAs,
  isJournalOpen,
  takeBack,
  tenantOfRun,
  type OutboxEntry,
} from './journal.ts';

type Command = ConcludeActivationInput['commands'][number];

export interface JournalSinks extends Sinks {
  journal: {
    /** The worker's projector is told that the history of the tenant's run will be longer than `historyLength`. */
    hint(tenant: string, temporalRunId: string, historyLength: number, terminal: boolean): void;
  };
}

const { journal } = proxySinks<JournalSinks>();
const MARK = new Uint8Array([49]); // '1'

/** Carriers on activities scheduled in the workflow task that is still going on: core may drop those commands. */
let carried = new Map<number, { historyLength: number; entries: OutboxEntry[] }>();

function carrierPayload(entries: readonly OutboxEntry[]): Payload {
  const carrier: Carrier = {
    v: 1,
    at: entries.map(({ at }) => at),
    entries: entries.map(({ entry }) => entry),
  };
  const payload = defaultPayloadConverter.toPayload<Carrier>(carrier);
  return { ...payload, metadata: { ...payload.metadata, [CARRIER_METADATA_KEY]: MARK } };
}

function memo(entries: readonly OutboxEntry[]): Command {
  return {
    modifyWorkflowProperties: {
      upsertedMemo: { fields: { [CARRIER_MEMO_FIELD]: carrierPayload(entries) } },
    },
  };
}

/** Pieces of at most CARRIER_BYTES; single entries are far smaller (architecture §2.6). */
function split(entries: readonly OutboxEntry[]): OutboxEntry[][] {
  const pieces: OutboxEntry[][] = [];
  let size = Infinity;
  for (const entry of entries) {
    const { bytes } = entry;
    if (size + bytes > CARRIER_BYTES) {
      pieces.push([]);
      size = 0;
    }
    pieces[pieces.length - 1]?.push(entry);
    size += bytes;
  }
  return pieces;
}

function bytesOf(entries: readonly OutboxEntry[]): number {
  return entries.reduce((sum, { bytes }) => sum + bytes, 0);
}

/** Core drops an activity that is scheduled and cancelled within one workflow task: its entries come back. */
function takeBackDropped(commands: readonly Command[], historyLength: number): Set<number> {
  const cancelled = new Set<number>();
  for (const { requestCancelActivity } of commands) {
    const seq = requestCancelActivity?.seq;
    if (seq === undefined || seq === null) continue;
    cancelled.add(seq);
    const dropped = carried.get(seq);
    if (dropped?.historyLength === historyLength) takeBack(dropped.entries);
    carried.delete(seq);
  }
  for (const [seq, { historyLength: at }] of carried) if (at !== historyLength) carried.delete(seq);
  return cancelled;
}

function isTerminal(command: Command): boolean {
  return Boolean(
    command.completeWorkflowExecution ??
    command.failWorkflowExecution ??
    command.cancelWorkflowExecution ??
    command.continueAsNewWorkflowExecution,
  );
}

/** Puts `entries` on the best command; returns the commands with what had to be added. */
function attach(
  commands: Command[],
  entries: readonly OutboxEntry[],
  cancelled: ReadonlySet<number>,
): Command[] {
  const [first = [], ...more] = split(entries);
  const terminalAt = commands.findIndex(isTerminal);
  if (terminalAt >= 0) {
    const terminal = commands[terminalAt] as Command;
    const before: Command[] = more.map(memo);
    if (terminal.completeWorkflowExecution)
      terminal.completeWorkflowExecution.result = carrierPayload(first);
    else if (terminal.continueAsNewWorkflowExecution && bytesOf(first) <= SEGMENT_CARRIER_BYTES) {
      (terminal.continueAsNewWorkflowExecution.arguments ??= []).push(carrierPayload(first));
    } else before.push(memo(first));
    return [...commands.slice(0, terminalAt), ...before, ...commands.slice(terminalAt)];
  }
  const activity = commands.find(
    ({ scheduleActivity: it }) => it && !cancelled.has(it.seq as number),
  )?.scheduleActivity;
  if (!activity) return [...commands, memo(first), ...more.map(memo)];
  (activity.arguments ??= []).push(carrierPayload(first));
  carried.set(activity.seq as number, {
    historyLength: workflowInfo().historyLength,
    entries: first,
  });
  return [...commands, ...more.map(memo)];
}

/**
 * A run that an Update cancelled ends as a cancelled execution too; the SDK gives that command only for its own
 * cancel requests.
 */
function asCancelled(commands: readonly Command[]): Command[] {
  if (endedAs() !== 'cancelled') return [...commands];
  return commands.map((command) =>
    command.failWorkflowExecution ? { cancelWorkflowExecution: {} } : command,
  );
}

function concludeWithJournal(all: readonly Command[]): Command[] {
  if (!isJournalOpen()) return [...all];
  const commands = asCancelled(all);
  const { historyLength, runId } = workflowInfo();
  const cancelled = takeBackDropped(commands, historyLength);
  const terminal = commands.some(isTerminal);
  const entries = drainOutbox();
  if (entries.length === 0 && !terminal) return commands;
  const out = entries.length > 0 ? attach(commands, entries, cancelled) : commands;
  journal.hint(tenantOfRun(), runId, historyLength, terminal);
  return out;
}

export const interceptors: WorkflowInterceptorsFactory = () => {
  carried = new Map();
  return {
    internals: [
      {
        concludeActivation(input, next) {
          const out = next(input);
          return { ...out, commands: concludeWithJournal(out.commands) };
        },
      },
    ],
  };
};
