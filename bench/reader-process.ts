// The other end of bench/sse-reader.ts: one client process, one stream at a time.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Closing } from './closing.ts';
import type { ReadAnswer, ReadFrame, ReadOrder } from './sse-reader.ts';

const READER = fileURLToPath(new URL('./sse-reader.ts', import.meta.url));

export interface ReaderProcess {
  /** Frames of a whole stream; resolves when it ends. */
  read(order: ReadOrder): Promise<readonly ReadFrame[]>;
  stop(): Promise<void>;
}

export function startReader(closing: Closing): ReaderProcess {
  const child = fork(READER, {
    execArgv: ['--import', 'tsx'],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const stop = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, 'exit');
    child.kill('SIGTERM');
    await gone;
  };
  closing.add(stop);
  return {
    async read(order) {
      const answered = new Promise<ReadAnswer>((resolve) => {
        const gone = () => resolve({ frames: [], error: 'the reader has ended' });
        child.once('exit', gone);
        child.once('message', (answer) => {
          child.off('exit', gone);
          resolve(answer as ReadAnswer);
        });
      });
      child.send(order);
      const { frames, error } = await answered;
      if (error !== undefined) throw new Error(error);
      return frames;
    },
    stop,
  };
}
