// What a promise is refused with, for tests.
import { codeOf } from '../../src/rules/errors.ts';

/** Of what the work is refused with. */
export async function codeThrownBy(work: Promise<unknown>): Promise<string | undefined> {
  return work.then(
    () => 'nothing thrown',
    (error: unknown) => codeOf(error),
  );
}
