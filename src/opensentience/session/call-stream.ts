// The stream of one call (seed 004 §4.3.2): `seq` from 1 by one, bounded, nothing after `done`. Pure.
import { unkeptIn } from '../../rules/json-text.ts';
import type { ToolProgress } from '../../ports/tools.ts';
import type { SessionRules } from './effects.ts';
import type { AgentPayloads } from '../messages.ts';

type StreamPayload = AgentPayloads['agent.tool.stream'];

/** What is wrong with a message of a stream. Only a gap's own message is still used: what is missing never comes. */
export type StreamFault = 'repeat' | 'gap' | 'after_done' | 'too_long' | 'inexact';

export interface StreamStep {
  readonly progress?: ToolProgress;
  readonly fault?: { readonly kind: StreamFault; readonly expected: number; readonly seq: number };
}

export class CallStream {
  readonly #rules: SessionRules;
  #lastSeq = 0;
  #messages = 0;
  #bytes = 0;
  #done = false;
  #full = false;

  constructor(rules: SessionRules) {
    this.#rules = rules;
  }

  take(payload: StreamPayload): StreamStep {
    const { seq } = payload;
    const expected = this.#lastSeq + 1;
    const faulty = (kind: StreamFault): StreamStep => ({ fault: { kind, expected, seq } });
    if (this.#done) return faulty('after_done');
    if (seq < expected) return faulty('repeat');
    this.#lastSeq = seq;
    this.#done = payload.done === true;
    const gap = seq > expected ? faulty('gap') : {};
    // Said once; what follows is dropped.
    if (this.#full) return gap;
    const { channel, data } = payload;
    const json = channel === 'partial_result' ? (data.json ?? {}) : undefined;
    const text = json ? JSON.stringify(json) : (data.text ?? '');
    this.#messages += 1;
    this.#bytes += Buffer.byteLength(text);
    const { maxStreamMessages, maxStreamBytes } = this.#rules.limits;
    this.#full = this.#messages > maxStreamMessages || this.#bytes > maxStreamBytes;
    if (this.#full) return faulty('too_long');
    // Dropped by itself: what is shown of a call is what its tool said.
    if (json && unkeptIn(json)) return faulty('inexact');
    const { redactor } = this.#rules;
    const shown = json ? JSON.stringify(redactor.json(json)) : redactor.text(text);
    return { ...gap, progress: { channel, text: shown } };
  }
}
