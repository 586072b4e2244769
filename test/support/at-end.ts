// What a test file leaves to be closed or removed after its own last hooks (each-file.ts).
const actions: (() => Promise<void>)[] = [];

export function atEndOfFile(action: () => Promise<void>): void {
  actions.push(action);
}

/** The last first. */
export async function endFile(): Promise<void> {
  for (let action = actions.pop(); action; action = actions.pop()) await action();
}
