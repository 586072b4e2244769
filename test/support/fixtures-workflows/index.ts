// Small workflows for tests of the Temporal adapters: they know nothing of OpenWOP runs but the names of messages.
import {
  ApplicationFailure,
  CancelledFailure,
  condition,
  continueAsNew,
  defineSignal,
  defineUpdate,
  isCancellation,
  proxyActivities,
  setHandler,
  sleep,
  upsertMemo,
} from '@temporalio/workflow';
import { CARRIER_MEMO_FIELD } from '../../../src/rules/journal.ts';
import { MESSAGES, type MessageOutcome } from '../../../src/rules/messages.ts';

interface Command {
  readonly bodyDigest: string;
  readonly nodeId?: string;
  readonly value?: unknown;
  readonly reason?: string;
}

const resolve = defineUpdate<MessageOutcome, [Command]>(MESSAGES['resolve-interrupt'].update);
const cancelRun = defineUpdate<MessageOutcome, [Command]>(MESSAGES.cancel.update);
const step = defineSignal('step');

/** Waits until it is answered or cancelled. `value: "hang"` never answers. */
export async function waiting(_input: unknown): Promise<string> {
  let answer: unknown;
  let cancelled = false;
  setHandler(
    resolve,
    async ({ bodyDigest, value }) => {
      if (value === 'hang') await condition(() => cancelled);
      answer = value;
      return { bodyDigest, status: 'running' };
    },
    {
      validator({ nodeId }: Command) {
        if (nodeId === 'unknown')
          throw ApplicationFailure.nonRetryable('no such node', 'interrupt_not_found', { nodeId });
        if (nodeId === 'foreign') throw ApplicationFailure.nonRetryable('boom', 'SomethingElse');
      },
    },
  );
  setHandler(cancelRun, ({ bodyDigest }) => {
    cancelled = true;
    return { bodyDigest, status: 'cancelling' };
  });
  await condition(() => answer !== undefined || cancelled);
  if (cancelled) throw new CancelledFailure('cancelled by request');
  return `answered ${String(answer)}`;
}

/** Keeps no handler: an Update is never accepted. */
export async function deaf(_input: unknown): Promise<void> {
  await condition(() => false);
}

/** One memo event with `text` for each signal; ends with the signal after `rounds`. */
export async function memos({ rounds, text }: { rounds: number; text: string }): Promise<void> {
  let received = 0;
  setHandler(step, () => void received++);
  for (let round = 0; round < rounds; round++) {
    await condition(() => received > round);
    upsertMemo({ [CARRIER_MEMO_FIELD]: { text, round } });
  }
  await condition(() => received > rounds);
}

const { scripted } = proxyActivities<{ scripted(input: unknown): Promise<unknown> }>({
  startToCloseTimeout: '10s',
  retry: { maximumAttempts: 1 },
});

/** One activity, one memo, once continued as new, then completed with `secret`. */
export async function everything({
  secret,
  again,
}: {
  secret: string;
  again: boolean;
}): Promise<string> {
  await scripted({ secret });
  upsertMemo({ [CARRIER_MEMO_FIELD]: { secret } });
  await sleep(1);
  if (again) await continueAsNew<typeof everything>({ secret, again: false });
  return secret;
}

const { scripted: patientlyScripted } = proxyActivities<{
  scripted(input: unknown): Promise<unknown>;
}>({
  startToCloseTimeout: '30s',
  heartbeatTimeout: '20s',
  retry: { initialInterval: '50ms', maximumInterval: '200ms' },
});

/** What its one activity gives, however often that is tried. */
export async function trying(input: unknown): Promise<unknown> {
  return patientlyScripted(input);
}

/** Fails with a message that must not be readable under encryption. */
export async function failing({ secret }: { secret: string }): Promise<void> {
  try {
    await scripted({ secret });
  } catch (error) {
    if (isCancellation(error)) throw error;
    throw ApplicationFailure.nonRetryable(`because of ${secret}`, 'internal_error', { secret });
  }
}

/** Sleeps for days: only a time-skipping server ends it soon. */
export async function patient({ ms }: { ms: number }): Promise<number> {
  const before = Date.now();
  await sleep(ms);
  return Date.now() - before;
}
