// What a run's status is called, with the mark that stands for it where there is no room.
import type { RunStatus } from '../rules/status.ts';
import { printable } from './printable.js';

export interface StatusWords {
  readonly mark: string;
  readonly text: string;
}

export const STATUS_WORDS: Readonly<Record<RunStatus, StatusWords>> = {
  pending: { mark: '…', text: 'Starting' },
  running: { mark: '▶', text: 'Running' },
  paused: { mark: '⏸', text: 'Paused' },
  'waiting-approval': { mark: '●', text: 'Waiting for you' },
  'waiting-input': { mark: '●', text: 'Waiting for an answer' },
  'waiting-external': { mark: '◌', text: 'Waiting for another system' },
  cancelling: { mark: '…', text: 'Being cancelled' },
  completed: { mark: '✓', text: 'Completed' },
  failed: { mark: '✕', text: 'Failed' },
  cancelled: { mark: '–', text: 'Cancelled' },
};

/** Of a status that this build does not know, which a newer one may store, its name. */
export function statusWords(status: string): StatusWords {
  return Object.hasOwn(STATUS_WORDS, status)
    ? STATUS_WORDS[status as RunStatus]
    : { mark: '?', text: printable(status) };
}
