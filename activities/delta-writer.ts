// Live deltas of one block (RFC 0024, design §3.5): redacted with a held-back tail, queued, and appended many per
// transaction while the model still speaks. Nobody waits per token; a slow log makes larger deltas, not a slow model.
// A later try adopts what is stored and streams on only while its own output equals it.
import { deltaKey, eventIdOf } from '../src/core/ids.ts';
import { utf8Length, type JsonObject } from '../src/core/json.ts';
import type { RedactorStream } from '../src/core/redaction.ts';
import type { Logger, LogRow, LogStore, NewDelta } from '../src/ports.ts';
import { DELTA_TYPE, deltaText } from './recorded-deltas.ts';

/** ms between two appends of one block. */
const FLUSH_INTERVAL_MS = 30;
/** Deltas per transaction. */
const MAX_BATCH = 256;
/** Deltas that wait for the log; above it new text joins the last one. */
const MAX_QUEUED = 512;
/** Deltas of one block; above it text joins until the next append. */
const MAX_DELTAS = 2_048;
/** Failed appends in a row after which streaming is given up; the end tries once more. */
const MAX_FAILED_APPENDS = 5;
/** ms before an append is tried again. */
const RETRY_APPEND_MS = 200;
/** ms that a failing activity waits for what it said to reach the log. */
const ABANDON_GRACE_MS = 1_000;

export interface DeltaBlock {
  readonly runId: string;
  readonly activityId: string;
  readonly nodeId: string;
  /** Temporal's try, from 1. */
  readonly tryNumber: number;
  /** Payload of every delta but `delta` and `sequence`. */
  readonly base: JsonObject;
  /** UTF-8 bytes of text that are streamed; what follows is not. */
  readonly maxBytes: number;
}

export interface DeltaPorts {
  readonly log: LogStore;
  readonly catchUp: (runId: string) => Promise<unknown>;
  readonly stream: RedactorStream;
  readonly logger: Logger;
}

export class DeltaWriter {
  private whole = '';
  private room: number;
  private queue: string[] = [];
  /** Deltas at the queue's front whose append failed: they may be stored, so no text joins them. */
  private maybeStored = 0;
  private nextK = 0;
  /** Stored text of earlier tries that this try has not yet repeated. */
  private toRepeat = '';
  private streaming = true;
  private opened = false;
  private caughtUp: Promise<unknown> | undefined;
  private pumping: Promise<void> | undefined;
  private timer: NodeJS.Timeout | undefined;
  private lastAppendMs = 0;
  private failedAppends = 0;

  private constructor(
    private readonly ports: DeltaPorts,
    private readonly block: DeltaBlock,
  ) {
    this.room = block.maxBytes;
  }

  /** For a later try: takes the block over and adopts what it holds. */
  static async open(ports: DeltaPorts, block: DeltaBlock): Promise<DeltaWriter> {
    const writer = new DeltaWriter(ports, block);
    if (block.tryNumber > 1) await writer.adopt();
    return writer;
  }

  /** All that was said so far, redacted; whole after `close`. */
  get text(): string {
    return this.whole;
  }

  /** Takes a piece as the model gives it. Returns at once. */
  push(piece: string): void {
    this.add(this.ports.stream.push(piece));
  }

  /**
   * Shows the rest, closes the block for ever and returns its rows. Throws when the log cannot be written; a block that
   * was never opened stays empty instead, for what is only shown live is no reason to ask the model again.
   */
  async close(): Promise<readonly LogRow[]> {
    this.add(this.ports.stream.end());
    this.failedAppends = 0;
    await this.drain().catch((error: unknown) => {
      if (this.opened) throw error;
      this.stop();
    });
    if (!this.opened) return [];
    return this.ports.log.closeBlock(this.block.runId, this.block.activityId);
  }

  /** After a failure: lets what was said reach the log within a grace, leaves the block open. Never throws. */
  async abandon(): Promise<void> {
    const grace = new Promise((resolve) => setTimeout(resolve, ABANDON_GRACE_MS).unref());
    await Promise.race([this.drain().catch(() => undefined), grace]);
    this.stop();
  }

  private stop(): void {
    this.streaming = false;
    this.queue = [];
    clearTimeout(this.timer);
  }

  private async adopt(): Promise<void> {
    const { runId, activityId, tryNumber } = this.block;
    this.opened = true;
    await this.catchUp();
    const outcome = await this.ports.log.appendDeltas(runId, activityId, tryNumber, []);
    const stored = await this.ports.log.storedDeltas(runId, activityId);
    this.nextK = stored.length;
    this.toRepeat = deltaText(stored);
    if (outcome.kind === 'refused') this.refused(outcome.reason);
  }

