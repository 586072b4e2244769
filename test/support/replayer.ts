// Replays histories of runs with the workflow code of today. The SDK starts a worker for each call, which costs more than most
// replays: here the histories of a test file go through one worker for each bundle, one after the other.
import type { DataConverter } from '@temporalio/client';
import { Worker, type InjectedSinks, type ReplayWorkerOptions } from '@temporalio/worker';
import type { Sinks } from '@temporalio/workflow';
import type { temporal } from '@temporalio/proto';
import { withWorkflowThreads } from '../../src/adapters/temporal/workflow-threads.ts';
import type { JournalSinks } from '../../workflows/interceptors.ts';
import { atEndOfFile } from './at-end.ts';

type History = temporal.api.history.v1.IHistory;
type Bundle = NonNullable<ReplayWorkerOptions['workflowBundle']>;

interface Code {
  readonly bundle: Bundle;
  /** The same object for the same keys. */
  readonly dataConverter?: DataConverter | undefined;
  readonly sinks?: InjectedSinks<Sinks>;
}

export interface Replayed {
  readonly workflowId: string;
  readonly history: History;
}

const SILENT: InjectedSinks<JournalSinks> = {
  journal: { hint: { fn: () => {}, callDuringReplay: false } },
};

export class Replayer {
  readonly #results: AsyncIterator<{ readonly error?: Error | undefined }>;
  /** What the worker takes next; it asks when it is asked for a result. */
  #next: Replayed | undefined;
  /** Ends when the replay before it has. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor({ bundle, dataConverter, sinks = SILENT }: Code) {
    const options = { workflowBundle: bundle, sinks, ...(dataConverter && { dataConverter }) };
    this.#results = Worker.runReplayHistories(options, this.#histories())[Symbol.asyncIterator]();
  }

  async *#histories(): AsyncGenerator<Replayed> {
    while (this.#next) yield this.#next;
  }

  /** Resolves to why the code of today cannot go on with it, if it cannot. */
  replay(next: Replayed): Promise<Error | undefined> {
    const replaying = this.#turn.then(async () => {
      const result = await this.#ask(next);
      if (result.done) throw new Error('the worker of the replays has ended');
      return result.value.error;
    });
    this.#turn = replaying.catch(() => undefined);
    return replaying;
  }

  async close(): Promise<void> {
    await this.#turn;
    await this.#ask(undefined);
  }

  #ask(next: Replayed | undefined) {
    this.#next = next;
    return withWorkflowThreads(false, () => this.#results.next());
  }
}

/** A worker of its own, until the end of the test file. */
export function openReplayer(code: Code): Replayer {
  const replayer = new Replayer(code);
  atEndOfFile(() => replayer.close());
  return replayer;
}

const replayers = new Map<Bundle | string, Map<DataConverter | undefined, Replayer>>();

/** Resolves to why the code cannot go on with this history; undefined when it can. */
export async function replay(code: Code, replayed: Replayed): Promise<Error | undefined> {
  const key = 'codePath' in code.bundle ? code.bundle.codePath : code.bundle;
  const ofBundle = replayers.get(key) ?? new Map<DataConverter | undefined, Replayer>();
  replayers.set(key, ofBundle);
  let replayer = ofBundle.get(code.dataConverter);
  if (!replayer) {
    replayer = openReplayer(code);
    ofBundle.set(code.dataConverter, replayer);
    atEndOfFile(async () => void ofBundle.delete(code.dataConverter));
  }
  return replayer.replay(replayed);
}
