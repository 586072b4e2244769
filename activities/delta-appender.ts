// Live deltas of one block on their way to the log (architecture §3.5): queued, and appended many per transaction while
// the model or the tool goes on. Nobody waits per piece; a slow log makes larger deltas. A later try adopts what is
// stored and appends only while its own text equals it, channel by channel.
//
// | state     | is so while                          | text that comes            | left by                                   |
// |-----------|--------------------------------------|----------------------------|-------------------------------------------|
// | to adopt  | a later try has appended nothing yet | is queued as it is         | the first append: the block is taken over |
// | repeating | stored text is not all repeated      | is dropped where equal     | the end of it; a difference: ended        |
// | live      | the queue is worked off              | is queued for an append    | a failed append; refused or stopped: ended |
// | unsure    | an append failed, stored or not      | is queued                  | what is stored is looked for, then live   |
// | ended     | nothing more is streamed             | is for the closing record  | -                                         |
import type { EventType } from '../src/rules/events.ts';
import { deltaPayload, type DeltaForm, type DeltaPiece } from '../src/rules/deltas.ts';
import { codeOf, HostError, isOutage } from '../src/rules/errors.ts';
import { causeFields, deltaKey, eventIdOf } from '../src/rules/ids.ts';
import type { CausedBy } from '../src/rules/journal.ts';
import type { LogRow, LogStore, NewDelta } from '../src/ports/log.ts';
import type { RunRef } from '../src/ports/runs.ts';
import type { Logger } from '../src/ports/logger.ts';
import { deltaTexts } from './recorded-deltas.ts';

/** ms between two appends of one block. */
const FLUSH_INTERVAL_MS = 30;
/** Deltas per transaction. */
const MAX_BATCH = 256;
/** Deltas that wait for the log; above it new text joins the last one of its channel. */
const MAX_QUEUED = 512;
/** Deltas of one block; above it text joins until the next append. */
const MAX_DELTAS = 2_048;
/** Failed appends in a row after which streaming is given up; the end tries once more. */
const MAX_FAILED_APPENDS = 5;
/** ms before an append is tried again. */
const RETRY_APPEND_MS = 200;

export interface DeltaBlock extends DeltaForm {
  readonly run: RunRef;
  readonly activityId: string;
  readonly nodeId: string;
  /** Of each delta. */
  readonly causedBy: CausedBy;
  /** Temporal's try, from 1. */
  readonly tryNumber: number;
  /** Event type of its deltas. */
  readonly type: EventType;
  /** Deltas that it takes at most; absent: MAX_DELTAS bounds them only loosely. */
  readonly maxDeltas?: number;
}

export interface AppenderPorts {
  readonly log: LogStore;
  readonly catchUp: (run: RunRef) => Promise<{ readonly nextSequence: number }>;
  readonly logger: Logger;
}

export class DeltaAppender {
  #queue: DeltaPiece[] = [];
  /** Taken from the queue and numbered from nextK: on their way, or sent and perhaps stored. */
  #sending: readonly DeltaPiece[] = [];
  #isUnsure = false;
  #nextK = 0;
  #adopted: boolean;
  /** By channel: stored text of earlier tries that this try has not yet repeated. */
  #toRepeat = new Map<string, string>();
  #streaming = true;
  #isDifferent = false;
  #opened = false;
  #caughtUp: Promise<boolean> | undefined;
  #pumping: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #lastAppendMs = 0;
  #failedAppends = 0;

  readonly #ports: AppenderPorts;
  readonly #block: DeltaBlock;

  constructor(ports: AppenderPorts, block: DeltaBlock) {
    this.#ports = ports;
    this.#block = block;

    this.#adopted = block.tryNumber === 1;
  }

  /** The block takes more text. */
  get isStreaming(): boolean {
    return this.#streaming;
  }