  private add(shown: string): void {
    this.whole += shown;
    const fresh = this.streaming ? this.beyondStored(this.withinRoom(shown)) : '';
    if (fresh === '') return;
    const total = this.nextK + this.queue.length;
    const last = this.queue.length - 1;
    if (last >= this.maybeStored && (last + 1 >= MAX_QUEUED || total >= MAX_DELTAS)) {
      this.queue[last] += fresh;
    } else this.queue.push(fresh);
    this.schedule();
  }

  private withinRoom(text: string): string {
    const bytes = utf8Length(text);
    if (bytes <= this.room) {
      this.room -= bytes;
      return text;
    }
    let end = 0;
    for (const character of text) {
      this.room -= utf8Length(character);
      if (this.room < 0) break;
      end += character.length;
    }
    this.room = 0;
    return text.slice(0, end);
  }

  /** The part of the text that is not stored yet; a difference ends the streaming. */
  private beyondStored(text: string): string {
    const same = Math.min(this.toRepeat.length, text.length);
    if (this.toRepeat.slice(0, same) !== text.slice(0, same)) {
      this.streaming = false;
      return '';
    }
    this.toRepeat = this.toRepeat.slice(same);
    return text.slice(same);
  }

  private schedule(): void {
    if (this.pumping || this.timer) return;
    const wait = Math.max(0, this.lastAppendMs + FLUSH_INTERVAL_MS - Date.now());
    this.timer = setTimeout(() => {
      this.timer = undefined;
      this.pump().catch((error: unknown) => this.failed(error));
    }, wait);
  }

  /** Appends everything queued now; one append at a time. */
  private pump(): Promise<void> {
    this.pumping ??= this.appendBatch().finally(() => {
      this.pumping = undefined;
      this.lastAppendMs = Date.now();
    });
    return this.pumping.then(() => {
      if (this.queue.length > 0) this.schedule();
    });
  }

  private async drain(): Promise<void> {
    clearTimeout(this.timer);
    // Set, so that nothing schedules while the rest goes out here.
    this.timer = setTimeout(() => undefined, 0);
    await this.pumping?.catch(() => undefined);
    while (this.queue.length > 0) await this.pump();
    clearTimeout(this.timer);
  }

  private failed(error: unknown): void {
    this.failedAppends++;
    const { runId } = this.block;
    this.ports.logger.warn('Deltas could not be appended.', { runId, error: String(error) });
    if (this.failedAppends > MAX_FAILED_APPENDS || this.timer) return;
    this.timer = setTimeout(() => {
      this.timer = undefined;
      this.pump().catch((again: unknown) => this.failed(again));
    }, RETRY_APPEND_MS);
  }

  private catchUp(): Promise<unknown> {
    this.caughtUp ??= this.ports.catchUp(this.block.runId).catch((error: unknown) => {
      this.caughtUp = undefined;
      throw error;
    });
    return this.caughtUp;
  }

  private async appendBatch(): Promise<void> {
    const { runId, activityId, tryNumber } = this.block;
    await this.catchUp();
    if (this.maybeStored > 0) await this.dropStored();
    const deltas = this.queue.slice(0, MAX_BATCH).map((delta, index) => this.deltaOf(delta, index));
    if (deltas.length === 0) return;
    // Text that arrives meanwhile must not join a delta that is on its way.
    const sent = this.queue.splice(0, deltas.length);
    this.opened = true;
    try {
      const outcome = await this.ports.log.appendDeltas(runId, activityId, tryNumber, deltas);
      this.failedAppends = 0;
      this.maybeStored = 0;
      this.nextK += deltas.length;
      if (outcome.kind === 'refused') this.refused(outcome.reason);
    } catch (error) {
      this.queue.unshift(...sent);
      this.maybeStored = sent.length;
      throw error;
    }
  }

  /** An append whose answer was lost may have been stored all the same. */
  private async dropStored(): Promise<void> {
    const { runId, activityId } = this.block;
    const stored = await this.ports.log.storedDeltas(runId, activityId);
    this.queue.splice(0, Math.max(0, stored.length - this.nextK));
    this.nextK = Math.max(this.nextK, stored.length);
    this.maybeStored = 0;
  }

  private deltaOf(delta: string, index: number): NewDelta {
    const { runId, activityId, nodeId, base } = this.block;
    const k = this.nextK + index;
    const key = deltaKey(activityId, k);
    const payload = JSON.stringify({ ...base, delta, sequence: k });
    const eventId = eventIdOf(runId, key);
    return {
      k,
      row: { runId, eventId, key, type: DELTA_TYPE, nodeId, payload, timestampMs: Date.now() },
    };
  }

  /** The block takes no more: closed by an earlier try or a seal, taken over by a later try, or the run has ended. */
  private refused(reason: string): void {
    const { runId, activityId } = this.block;
    this.ports.logger.debug('Live deltas are refused.', { runId, activityId, reason });
    this.stop();
  }
}
