// What a setup begins beside each other: where one part fails the others do not stay.
export type Undo = () => Promise<void>;

/** Waits for all; the function undoes them. Where one fails the others are undone, and its error is thrown. */
export async function allOrNone(starts: readonly Promise<Undo>[]): Promise<Undo> {
  const settled = await Promise.allSettled(starts);
  const undos = settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  const failure = settled.find((one) => one.status === 'rejected');
  if (failure !== undefined) {
    await Promise.allSettled(undos.map((undo) => undo()));
    throw failure.reason;
  }
  return async () => {
    await Promise.all(undos.map((undo) => undo()));
  };
}
