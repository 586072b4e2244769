// One piece of work per id at a time; whoever asks while it runs gets the next one, which began after the question
// (architecture §3.3). Any number of callers cost at most one more run of the work.

interface Slot<T> {
  readonly current: Promise<T>;
  next?: Promise<T>;
}

/**
 * The returned function never joins work that began before it was called. Nothing is kept of idle ids; `idOf` says which
 * questions are about the same.
 */
export function coalesce<Q, T>(
  work: (question: Q) => Promise<T>,
  idOf: (question: Q) => string,
): (question: Q) => Promise<T> {
  const slots = new Map<string, Slot<T>>();
  const begin = (question: Q): Promise<T> => {
    const id = idOf(question);
    const slot: Slot<T> = { current: work(question) };
    slots.set(id, slot);
    const settled = () => {
      if (slots.get(id) === slot && !slot.next) slots.delete(id);
    };
    slot.current.then(settled, settled);
    return slot.current;
  };
  return (question) => {
    const slot = slots.get(idOf(question));
    if (!slot) return begin(question);
    const after = () => begin(question);
    slot.next ??= slot.current.then(after, after);
    return slot.next;
  };
}
