// What the journeys share: a host that can be stopped and started again on its data, and ways to start, answer and
// read runs on it.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { isTerminalEvent } from '../../src/rules/status.ts';
import { startOrdersServer, type OrdersServer } from '../../src/demo/orders-server.ts';
import type { LogRow } from '../../src/ports/log.ts';
import type { RunEventDoc, RunSnapshot } from '../../schemas/types.generated.ts';
import { validateEvent } from '../../src/wire/validators.ts';
import { readSse, type SseAnswer, type SseRequest } from '../facade/sse-client.ts';
import {
  startTestHost,
  type ApiAnswer,
  type TestHost,
  type TestHostOptions,
} from '../support/host.ts';
import { quietLogger } from '../support/quiet-logger.ts';
import { startTestTemporal, type TestTemporal } from '../support/temporal.ts';
import { checkBrackets, type Bracket } from './brackets.ts';
import { CANARY, journeyParts } from './journey-workflows.ts';
import { runRef } from '../support/run-ref.ts';

const ENDED = ['completed', 'failed', 'cancelled'];
export const ended = ({ status }: RunSnapshot): boolean => ENDED.includes(status);
export const waiting = ({ status }: RunSnapshot): boolean => status.startsWith('waiting-');

export interface Told {
  readonly events: readonly RunEventDoc[];
  /** Types; deltas in a row count once. */
  readonly types: readonly string[];
  readonly brackets: readonly Bracket[];
  readonly snapshot: RunSnapshot;
}

export class Journey {
  readonly runs: string[] = [];
  /** Lines of hosts that were stopped. */
  readonly oldLogs: string[] = [];
  #host: TestHost | undefined;
  #orders: OrdersServer | undefined;
  #temporal: TestTemporal | undefined;
  #target: { address: string; namespace: string } | undefined;
  #dataDir = '';
  readonly #options: () => Promise<TestHostOptions>;
  #resolved: TestHostOptions = {};

  constructor(options: () => Promise<TestHostOptions>) {
    this.#options = options;
  }

  get host(): TestHost {
    if (!this.#host) throw new Error('the host is stopped');
    return this.#host;
  }

  get dataDir(): string {
    return this.#dataDir;
  }

  get databaseUrl(): string | undefined {
    return this.#resolved.databaseUrl;
  }

  get encrypted(): boolean {
    return this.#resolved.encryption ?? false;
  }

  get ordersUrl(): string {
    return this.#orders?.url ?? '';
  }

  async begin(): Promise<void> {
    this.#resolved = await this.#options();
    this.#dataDir = await mkdtemp(join(tmpdir(), 'openwop-journey-'));
    this.#orders = await startOrdersServer({
      refundsFile: join(this.#dataDir, 'refunds.jsonl'),
      logger: quietLogger,
    });
    this.#temporal = await startTestTemporal();
    const { address } = this.#temporal;
    this.#target = { address, namespace: await this.#temporal.namespace() };
    await this.start();
  }

  /** `more`: what is different about the host this time. */
  async start(more: Partial<TestHostOptions> = {}): Promise<void> {
    this.#host = await startTestHost({
      ...this.#resolved,
      ...more,
      dataDir: this.#dataDir,
      temporal: this.#target,
      builtIn: journeyParts(this.ordersUrl),
      env: { OPENAI_API_KEY: CANARY, ...this.#resolved.env },
      logLevel: 'debug',
    });
  }

  async stop(): Promise<void> {
    this.oldLogs.push(...(this.#host?.logs ?? []));
    await this.#host?.stop();
    this.#host = undefined;
  }

  async end(): Promise<void> {
    await this.stop();
    await this.#orders?.stop();
    await this.#temporal?.stop();
    await rm(this.#dataDir, { recursive: true, force: true });
  }

  /** On the scripted model, although a key of another provider is there. */
  async run(workflowId: string, more: Record<string, unknown> = {}): Promise<string> {
    const { configurable, ...rest } = more;
    const root = workflowId.startsWith('agent:')
      ? { agentId: workflowId.slice('agent:'.length) }
      : { workflowId };
    const runId = await this.host.startRun({
      ...root,
      ...rest,
      configurable: { ai: { provider: 'scripted' }, ...(configurable as object) },
    });
    this.runs.push(runId);
    return runId;
  }

  answer(runId: string, nodeId: string, resumeValue: unknown): Promise<ApiAnswer> {
    const path = `/v1/runs/${runId}/interrupts/${nodeId}`;
    return this.host.api(path, { body: { resumeValue } });
  }

  /** The one question that is named, whatever else its node asks. */
  answerOne(
    runId: string,
    { nodeId, interruptId }: { nodeId: string; interruptId: string },
    resumeValue: unknown,
  ): Promise<ApiAnswer> {
    const path = `/v1/runs/${runId}/interrupts/${nodeId}`;
    return this.host.api(path, { body: { resumeValue, interruptId } });
  }

  /** The run's page, opened by a link of its own. */
  async page(runId: string): Promise<string> {
    const path = `/v1/host/openwop-temporal/runs/${runId}/page-link`;
    const { body } = await this.host.api<{ url: string }>(path, { method: 'POST' });
    const { pathname, search } = new URL(body.url);
    const at = `${this.host.url}${pathname}`;
    const opened = await fetch(at + search, { method: 'POST', redirect: 'manual' });
    const cookie = opened.headers.getSetCookie()[0]?.split(';')[0] ?? '';
    return (await fetch(at, { headers: { cookie } })).text();
  }

  async events(runId: string): Promise<{ events: RunEventDoc[]; text: string }> {
    const headers = { accept: 'application/json' };
    const { body, text } = await this.host.api<{ events: RunEventDoc[] }>(
      `/v1/runs/${runId}/events`,
      { headers },
    );
    return { ...body, text };
  }

  stream(runId: string, query: string, until?: SseRequest['until']): Promise<SseAnswer> {
    return readSse({
      url: `${this.host.url}/v1/runs/${runId}/events${query}`,
      headers: { authorization: `Bearer ${this.host.apiKey}` },
      ...(until ? { until } : {}),
    });
  }

  async rows(runId: string): Promise<readonly LogRow[]> {
    return this.host.stores.log.read(runRef(runId), { after: -1, limit: 10_000 });
  }

  /** Waits until the run rests (has ended, or waits for a human) and checks all that holds of any log. */
  async told(runId: string, rests: (snapshot: RunSnapshot) => boolean = ended): Promise<Told> {
    const snapshot = await this.host.waitFor(runId, rests);
    const { events } = await this.events(runId);
    expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index));
    for (const event of events) expect(validateEvent(event)).toMatchObject({ ok: true });
    expect(events.filter(({ type }) => isTerminalEvent(type)).length).toBe(ended(snapshot) ? 1 : 0);
    const types = events
      .filter(({ type }, at) => type !== 'agent.reasoning.delta' || events[at - 1]?.type !== type)
      .map(({ type }) => type);
    return { events, types, brackets: checkBrackets(events), snapshot };
  }

  async refunds(): Promise<readonly { amountCents: number; orderId: string }[]> {
    const answer = await fetch(`${this.ordersUrl}/refunds`);
    const { refunds } = (await answer.json()) as {
      refunds: { amountCents: number; orderId: string }[];
    };
    return refunds;
  }
}
