// From a request to the input of its route, by the declaration: ids of the path, its run, body, parameters, in this order,
// each before the next is looked at. Who asks and the bytes of the body are known by then.
import type { Request } from 'express';
import { codeOf } from '../rules/errors.ts';
import type { JsonValue } from '../rules/json.ts';
import type { Caller } from '../ports/caller.ts';
import type { RunRow } from '../ports/runs.ts';
import { requireRun } from '../runs/find.ts';
import { ID_FIELDS, type IdKind } from '../wire/major.ts';
import type { FacadeDeps } from './deps.ts';
import type { ServedMajor } from './majors.ts';
import { readParameter } from './parameters.ts';
import type { Declaration, Input } from './route.ts';
import { baseUrlOf } from './urls.ts';

/** Guarded JSON, undefined without a body. */
export interface Given {
  readonly request: Request;
  readonly major: ServedMajor;
  readonly caller: Caller;
  readonly body: JsonValue | undefined;
}

/** Throws run_not_found, validation_error and what parameters refuse with. */
export async function readInput(
  { stores, config }: Pick<FacadeDeps, 'stores' | 'config'>,
  { about, body: declaredBody, parameters: declared = {} }: Declaration,
  { request, major, caller, body }: Given,
): Promise<Input> {
  const path = Object.fromEntries(
    Object.entries(request.params as Record<string, string>).map(([name, shown]) => {
      // What no field of the protocol names is shown in one form by every major.
      const kind = (ID_FIELDS as Partial<Record<string, IdKind>>)[name];
      return [name, kind ? major.ids.parse(kind, shown, caller) : shown];
    }),
  );
  const read = (run: RunRow | undefined): Input => ({
    ...{ caller, major, path, run, body: declaredBody?.parse(body) },
    baseUrl: baseUrlOf(request, config.publicUrl),
    parameters: Object.fromEntries(
      Object.entries(declared).map(([name, parameter]) => [
        name,
        readParameter(request, parameter.name ?? name, parameter),
      ]),
    ),
  });
  if (about === undefined) return read(undefined);
  let run: RunRow;
  try {
    run = await requireRun({ stores }, caller, path.runId ?? '');
  } catch (error) {
    if (about !== 'run-or-repeat' || request.get('Idempotency-Key') === undefined) throw error;
    return readRepeat(error, () => read(undefined));
  }
  return read(run);
}

/** What cannot be read repeats nothing: then it is said that there is no run. */
function readRepeat(gone: unknown, read: () => Input): Input {
  try {
    return read();
  } catch (error) {
    throw codeOf(error) === undefined ? error : gone;
  }
}
