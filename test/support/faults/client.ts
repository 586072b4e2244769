// A client as a careful user writes one: every request that changes something carries an Idempotency-Key, and what
// gets no final answer (connection broken, 503, the same request still under way) is sent again with the same key.
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import type { RunSnapshot } from '../../../schemas/types.generated.ts';
import { apiClient, TEST_API_KEY, type ApiAnswer, type ApiRequest } from '../host.ts';
import { patient } from '../machine.ts';

/** Longest time in ms until a request gets its final answer, whatever crashes meanwhile; unless the test says another. */
const ANSWER_LIMIT_MS = patient(90_000);
const RETRY_MS = 150;
/** A connection whose other end was killed may never answer. */
const REQUEST_LIMIT_MS = patient(12_000);

export interface PatientClient {
  /** The first answer that is final. Throws on 500 and after the limit. */
  ask<T = Record<string, unknown>>(path: string, request?: ApiRequest): Promise<ApiAnswer<T>>;
  /** `more`: what else the request says. */
  start(workflowId: string, inputs?: object, more?: object): Promise<string>;
  answer(runId: string, nodeId: string, answer: { value: unknown; key: string }): Promise<number>;
  snapshot(runId: string): Promise<RunSnapshot>;
}

function isFinal({ status, body }: ApiAnswer): boolean {
  if (status === 503 || status === 429) return false;
  const { error } = (body ?? {}) as { error?: unknown };
  return !(status === 409 && error === 'idempotency_in_flight');
}

export function patientClient(url: string, limitMs = ANSWER_LIMIT_MS): PatientClient {
  const client = apiClient(url, TEST_API_KEY, { isPatient: false });

  async function ask<T>(path: string, request: ApiRequest = {}): Promise<ApiAnswer<T>> {
    const limit = Date.now() + limitMs;
    for (;;) {
      const told = await Promise.race([
        client.api<T>(path, request).catch((error: unknown) => error as Error),
        sleep(REQUEST_LIMIT_MS, new Error('no answer')),
      ]);
      if (!(told instanceof Error)) {
        if (told.status === 500) throw new Error(`${path} answered 500: ${told.text}`);
        if (isFinal(told as ApiAnswer)) return told;
      }
      if (Date.now() > limit) {
        const last = told instanceof Error ? inspect(told) : told.text;
        throw new Error(`${path} got no final answer: ${last}`);
      }
      await sleep(RETRY_MS);
    }
  }

  return {
    ask,
    async start(workflowId, inputs = {}, more = {}) {
      const headers = { 'idempotency-key': randomUUID() };
      const told = await ask<{ runId: string }>('/v1/runs', {
        body: { workflowId, inputs, ...more },
        headers,
      });
      if (told.status !== 201) throw new Error(`a run was refused: ${told.text}`);
      return told.body.runId;
    },
    async answer(runId, nodeId, { value, key }) {
      const path = `/v1/runs/${runId}/interrupts/${nodeId}`;
      const headers = { 'idempotency-key': key };
      return (await ask(path, { body: { resumeValue: value }, headers })).status;
    },
    async snapshot(runId) {
      const told = await ask<RunSnapshot>(`/v1/runs/${runId}`);
      if (told.status !== 200) throw new Error(`run ${runId} cannot be read: ${told.text}`);
      return told.body;
    },
  };
}
