// Live text of one block (RFC 0024, architecture §3.5): redacted with a held-back tail, channel by channel, and
// bounded, on its way to the log.
import type { DeltaPiece } from '../src/rules/deltas.ts';
import { utf8Length } from '../src/rules/json.ts';
import type { RedactorStream } from '../src/rules/redaction.ts';
import { within } from '../src/system/time.ts';
import type { LogRow } from '../src/ports/log.ts';
import { DeltaAppender, type AppenderPorts, type DeltaBlock } from './delta-appender.ts';

/** ms that a failing activity waits for what it said to reach the log. */
const ABANDON_GRACE_MS = 1_000;

export interface LiveBlock extends DeltaBlock {
  /** UTF-8 bytes of text that are streamed; what follows is not. */
  readonly maxBytes: number;
  /** Shown last where text was left out. */
  readonly notice?: DeltaPiece;
}

export interface DeltaPorts extends AppenderPorts {
  /** One stream for each channel. */
  readonly redacted: () => RedactorStream;
}

export class DeltaWriter {
  readonly #appender: DeltaAppender;
  /** By channel; '' for text without one. */
  readonly #streams = new Map<string, RedactorStream>();
  #room: number;
  #isFull = false;
  #isEnded = false;

  readonly #ports: DeltaPorts;
  readonly #block: LiveBlock;

  constructor(ports: DeltaPorts, block: LiveBlock) {
    this.#ports = ports;
    this.#block = block;

    this.#appender = new DeltaAppender(ports, block);
    this.#room = block.maxBytes;
  }

  /** Of a later try: takes the block over before anything is pushed; else the first piece does. */
  adopt(): Promise<void> {
    return this.#appender.adopt();
  }

  /** Takes a piece as it was said. Returns at once. */
  push({ text, channel }: DeltaPiece): void {
    this.#show({
      text: this.#streamOf(channel).push(text),
      ...(channel === undefined ? {} : { channel }),
    });
  }

  /** Nothing more would be shown. */
  get isOver(): boolean {
    return this.#isFull || !this.#appender.isStreaming;
  }

  /**
   * Shows the rest, closes the block for ever and returns its rows. Throws as the appender's close does; then it may be
   * closed again.
   */
  async close(): Promise<readonly LogRow[]> {
    if (!this.#isEnded) this.#showHeld((stream) => stream.end());
    this.#isEnded = true;
    return this.#appender.close();
  }

  /**
   * After a failure: lets what was said, the held-back tail too, reach the log within a grace, and leaves the block
   * open. Never throws.
   */
  async abandon(): Promise<void> {
    this.#showHeld((stream) => stream.cut());
    const drained = this.#appender.drain().catch(() => undefined);
    await within(ABANDON_GRACE_MS, drained, () => undefined);
    this.#appender.stop();
  }

  #showHeld(rest: (stream: RedactorStream) => string): void {
    for (const [channel, stream] of this.#streams) {
      this.#show({ text: rest(stream), ...(channel === '' ? {} : { channel }) });
    }
  }

  #streamOf(channel = ''): RedactorStream {
    const stream = this.#streams.get(channel) ?? this.#ports.redacted();
    this.#streams.set(channel, stream);
    return stream;
  }

  #show(piece: DeltaPiece): void {
    if (piece.text === '' || this.isOver) return;
    const text = this.#withinRoom(piece.text);
    const isTaken = text === '' || this.#appender.add({ ...piece, text });
    if (isTaken && text.length === piece.text.length) return;
    this.#isFull = true;
    if (this.#block.notice) this.#appender.addLast(this.#block.notice);
  }

  #withinRoom(text: string): string {
    const bytes = utf8Length(text);
    if (bytes <= this.#room) {
      this.#room -= bytes;
      return text;
    }
    let end = 0;
    for (const character of text) {
      this.#room -= utf8Length(character);
      if (this.#room < 0) break;
      end += character.length;
    }
    this.#room = 0;
    return text.slice(0, end);
  }
}
