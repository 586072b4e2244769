// What the parts of the HTTP suite share: the host under test, ways to ask it, and what every log must satisfy.
import { expect } from 'vitest';
import { isTerminalEvent } from '../../src/rules/status.ts';
import type { RunEventDoc, RunSnapshot } from '../../schemas/types.generated.ts';
import { validateEvent } from '../../src/wire/validators.ts';
import type { ApiAnswer, TestHost } from '../support/host.ts';
import type { SseAnswer } from './sse-client.ts';

const ENDED = ['completed', 'failed', 'cancelled'];
export const ended = ({ status }: RunSnapshot): boolean => ENDED.includes(status);
export const waiting = ({ status }: RunSnapshot): boolean => status.startsWith('waiting-');

export interface Envelope {
  readonly error: string;
  readonly details?: Record<string, unknown>;
}

export interface Suite {
  readonly host: () => TestHost;
  readonly auth: () => Record<string, string>;
  readonly log: (runId: string) => Promise<RunEventDoc[]>;
  readonly stream: (
    runId: string,
    query?: string,
    headers?: Record<string, string>,
  ) => Promise<SseAnswer>;
  readonly resolve: (
    runId: string,
    nodeId: string,
    resumeValue: unknown,
    key?: string,
  ) => Promise<ApiAnswer<Envelope & { status: string }>>;
}

/** The question that the run waits with, once it is another than `before`. */
export async function nextQuestion(host: TestHost, runId: string, before?: string) {
  const { interrupt } = await host.waitFor(
    runId,
    ({ interrupt: open }) => open !== undefined && open.interruptId !== before,
  );
  return String(interrupt?.interruptId);
}

export async function readLog(
  host: TestHost,
  runId: string,
): Promise<{ events: RunEventDoc[]; isComplete: boolean; text: string }> {
  const answer = await host.api<{ events: RunEventDoc[]; isComplete: boolean }>(
    `/v1/runs/${runId}/events`,
    {
      headers: { accept: 'application/json' },
    },
  );
  expect(answer.status).toBe(200);
  return { ...answer.body, text: answer.text };
}

export function types(events: readonly RunEventDoc[]): string[] {
  return events.map(({ type }) => type);
}

export function expectLawful(events: readonly RunEventDoc[]): void {
  expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index));
  expect(events.filter(({ type }) => isTerminalEvent(type)).length).toBe(1);
  expect(isTerminalEvent(events.at(-1)?.type ?? '')).toBe(true);
  for (const event of events) expect(validateEvent(event)).toMatchObject({ ok: true });
}
