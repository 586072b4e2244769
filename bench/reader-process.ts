// The other end of bench/sse-reader.ts: one client process, any number of streams.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { TYPESCRIPT } from '../src/system/compiled.ts';
import type { Closing } from './closing.ts';
import type { ReadAnswer, ReadFrame, ReadOrder } from './sse-reader.ts';

const READER = fileURLToPath(new URL('./sse-reader.ts', import.meta.url));

export interface ReaderProcess {
  /** Frames of a whole stream; resolves when it ends. */
  read(asked: Omit<ReadOrder, 'order'>): Promise<readonly ReadFrame[]>;
  stop(): Promise<void>;
}

export function startReader(closing: Closing): ReaderProcess {
  const child = fork(READER, {
    execArgv: ['--import', TYPESCRIPT],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const stop = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, 'exit');
    child.kill('SIGTERM');
    await gone;
  };
  closing.add(stop);
  const answers = new Map<number, (answer: ReadAnswer) => void>();
  child.on('message', (answer: ReadAnswer) => {
    answers.get(answer.order)?.(answer);
    answers.delete(answer.order);
  });
  child.once('exit', () => {
    for (const [order, answer] of answers)
      answer({ order, frames: [], error: 'the reader has ended' });
  });
  let orders = 0;
  return {
    async read(asked) {
      const order = orders++;
      const answered = new Promise<ReadAnswer>((resolve) => answers.set(order, resolve));
      child.send({ order, ...asked });
      const { frames, error } = await answered;
      if (error !== undefined) throw new Error(error);
      return frames;
    },
    stop,
  };
}
