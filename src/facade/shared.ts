// An answer that serves all who ask at about the same time.

/** One call at a time, whose answer is kept for `keepMs`; a failure is not kept. */
export function shared<T>(ask: () => Promise<T>, keepMs: number): () => Promise<T> {
  let asked: Promise<T> | undefined;
  const forget = (): void => void (asked = undefined);
  return () => {
    if (asked) return asked;
    const answer = ask();
    asked = answer;
    answer.then(() => setTimeout(forget, keepMs).unref(), forget);
    return answer;
  };
}
