// Splits a model's streamed text into reasoning, which is shown as it comes, and final output, which is not
// (architecture §5: assistant text before a call or decision is the reasoning). `<think>` blocks are reasoning; the final output
// begins where a line begins with `{` or a code fence. Thoughts of other forms, or that the model's template has opened,
// are passed over where decisions are read (decision-text.ts).

const OPEN = '<think>';
const CLOSE = '</think>';
/** Where prose on a line ends. */
const BREAK = /\n|<think>/;
const FINAL = /^[ \t]*(?:\{|```)/;
/** Beginnings of a line that may still become the final output's first line. */
const UNDECIDED = /^[ \t]*(?:`{0,2})$/;
/** Blanks at the start of a line, in characters, after which no final output is waited for. */
const MAX_BLANKS = 1024;

export class OutputSplitter {
  /** Text not decided yet: at most an unfinished tag or the blank start of a line. */
  #pending = '';
  #thinking = false;
  #atLineStart = true;
  #finalText: string | undefined;
  #prose = '';

  readonly #onReasoning: (piece: string) => void;

  constructor(onReasoning: (piece: string) => void) {
    this.#onReasoning = onReasoning;
  }

  push(text: string): void {
    this.#pending += text;
    while (this.#step());
  }

  /** All that was said outside of thoughts, the final output included. */
  get said(): string {
    return this.#prose + (this.#finalText ?? '');
  }

  /** The final output. What was neither shown nor final is shown now. */
  end(): string {
    const rest = this.#pending;
    if (!this.#thinking && /^\s*`+$/.test(rest)) this.#finalText ??= '';
    if (this.#finalText === undefined) this.#show(rest.length);
    else this.#finalText += rest;
    this.#pending = '';
    return this.#finalText ?? '';
  }

  /** One decision over `pending`; false when more text is needed. */
  #step(): boolean {
    if (this.#pending === '') return false;
    if (this.#finalText !== undefined) {
      this.#finalText += this.#pending;
      this.#pending = '';
      return false;
    }
    if (this.#thinking) return this.#think();
    if (this.#atLineStart) {
      if (FINAL.test(this.#pending)) {
        this.#finalText = '';
        return true;
      }
      if (this.#pending.length <= MAX_BLANKS && UNDECIDED.test(this.#pending)) return false;
    }
    return this.#showProse();
  }

  #think(): boolean {
    const at = this.#pending.indexOf(CLOSE);
    if (at >= 0) {
      this.#show(at);
      this.#pending = this.#pending.slice(CLOSE.length);
      this.#thinking = false;
      this.#atLineStart = true;
      return true;
    }
    this.#show(this.#pending.length - partialTag(this.#pending, CLOSE));
    return false;
  }

  #showProse(): boolean {
    const at = this.#pending.search(BREAK);
    if (at >= 0) {
      const isLine = this.#pending.startsWith('\n', at);
      this.#show(isLine ? at + 1 : at);
      if (isLine) this.#atLineStart = true;
      else this.#beginThought();
      return true;
    }
    const partial = partialTag(this.#pending, OPEN);
    if (partial < this.#pending.length) this.#atLineStart = false;
    this.#show(this.#pending.length - partial);
    return false;
  }

  #beginThought(): void {
    this.#pending = this.#pending.slice(OPEN.length);
    this.#thinking = true;
  }

  #show(end: number): void {
    if (end === 0) return;
    const shown = this.#pending.slice(0, end);
    if (!this.#thinking) this.#prose += shown;
    this.#onReasoning(shown);
    this.#pending = this.#pending.slice(end);
  }
}

/** Length of the longest end of `text` that may become `tag`. */
function partialTag(text: string, tag: string): number {
  for (let length = Math.min(tag.length - 1, text.length); length > 0; length--) {
    if (tag.startsWith(text.slice(-length))) return length;
  }
  return 0;
}
