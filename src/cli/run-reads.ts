// What the host tells of runs, as commands use it.
import type { RunSnapshot } from '../../schemas/types.generated.ts';
import type { JsonObject, JsonValue } from '../rules/json.ts';
import type { OpenQuestion } from '../words/question.ts';
import { CliFault, codeOf } from './faults.ts';
import type { HostClient } from './host-client.ts';
import { CALLED } from './cli.ts';

export const RUNS = '/v1/runs';
export const OVERVIEW = '/v1/host/openwop-temporal/runs';

export function runPath(runId: string): string {
  return `${RUNS}/${encodeURIComponent(runId)}`;
}

export function getRun(client: HostClient, runId: string): Promise<RunSnapshot> {
  return client.get<RunSnapshot>(runPath(runId)).catch(namedRun(runId));
}

/** Asks for something at an address of this host's own, below the run. */
export function postBelowRun<View>(
  client: HostClient,
  runId: string,
  { path, body }: { readonly path: string; readonly body?: unknown },
): Promise<View> {
  return client
    .post<View>(`${OVERVIEW}/${encodeURIComponent(runId)}/${path}`, { body })
    .catch(namedRun(runId));
}

/** When the run expired that the host was asked about. */
export function expiryOf(error: unknown): string | undefined {
  const expiredAt = error instanceof CliFault ? error.facts.details?.expiredAt : undefined;
  return typeof expiredAt === 'string' ? expiredAt : undefined;
}

/** The host does not repeat which run it lacks. */
export function namedRun(runId: string): (error: unknown) => never {
  return (error) => {
    const expiredAt = expiryOf(error);
    if (expiredAt !== undefined)
      throw new CliFault(`Run ${runId} expired at ${expiredAt}: nothing of it is kept.`, {
        ...(error as CliFault).facts,
        cause: error,
      });
    if (codeOf(error) !== 'run_not_found') throw error;
    throw new CliFault(`The host knows no run ${runId}. \`${CALLED} runs\` lists them.`, {
      ...(error as CliFault).facts,
      cause: error,
    });
  };
}

interface QuestionView {
  readonly nodeId: string;
  readonly interruptId: string;
  readonly kind: string;
  readonly requestedAt: string;
  readonly deadline?: string;
  readonly resumeSchema?: JsonValue;
  readonly [part: string]: JsonValue | undefined;
}

export interface Questions {
  readonly views: readonly QuestionView[];
  readonly open: readonly OpenQuestion[];
}

/** What the run waits for, oldest first. */
export async function getQuestions(client: HostClient, runId: string): Promise<Questions> {
  const path = `${OVERVIEW}/${encodeURIComponent(runId)}/questions`;
  const answer = await client
    .get<{ questions: readonly QuestionView[] }>(path)
    .catch(namedRun(runId));
  return { views: answer.questions, open: answer.questions.map(openOf) };
}

/** A run below another one; `questions` absent: it may ask, and was not looked at, or cannot be read. */
export interface AskingRun {
  readonly runId: string;
  readonly workflowId: string;
  readonly questions?: readonly QuestionView[];
  readonly unreadable?: { readonly message: string };
}

/** Of the runs below a run those that ask, or may, oldest first. A host that tells of none below has none. */
export async function getAsking(client: HostClient, runId: string): Promise<readonly AskingRun[]> {
  const path = `${OVERVIEW}/${encodeURIComponent(runId)}/children`;
  const { runs } = await client
    .get<{ runs: readonly AskingRun[] }>(path)
    .catch((error: unknown) => {
      if (codeOf(error) !== 'not_found' || expiryOf(error) !== undefined) throw error;
      return { runs: [] };
    });
  return runs.filter(({ questions }) => questions?.length !== 0);
}

export function openOf(view: QuestionView): OpenQuestion {
  const { nodeId, interruptId, kind, requestedAt, deadline, resumeSchema, ...data } = view;
  return {
    ...{ nodeId, interruptId, kind, data: data as JsonObject, resumeSchema },
    requestedAtMs: Date.parse(requestedAt),
    ...(deadline === undefined ? {} : { deadlineMs: Date.parse(deadline) }),
  };
}
