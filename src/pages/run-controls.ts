// What may be done with a run besides answering it: hold it, let it go on, cancel it, start another like it. Each is a
// plain form, shown only while it applies; a cancel is asked for once more.
import type { RunStatus } from '../rules/status.ts';
import { escapeExact } from './timeline-html.js';

export type RunControl = 'pause' | 'resume' | 'skip' | 'cancel';

export interface RunControls {
  /** Addresses that take the forms. */
  readonly urls: Readonly<Record<RunControl, string>>;
  /** The form that starts another run with the inputs of this one. */
  readonly anotherUrl: string;
  /** The clock of a rehearsal may be moved here. */
  readonly canSkip?: boolean;
  /** Of who is signed in; the page itself may have been opened by a link. */
  readonly csrfToken: string;
}

const UNDER_WAY: readonly RunControl[] = ['skip', 'pause', 'cancel'];

const OFFERED: Readonly<Record<RunStatus, readonly RunControl[]>> = {
  pending: UNDER_WAY,
  running: UNDER_WAY,
  'waiting-approval': UNDER_WAY,
  'waiting-input': UNDER_WAY,
  'waiting-external': UNDER_WAY,
  paused: ['resume', 'cancel'],
  cancelling: [],
  completed: [],
  failed: [],
  cancelled: [],
};

/** The forms that apply in this status. `data-offers` tells the script whether they are others than before. */
export function renderControls(
  { urls, anotherUrl, csrfToken, canSkip = false }: RunControls,
  status: RunStatus,
): string {
  const csrf = `<input type="hidden" name="csrf" value="${escapeExact(csrfToken)}">`;
  const form = (control: RunControl, inside: string): string =>
    `<form method="post" action="${escapeExact(urls[control])}">${csrf}${inside}</form>`;
  const forms: Readonly<Record<RunControl, string>> = {
    pause: form('pause', '<button>Pause</button>'),
    resume: form('resume', '<button class="primary">Resume</button>'),
    skip: SKIPS.map(([name, value, words]) =>
      form('skip', `<button name="${name}" value="${value}">${words}</button>`),
    ).join(''),
    cancel: `<details class="cancel"><summary>Cancel the run…</summary>${form('cancel', CANCEL)}</details>`,
  };
  const offered = OFFERED[status].filter((control) => control !== 'skip' || canSkip);
  return `<div class="controls" data-offers="${offered.join(' ')}">${offered.map((control) => forms[control]).join('')}<a href="${escapeExact(anotherUrl)}">Start another like this</a></div>`;
}

const DAY_MS = 24 * 3600 * 1000;
/** Fields of a RunSkipRequest. */
const SKIPS = [
  ['to', 'next-deadline', 'Skip to the deadline'],
  ['forMs', 3 * DAY_MS, 'Skip 3 days'],
] as const;

const CANCEL = `<p>What runs is stopped, and nothing new begins. What was done stays done: nothing is undone. A cancelled run does not go on again.</p>
<label>Reason (optional)<textarea name="reason" rows="2" maxlength="4096"></textarea></label>
<button class="danger">Cancel the run now</button>`;
