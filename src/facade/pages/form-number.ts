// The number of a form that makes a run: it stands in the form's address, stays through Back, reload and a second click, and
// is part of the idempotency key, so that one form makes one run.
import { randomBytes } from 'node:crypto';
import { codeOf } from '../../rules/errors.ts';
import type { AcceptedRun } from '../../runs/accept.ts';
import type { Once } from '../../runs/once.ts';
import { rest } from '../../system/time.ts';

const FORM_BYTES = 16;
const FORM = /^[\w-]{22}$/;
/** A second click that comes while the first one makes the run waits for what became of it, so often and so long. */
const IN_FLIGHT_TRIES = 20;
const IN_FLIGHT_REST_MS = 250;

export function newForm(): string {
  return randomBytes(FORM_BYTES).toString('base64url');
}

export function isForm(text: string): boolean {
  return FORM.test(text);
}

/** The second of two clicks gets the run of the first. */
export async function whenNotInFlight<Value>(attempt: () => Promise<Value>): Promise<Value> {
  for (let tries = 1; ; tries++) {
    try {
      return await attempt();
    } catch (error) {
      if (codeOf(error) !== 'idempotency_in_flight' || tries === IN_FLIGHT_TRIES) throw error;
      await rest(IN_FLIGHT_REST_MS);
    }
  }
}

/** Of the run that the form made, now or before. */
export function runIdOf(once: Once<AcceptedRun>): string {
  return once.replayed ? (once.kept.body as { runId: string }).runId : once.data.runId;
}
