// GET /v1/host/openwop-temporal/runs/{runId}/questions: all that a run waits for. A snapshot has room for the oldest
// alone; parallel branches ask at the same time. An extension of this host.
import { askedInterrupts, interruptView } from '../../log/fold.ts';
import { withShownIds } from '../../wire/major.ts';
import type { FacadeDeps } from '../deps.ts';
import { readHead } from '../read-head.ts';
import { answered, shape, type Declaration, type Route } from '../route.ts';

export const LIST_QUESTIONS = {
  method: 'get',
  path: '/host/openwop-temporal/runs/{runId}/questions',
  operationId: 'listQuestions',
  summary: 'All that a run waits for, oldest first. An extension of this host.',
  access: 'runs:read',
  about: 'run',
  success: { status: 200, description: 'The open questions.', schema: shape('QuestionList') },
} as const satisfies Declaration;

export function questionsRoute(deps: FacadeDeps): Route {
  return answered(LIST_QUESTIONS, async ({ caller, major, run }) => {
    const { head, headers } = await readHead(deps, run);
    const questions = askedInterrupts(head, run).map((open) =>
      withShownIds(major, caller.tenant, interruptView(open)),
    );
    return { headers, body: { questions } };
  });
}
