// What a test file leaves to be closed or removed after its own last hooks (each-file.ts).
const actions: (() => Promise<void>)[] = [];

export function atEndOfFile(action: () => Promise<void>): void {
  actions.push(action);
}

/** The last first. Each runs, whatever the others do; throws what was thrown. */
export async function endFile(): Promise<void> {
  const errors: unknown[] = [];
  for (let action = actions.pop(); action; action = actions.pop()) {
    try {
      await action();
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 1) throw new AggregateError(errors, errors.map(String).join('; '));
  if (errors.length > 0) throw errors[0];
}
