// One piece of work per id at a time; whoever asks while it runs gets the next one, which began after the question
// (design §3.3). Any number of callers cost at most one more run of the work.

interface Slot<T> {
  readonly current: Promise<T>;
  next?: Promise<T>;
}

/** The returned function never joins work that began before it was called. Nothing is kept of idle ids. */
export function coalesce<T>(work: (id: string) => Promise<T>): (id: string) => Promise<T> {
  const slots = new Map<string, Slot<T>>();
  const begin = (id: string): Promise<T> => {
    const slot: Slot<T> = { current: work(id) };
    slots.set(id, slot);
    const settled = () => {
      if (slots.get(id) === slot && !slot.next) slots.delete(id);
    };
    slot.current.then(settled, settled);
    return slot.current;
  };
  return (id) => {
    const slot = slots.get(id);
    if (!slot) return begin(id);
    const after = () => begin(id);
    slot.next ??= slot.current.then(after, after);
    return slot.next;
  };
}
