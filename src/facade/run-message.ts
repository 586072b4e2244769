// A route that tells a run something: once per key, and answered with what the run made of it.
import type { JsonObject } from '../rules/json.ts';
import type { Caller } from '../ports/caller.ts';
import type { RunRow } from '../ports/runs.ts';
import { messageOnce, type Delivery } from '../runs/messages.ts';
import { withShownIds } from '../wire/major.ts';
import type { FacadeDeps } from './deps.ts';
import { answerOnce, toldAs } from './idempotency.ts';
import type { ServedMajor } from './majors.ts';
import { addressOf, type Answer, type Declaration } from './route.ts';

export interface RunMessageCall {
  readonly declared: Declaration;
  readonly input: {
    readonly caller: Caller;
    readonly major: ServedMajor;
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
  const { caller, major, run, parameters, body } = input;
  const shown = withShownIds(major, caller.tenant, { runId: run.runId, ...about });
  const asked = {
    endpoint: addressOf(declared, major),
    target: [run.runId, ...Object.values(about)],
    ...(run.subjectKey === undefined ? {} : { subjectKey: run.subjectKey }),
    body: { ...body } as JsonObject,
    key: parameters.idempotencyKey,
  };
  const telling = toldAs<string>(input, declared.success.status, (status) => ({
    ...shown,
    status,
  }));
  return answerOnce(await messageOnce(deps, { caller, asked, telling }, send), telling);
}
