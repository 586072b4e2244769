// A route that tells a run something: once per key, and answered with what the run made of it.
import type { JsonObject } from '../rules/json.ts';
import type { Caller } from '../ports/caller.ts';
import type { RunRow } from '../ports/runs.ts';
import { messageOnce, type Delivery } from '../runs/messages.ts';
import type { FacadeDeps } from './deps.ts';
import { answerOnce, toldAs } from './idempotency.ts';
import { addressOf, type Answer, type Declaration } from './route.ts';

export interface RunMessageCall {
  readonly declared: Declaration;
  readonly input: {
    readonly caller: Caller;
    readonly run: RunRow;
    readonly parameters: { readonly idempotencyKey: string | undefined };
    readonly body: object;
  };
  /** Ids of what it is about within the run; they stand in the answer. */
  readonly about?: Readonly<Record<string, string>>;
}

/** Answers `{runId, …about, status}` with the declared status. Throws what messageOnce and `send` do. */
export async function tellRun(
  deps: FacadeDeps,
  { declared, input, about = {} }: RunMessageCall,
  send: (delivery: Delivery) => Promise<string>,
): Promise<Answer> {
  const { caller, run, parameters, body } = input;
  const ids = { runId: run.runId, ...about };
  const asked = {
    endpoint: addressOf(declared),
    target: Object.values(ids),
    body: { ...body } as JsonObject,
    key: parameters.idempotencyKey,
  };
  const telling = toldAs<string>(declared.success.status, (status) => ({ ...ids, status }));
  return answerOnce(await messageOnce(deps, { caller, asked, telling }, send), telling);
}
