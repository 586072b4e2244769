// The one way of a message to a run, whatever its kind (architecture §4): the key is claimed, what is asked for is
// digested, the Update's id follows from both, the engine sends, and an outcome that answers another body is refused.
import { HostError } from '../rules/errors.ts';
import type { RunMessage } from '../rules/messages.ts';
import type { RunsDeps } from './deps.ts';
import {
  digestOf,
  performOnce,
  updateIdOf,
  type KeyBinding,
  type Once,
  type OnceRequest,
} from './once.ts';

/** Under what a message goes; the tries of one key go under the same. */
export interface Delivery {
  readonly updateId: string;
  /** Digest of what the sender asked for. */
  readonly bodyDigest: string;
  /** True when this may repeat an earlier message: then one that is too late is asked for that message's outcome. */
  readonly isRepeatable: boolean;
  readonly binding: KeyBinding;
}

/** Throws what performOnce does; `send` is given what the message goes under. */
export function messageOnce<Data>(
  { stores }: Pick<RunsDeps, 'stores'>,
  request: OnceRequest<Data>,
  send: (delivery: Delivery) => Promise<Data>,
): Promise<Once<Data>> {
  const { asked } = request;
  return performOnce(stores.idempotency, request, (binding) =>
    send({
      updateId: updateIdOf(asked),
      bodyDigest: digestOf(asked),
      isRepeatable: asked.key !== undefined,
      binding,
    }),
  );
}

/**
 * The id of a message about what its key is bound to (a question, where the log stood). Temporal knows an Update for as
 * long as the run goes on: a key that is used again when nothing holds it any more is another message.
 */
export function updateIdFor({ updateId }: Pick<Delivery, 'updateId'>, boundTo: string): string {
  return `${updateId}-${boundTo}`;
}

/**
 * The status that the run's workflow gave, in its kind's own word. Throws idempotency_key_mismatch where this id has
 * answered another body, and what RunEngine.send throws.
 */
export async function sendMessage(
  { engine }: Pick<RunsDeps, 'engine'>,
  runId: string,
  { updateId, message }: { readonly updateId: string; readonly message: RunMessage },
): Promise<string> {
  const outcome = await engine.send(runId, updateId, message);
  if (outcome.bodyDigest !== message.bodyDigest) throw new HostError('idempotency_key_mismatch');
  return outcome.status;
}
