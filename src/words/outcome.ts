// What became of an answer, for its sender: the same words on the page and at the command line (interrupt.md).
import type { ErrorCode } from '../rules/errors.ts';

/** By the status that the host gives. */
export const ANSWER_NOTICES = {
  resolved: 'Your answer is taken.',
  /** Of a turn, a question back and a vote; a vote of who has voted so already is not counted. */
  open: 'What you sent is noted. The question stays open.',
} as const;

export const ANSWERED_ALREADY = 'You have answered this already.';

/** What became of a question that somebody still wanted to answer. */
export const OVER: Partial<Readonly<Record<ErrorCode, string>>> = {
  interrupt_already_resolved: 'Somebody else has answered this. Your answer was not taken.',
  interrupt_expired: 'The time for this answer is over: nobody answered in time.',
  interrupt_cancelled: 'The run was cancelled: it waits for no answer any more.',
  interrupt_gone: 'The run has ended or gone on without an answer to this.',
};
