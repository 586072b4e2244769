// Assertions about what must never be lost, doubled or shown: their failure is called Broken, and `npm test` never tries it again.

export async function neverByChance(hold: () => Promise<void> | void): Promise<void> {
  try {
    await hold();
  } catch (error) {
    if (error instanceof Error && error.name === 'AssertionError') error.name = 'Broken';
    throw error;
  }
}