  /**
   * Takes a piece that may be shown. Returns at once; false when the block has `maxDeltas` and the piece would be one
   * more.
   */
  add(piece: DeltaPiece): boolean {
    const fresh = this.#withoutStored(piece);
    if (!fresh) return true;
    const count = this.#nextK + this.#sending.length + this.#queue.length;
    const isCrowded = this.#queue.length >= MAX_QUEUED || count >= MAX_DELTAS;
    const at = isCrowded
      ? this.#queue.findLastIndex(({ channel }) => channel === piece.channel)
      : -1;
    const open = this.#queue[at];
    if (!open && count >= (this.#block.maxDeltas ?? Infinity)) return false;
    if (open) this.#queue[at] = { ...open, text: open.text + fresh.text };
    else this.#queue.push(fresh);
    this.#schedule();
    return true;
  }

  /** Takes one more delta, whatever there is, and then nothing else. */
  addLast(piece: DeltaPiece): void {
    const fresh = this.#withoutStored(piece);
    this.#streaming = false;
    if (!fresh) return;
    this.#queue.push(fresh);
    this.#schedule();
  }

  /** Of a later try: takes the block over, learns what it holds and leaves that out. Once. */
  async adopt(): Promise<void> {
    if (this.#adopted) return;
    const { run, activityId, tryNumber } = this.#block;
    if (!(await this.#isCaughtUp())) return;
    const outcome = await this.#ports.log.appendDeltas(run, activityId, tryNumber, []);
    const stored = await this.#ports.log.storedDeltas(run, activityId);
    this.#opened = true;
    this.#adopted = true;
    this.#nextK = stored.length;
    this.#toRepeat = deltaTexts(stored);
    this.#queue = this.#queue.flatMap((piece) => this.#beyondStored(piece) ?? []);
    if (outcome.kind === 'refused') this.#refused(outcome.reason);
  }

  /**
   * Appends the rest, closes the block for ever and returns its rows. Throws when the log cannot be written; a block
   * that was never opened stays empty instead, for what is only shown live is no reason to do the work again.
   */
  async close(): Promise<readonly LogRow[]> {
    const { run, activityId, tryNumber } = this.#block;
    this.#failedAppends = 0;
    await this.drain().catch((error: unknown) => {
      if (this.#opened || tryNumber > 1) throw error;
    });
    this.stop();
    // Whatever an earlier try has opened, and one that still lives would open: from now on it is closed.
    if (!this.#opened && tryNumber === 1) return [];
    return this.#ports.log.closeBlock(run, activityId);
  }

  async drain(): Promise<void> {
    clearTimeout(this.#timer);
    // Set, so that nothing schedules while the rest goes out here.
    this.#timer = setTimeout(() => undefined, 0);
    await this.#pumping?.catch(() => undefined);
    while (this.#queue.length + this.#sending.length > 0) await this.#pump();
    clearTimeout(this.#timer);
  }

  stop(): void {
    this.#streaming = false;
    this.#queue = [];
    this.#sending = [];
    clearTimeout(this.#timer);
  }

  /** Before the adoption the piece as it is: it is compared then. */
  #withoutStored(piece: DeltaPiece): DeltaPiece | undefined {
    if (!this.#streaming) return undefined;
    return this.#adopted ? this.#beyondStored(piece) : piece;
  }

  /** The part of the piece that is not stored yet; a difference ends the streaming. */
  #beyondStored(piece: DeltaPiece): DeltaPiece | undefined {
    if (this.#isDifferent) return undefined;
    const { channel = '', text } = piece;
    const stored = this.#toRepeat.get(channel) ?? '';
    const same = Math.min(stored.length, text.length);
    if (stored.slice(0, same) !== text.slice(0, same)) {
      this.#isDifferent = true;
      this.#streaming = false;
      return undefined;
    }
    this.#toRepeat.set(channel, stored.slice(same));
    return same === text.length ? undefined : { ...piece, text: text.slice(same) };
  }

  #schedule(): void {
    if (this.#pumping || this.#timer) return;
    const wait = Math.max(0, this.#lastAppendMs + FLUSH_INTERVAL_MS - Date.now());
    this.#pumpAfter(wait);
  }

  #pumpAfter(waitMs: number): void {
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#pump().catch((error: unknown) => this.#failed(error));
    }, waitMs);
  }

  /** Appends everything queued now; one append at a time. */
  #pump(): Promise<void> {
    this.#pumping ??= this.#appendBatch().finally(() => {
      this.#pumping = undefined;
      this.#lastAppendMs = Date.now();
    });
    return this.#pumping.then(() => {
      if (this.#queue.length > 0) this.#schedule();
    });
  }

  #failed(error: unknown): void {
    this.#failedAppends++;
    const { runId } = this.#block.run;
    this.#ports.logger.warn('Deltas could not be appended.', { runId, error: String(error) });
    if (this.#failedAppends > MAX_FAILED_APPENDS || this.#timer) return;
    this.#pumpAfter(RETRY_APPEND_MS);
  }

  /**
   * While the host has not noted the run's start its log cannot be told: no delta may come before `run.started`. False where
   * the log cannot be told and no outage is why: the streaming ends, for what is only shown live fails no step. Throws
   * what is an outage, and run_not_found.
   */
  #isCaughtUp(): Promise<boolean> {
    this.#caughtUp ??= this.#catchUp().catch((error: unknown) => {
      this.#caughtUp = undefined;
      const code = codeOf(error);
      if (code !== undefined && (isOutage(code) || code === 'run_not_found')) throw error;
      const { runId } = this.#block.run;
      const message = 'The log of the run cannot be told: nothing more of this step is shown live.';
      this.#ports.logger.warn(message, { runId, error: String(error) });
      this.stop();
      return false;
    });
    return this.#caughtUp;
  }

  async #catchUp(): Promise<true> {
    const { nextSequence } = await this.#ports.catchUp(this.#block.run);
    if (nextSequence > 0) return true;
    const reason = 'The start of the run is not noted yet.';
    throw new HostError('service_unavailable', { reason });
  }

  async #appendBatch(): Promise<void> {
    const { run, activityId, tryNumber } = this.#block;
    if (!(await this.#isCaughtUp())) return;
    await this.adopt();
    if (this.#isUnsure) await this.#dropStored();
    if (this.#sending.length === 0) this.#sending = this.#queue.splice(0, MAX_BATCH);
    if (this.#sending.length === 0) return;
    const deltas = this.#sending.map((piece, index) => this.#deltaOf(piece, index));
    this.#opened = true;
    this.#isUnsure = true;
    const outcome = await this.#ports.log.appendDeltas(run, activityId, tryNumber, deltas);
    this.#isUnsure = false;
    this.#failedAppends = 0;
    this.#nextK += deltas.length;
    this.#sending = [];
    if (outcome.kind === 'refused') this.#refused(outcome.reason);
  }

  /** An append whose answer was lost may have been stored all the same. */
  async #dropStored(): Promise<void> {
    const { run, activityId } = this.#block;
    const stored = await this.#ports.log.storedDeltas(run, activityId);
    this.#sending = this.#sending.slice(Math.max(0, stored.length - this.#nextK));
    this.#nextK = Math.max(this.#nextK, stored.length);
    this.#isUnsure = false;
  }

  #deltaOf(piece: DeltaPiece, index: number): NewDelta {
    const { run, activityId, nodeId, causedBy, type } = this.#block;
    const { runId } = run;
    const k = this.#nextK + index;
    const key = deltaKey(activityId, k);
    const payload = deltaPayload(this.#block, piece, k);
    const eventId = eventIdOf(runId, key);
    const place = { nodeId, ...causeFields(runId, causedBy) };
    return { k, row: { runId, eventId, key, type, ...place, payload, timestampMs: Date.now() } };
  }

  /** The block takes no more: closed by an earlier try or a seal, taken over by a later try, or the run has ended. */
  #refused(reason: string): void {
    const { run, activityId } = this.#block;
    this.#ports.logger.debug('Live deltas are refused.', { runId: run.runId, activityId, reason });
    this.stop();
  }
}
