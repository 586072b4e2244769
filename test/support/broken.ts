// Assertions about what must never be lost, doubled or shown: their failure is called Broken, and `npm test` never tries it again.

const BROKEN = 'Broken';

/** Calls a failed assertion of `hold` Broken; what else it throws stays as it is. */
export async function neverByChance(hold: () => Promise<void> | void): Promise<void> {
  try {
    await hold();
  } catch (error) {
    throw isAssertion(error) ? broken(error) : error;
  }
}

/** Whether a failure that was kept as text was Broken. */
export function tellsOfBroken(text: string): boolean {
  return text.includes(`${BROKEN}: `);
}

type Assertion = Error & { readonly actual?: unknown; readonly expected?: unknown };

function isAssertion(error: unknown): error is Assertion {
  return error instanceof Error && error.name === 'AssertionError';
}

/** Another error: the name of an assertion cannot be changed in each library. vitest shows the difference of the two values. */
function broken({ message, stack = '', actual, expected }: Assertion): Error {
  const error = new Error(message);
  error.stack = stack.replace(/^\w+(?: \[\w+\])?/, BROKEN);
  return Object.assign(error, { name: BROKEN, actual, expected });
}
