// What who is signed in does with a run by its page: pause, resume, cancel. Plain forms; each goes the way of the API's
// route, and what the run refuses is told on its page.
import type { Router } from 'express';
import type { HostError } from '../../rules/errors.ts';
import { codeOf, ERRORS, type ErrorCode } from '../../rules/errors.ts';
import { NEXT_DEADLINE } from '../../rules/messages.ts';
import { TERMINAL_STATUSES } from '../../rules/status.ts';
import { principalOf } from '../../rules/subject.ts';
import type { RunControl } from '../../pages/index.ts';
import type { RunRow } from '../../ports/runs.ts';
import { cancelRun } from '../../runs/cancel.ts';
import { requireRun } from '../../runs/find.ts';
import { messageOnce, type Delivery } from '../../runs/messages.ts';
import { holdRun } from '../../runs/pause.ts';
import { skipTime } from '../../runs/skip.ts';
import { mustBeValid } from '../../wire/checked.ts';
import { validate } from '../../wire/validators.ts';
import { FIRST } from '../majors.ts';
import { page, parameter, signedIn, type PageDeps, type SignedInCall } from './page.ts';
import { sendRunPage } from './run-page.ts';

/** What becomes of a run, as a notice of its page (run-page.ts). */
type Outcome = 'pausing' | 'resumed' | 'skipping' | 'cancelling' | 'ended';

type Act = (
  deps: PageDeps,
  asked: { readonly row: RunRow; readonly call: SignedInCall },
  delivery: Delivery,
) => Promise<Outcome>;

const ACTS: Readonly<Record<RunControl, Act>> = {
  async pause(deps, { row }, delivery) {
    await holdRun(
      deps,
      { row, hold: { kind: 'pause', drainPolicy: 'drain-current-node' } },
      delivery,
    );
    return 'pausing';
  },
  async resume(deps, { row }, delivery) {
    await holdRun(deps, { row, hold: { kind: 'resume' } }, delivery);
    return 'resumed';
  },
  async skip(deps, { row, call: { form } }, delivery) {
    const { forMs, to } = form;
    const asked = forMs === undefined ? { to } : { forMs: Number(forMs) };
    const { forMs: skipped = NEXT_DEADLINE } = mustBeValid(validate.runSkipRequest(asked));
    return skipTime(deps, { row, to: skipped }, delivery);
  },
  async cancel(deps, { row, call: { form, session } }, delivery) {
    const text = form.reason?.trim();
    const { reason } = mustBeValid(validate.runCancelRequest(text ? { reason: text } : {}));
    const cancelledBy = principalOf(session.caller.subject);
    const status = await cancelRun(deps, { row, reason, cancelledBy }, delivery);
    return TERMINAL_STATUSES.has(status) && status !== 'cancelled' ? 'ended' : 'cancelling';
  },
};

export function mountRunControls(router: Router, deps: PageDeps): void {
  for (const control of Object.keys(ACTS) as RunControl[]) {
    const take = signedIn((given, call) => takeControl(given, call, control));
    router.post(`/pages/runs/:runId/${control}`, page(deps, take));
  }
}

async function takeControl(deps: PageDeps, call: SignedInCall, control: RunControl): Promise<void> {
  const { request, response, session } = call;
  const runId = parameter(request, 'runId');
  response.locals.runId = runId;
  const row = await requireRun(deps, session.caller, runId);
  // Without a key: what is asked for again changes nothing, or is refused.
  const asked = { endpoint: `POST /pages/runs/${control}`, target: [runId], body: undefined };
  const telling = {
    told: (outcome: Outcome) => ({ status: 303, body: outcome }),
    refused: () => undefined,
  };
  try {
    const once = await messageOnce(deps, { caller: session.caller, asked, telling }, (delivery) =>
      ACTS[control](deps, { row, call }, delivery),
    );
    const notice = once.replayed ? (once.kept.body as Outcome) : once.data;
    response.redirect(303, `/pages/runs/${encodeURIComponent(runId)}?notice=${notice}`);
  } catch (error) {
    const code = codeOf(error);
    const seen =
      code && code !== 'internal_error' ? await deps.sessions.find(request, runId) : undefined;
    if (!code || !seen) throw error;
    const text = refusalText(code, control, (error as HostError).details ?? {});
    await sendRunPage(
      deps,
      { request, response, session: seen },
      { status: FIRST.errors[code].status, notice: { kind: 'error', text } },
    );
  }
}

function refusalText(
  code: ErrorCode,
  control: RunControl,
  { runStatus, reason }: Readonly<Record<string, unknown>>,
): string {
  if (control === 'skip') return typeof reason === 'string' ? reason : ERRORS[code].message;
  if (code === 'validation_error') return `The reason ${String(reason)}.`;
  if (code !== 'run_state_conflict') return ERRORS[code].message;
  if (runStatus === 'paused') return 'The run is paused already, or is being paused.';
  return control === 'resume'
    ? 'The run is not paused: there is nothing to resume.'
    : 'The run has ended, or is being cancelled: it cannot be paused.';
}
