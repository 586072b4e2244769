// What the bench has started, to be ended in reverse order whatever happens; and where its parts log to.
import type { Logger } from '../src/ports/logger.ts';

export class Closing {
  readonly #steps: (() => Promise<unknown>)[] = [];
  #done: Promise<void> | undefined;

  add(stop: () => Promise<unknown>): void {
    this.#steps.unshift(stop);
  }

  /** Everything, once; a step that fails does not keep the others. */
  close(): Promise<void> {
    this.#done ??= (async () => {
      for (const stop of this.#steps) {
        await stop().catch((error: unknown) => process.stderr.write(`${String(error)}\n`));
      }
    })();
    return this.#done;
  }
}

const tell = (message: string, fields?: Record<string, unknown>) =>
  void process.stderr.write(`${message} ${JSON.stringify(fields ?? {})}\n`);

/** Warnings of the measured parts are shown: numbers beside them mean little. */
export const benchLogger: Logger = { debug() {}, info() {}, warn: tell, error: tell };
