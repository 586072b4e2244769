// Runs in Temporal: started, told things, ended (design §4).
import type {
  CancelRunCommand,
  MessageOutcome,
  ResolveInterruptCommand,
  RunInput,
} from '../rules/run-input.ts';

export interface RunEngine {
  /** Starts the run's workflow; duplicates are rejected and count as success. Returns the first segment's id. */
  start(input: RunInput): Promise<{ temporalRunId: string }>;
  /**
   * Throws HostError with the code the workflow's validator gave (interrupt_not_found, interrupt_already_resolved,
   * interrupt_expired, …), run_state_conflict when the run is closed, service_unavailable after 5 s.
   */
  resolveInterrupt(
    runId: string,
    updateId: string,
    command: ResolveInterruptCommand,
  ): Promise<MessageOutcome>;
  /** An Update with a 2 s deadline, else Temporal's durable cancel request (`status: 'cancelling'`). A closed run: 'unchanged'. */
  cancel(runId: string, updateId: string, command: CancelRunCommand): Promise<MessageOutcome>;
  /** Throws HostError service_unavailable when the frontend does not answer within 2 s. */
  ping(): Promise<void>;
}
