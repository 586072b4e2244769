// Runs in Temporal: started, told things, ended (architecture §4).
import type { ChildEnded } from '../rules/children.ts';
import type { MessageOutcome, RunMessage } from '../rules/messages.ts';
import type { RunInput } from '../rules/run-input.ts';

export interface RunEngine {
  /** Starts the run's workflow; duplicates are rejected and count as success. Returns the first segment's id. */
  start(input: RunInput): Promise<{ temporalRunId: string }>;
  /**
   * Ends within the deadline of the message's kind (`MESSAGES`, which also says what a run that has ended answers, and
   * what happens when nobody does). A repeat with the same `updateId` gets the outcome of the first. Throws HostError
   * with the code that the workflow refused it with (interrupt_not_found, interrupt_already_resolved,
   * interrupt_expired, …), run_state_conflict when the run is closed, service_unavailable when nobody answered in
   * time or Temporal does not know the run (accepted, not yet started).
   */
  send(runId: string, updateId: string, message: RunMessage): Promise<MessageOutcome>;
  /** Tells a run that a child of it has ended. A run that is not there, or not any more, need not know. Throws service_unavailable. */
  childEnded(parentRunId: string, ended: ChildEnded): Promise<void>;
  /**
   * Ends what Temporal still has open of the run, without a worker and without another word of its code. Of a run that has
   * ended, or that Temporal does not know, nothing. Throws service_unavailable, and internal_error where Temporal refuses it.
   */
  terminate(runId: string, reason: string): Promise<void>;
  /** Throws HostError service_unavailable when the frontend does not answer within 2 s. */
  ping(): Promise<void>;
}
